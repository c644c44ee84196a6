"""What is wrong in a rules file, where, and what to write instead."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]
WARNINGS = frozenset(
    {"too-few-examples", "no-trigger", "untokenizable-term", "trigger-in-common-word"}
)


@dataclass(frozen=True)
class Diagnostic:
    """One fault; `line` and `column` count from 1, `column` in characters."""

    file: str
    line: int
    column: int
    code: str
    severity: Severity
    message: str
    suggestion: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def format_diagnostic(d: Diagnostic, text: str) -> str:
    """The diagnostic as a compiler prints it: place, message, the line with a caret, advice."""
    lines = text.splitlines()
    shown = lines[d.line - 1].replace("\t", " ") if 0 < d.line <= len(lines) else ""
    start = max(0, d.column - 1 - 60)
    cut = shown[start : start + 120]
    lead = "…" if start else ""
    number = f"{d.line:>5} | "
    caret = " " * (len(number) + _width(lead + cut[: d.column - 1 - start])) + "^"
    parts = [
        f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.message} [{d.code}]",
        f"{number}{lead}{cut}{'…' if len(shown) > start + 120 else ''}",
        caret,
    ]
    if d.suggestion:
        parts.append(f"      = {d.suggestion}")
    return "\n".join(parts)
