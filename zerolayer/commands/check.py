"""`zerolayer check`: a linter for texts that must agree with their sources; needs no model."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from zerolayer.decisions.events import DecisionEvent
from zerolayer.errors import ZerolayerError
from zerolayer.readings import HasRules, RuleSet

LEVELS = {"contradiction": "error", "contested": "warning", "unsupported": "note"}
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@click.command()
@click.argument("answer", type=click.Path(path_type=Path))
@click.option("--source", "sources", multiple=True, required=True, type=click.Path(path_type=Path))
@click.option("--pack", "pack_path", type=click.Path(path_type=Path), help="A compiled pack.")
@click.option("--rules", "rules_path", type=click.Path(path_type=Path), help="Or a rules.md.")
@click.option("--ask", default="", help="The question that the text answers.")
@click.option("--strict", is_flag=True, help="Contested and unsupported statements fail too.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text",
    show_default=True,
)  # fmt: skip
def check(
    answer: Path,
    sources: tuple[Path, ...],
    pack_path: Path | None,
    rules_path: Path | None,
    ask: str,
    strict: bool,
    form: str,
) -> None:
    """Check what the text ANSWER (a file, or - for standard input) states against sources.

    Exit code 1 where a statement contradicts what the sources settle, 2 on wrong input.

    \b
    Example:
      zerolayer check answer.txt --rules rules.md --source contract.md --source amendment.md
    """
    from zerolayer.decisions.machine import DecisionMachine
    from zerolayer.files import read_utf8
    from zerolayer.sources import read_source

    documents = [read_source(path) for path in sources]
    rules = _rules(pack_path, rules_path)
    text = read_utf8(answer, "answer")
    if not text.strip():
        raise ZerolayerError(f"answer {answer} is empty; there is nothing to check")
    events = DecisionMachine(rules).check(text, documents, ask)
    lines = _line_starts(text)
    if form == "json":
        click.echo(json.dumps([_located(e, text, lines) for e in events], ensure_ascii=False))
    elif form == "sarif":
        click.echo(json.dumps(_sarif(events, str(answer), text, lines), ensure_ascii=False))
    else:
        for event in events:
            if event.verdict != "consistent":
                click.echo(f"{answer}:{_message(event, text, lines)}")
        counts = Counter(e.verdict for e in events)
        said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
        click.echo(f"{len(events)} statements{': ' + said if said else ''}", err=True)
    failing = set(LEVELS) if strict else {"contradiction"}
    if any(e.verdict in failing for e in events):
        sys.exit(1)


def _rules(pack_path: Path | None, rules_path: Path | None) -> HasRules:
    if (pack_path is None) == (rules_path is None):
        raise ZerolayerError("give the rules by either --pack or --rules")
    if pack_path is not None:
        from zerolayer.pack import Pack

        return Pack.load(pack_path)
    from ska_builder.rules import checked_rules, slots_of

    assert rules_path is not None
    readings = checked_rules(rules_path).readings
    return RuleSet(readings, slots_of(readings))


def _line_starts(text: str) -> list[int]:
    return [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]


def _place(offset: int, lines: Sequence[int]) -> tuple[int, int]:
    """Line and column of an offset, both from 1, in code points."""
    line = bisect_right(lines, offset)
    return line, offset - lines[line - 1] + 1


def _message(event: DecisionEvent, text: str, lines: Sequence[int]) -> str:
    line, column = _place(event.start, lines)
    said = " ".join(text[event.start : event.end].split())
    rule = f" [{event.rule}]" if event.rule else ""
    return f"{line}:{column}: {event.verdict}: {event.slot}: “{said}”; {event.reason}{rule}"


def _located(event: DecisionEvent, text: str, lines: Sequence[int]) -> dict[str, Any]:
    line, column = _place(event.start, lines)
    said = text[event.start : event.end]
    return {"line": line, "column": column, "text": said, **event.to_json(with_text=True)}


def _sarif(
    events: Sequence[DecisionEvent], path: str, text: str, lines: Sequence[int]
) -> dict[str, Any]:
    """SARIF 2.1.0, which code hosts and editors show beside the text."""
    results: list[dict[str, Any]] = []
    for event in events:
        if event.verdict not in LEVELS:
            continue
        (line, column), (last, end) = _place(event.start, lines), _place(event.end, lines)
        region = {"startLine": line, "startColumn": column, "endLine": last, "endColumn": end}
        said = _message(event, text, lines).partition(": ")[2]
        results.append(
            {
                "ruleId": event.rule or event.slot,
                "level": LEVELS[event.verdict],
                "message": {"text": said},
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": quote(path)},
                            "region": region,
                        }
                    }
                ],
            }
        )
    rules = sorted({r["ruleId"] for r in results})
    driver = {"name": "zerolayer", "rules": [{"id": name} for name in rules]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
