"""Rules as JSON Lines, one rule a line, for uploads: {"id", "text", "lang", "fields"}.

Each line becomes a heading with its sentence and fields, so that both forms of input have one
reader and one set of diagnostics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from ska_builder.language.check import Checked, check_text
from ska_builder.language.diagnostics import Diagnostic

OneLine = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$", strip_whitespace=True)]


class Line(BaseModel):
    """One rule as it is uploaded; values of fields are a text or a list of texts."""

    model_config = ConfigDict(extra="forbid")
    id: OneLine
    text: OneLine
    lang: str
    fields: dict[OneLine, OneLine | list[OneLine]] = {}


def check_jsonl(text: str, path: str, tokenizer: Any = None) -> Checked:
    """Read rules from JSON Lines; places of diagnostics are lines of that file.

    Args:
        tokenizer: as in `check_text`.
    """
    parsed: list[tuple[int, Line]] = []
    broken: list[Diagnostic] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            parsed.append((number, Line.model_validate_json(raw)))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            broken.append(
                _malformed(path, number, f"{place + ': ' if place else ''}{first['msg']}")
            )
    languages = sorted({line.lang for _, line in parsed})
    lines = ["---", "domain: upload", f"languages: [{', '.join(languages)}]", "---", "# Upload"]
    origin = [1] * len(lines)
    for number, line in parsed:
        block = [
            f"## {line.id}",
            line.text,
            "",
            *(f"- {k}: {_field(v)}" for k, v in line.fields.items()),
        ]
        lines += block
        origin += [number] * len(block)
    checked = check_text("\n".join(lines) + "\n", path, tokenizer)
    if [rule.heading for rule in checked.rules] != [line.id for _, line in parsed]:
        headings = {rule.heading for rule in checked.rules}
        number = next((n for n, line in parsed if line.id not in headings), 1)
        broken.append(_malformed(path, number, "id and text must be plain, without Markdown"))
    return replace(
        checked,
        text=text,
        readings=[replace(r, line=origin[r.line - 1]) for r in checked.readings],
        diagnostics=broken
        + [replace(d, line=origin[d.line - 1], column=1) for d in checked.diagnostics],
    )


def _field(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(f'"{one}"' for one in value)


def _malformed(path: str, line: int, message: str) -> Diagnostic:
    return Diagnostic(
        path,
        line,
        1,
        "malformed-rule",
        "error",
        f"this line is no rule: {message}",
        'write {"id": "Payment", "text": "The **payment period** must match …", "lang": "en", '
        '"fields": {"type": "duration"}}',
    )
