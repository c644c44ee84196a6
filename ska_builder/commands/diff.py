"""`ska-build diff`: what changes in behaviour from one rules file to another."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ska_builder.language import say_back
from ska_builder.rules import checked_rules, slots_of
from zerolayer.readings import Reading

KEYS = ("term", "act", "then")  # what a norm without a slot is about


@dataclass(frozen=True)
class Change:
    """One norm that came, went or reads differently; before and after in plain words."""

    rule: str
    what: str  # added, removed or changed
    before: str | None
    after: str | None

    def to_json(self) -> dict[str, Any]:
        return vars(self)


def changes(old: Sequence[Reading], new: Sequence[Reading]) -> list[Change]:
    """Changes between two files' readings, those of the new file first and in its order.

    Norms belong together where they have one kind and one subject (slot, term, act …), wherever
    they stand; what is left over belongs together where rule and kind are the same.
    """
    left = list(old)
    pairs: list[tuple[Reading | None, Reading | None]] = []
    for reading in new:
        same = [o for o in left if o.kind == reading.kind]
        found = next((o for o in same if _subject(o) == _subject(reading)), None)
        if found is None:
            found = next((o for o in same if o.rule == reading.rule), None)
        if found is not None:
            left.remove(found)
        pairs.append((found, reading))
    pairs += [(gone, None) for gone in left]
    made = []
    for before, after in pairs:
        words = [say_back(r) + _names(r) if r is not None else None for r in (before, after)]
        if words[0] != words[1]:
            what = "added" if before is None else "removed" if after is None else "changed"
            rule = (after or before).rule  # type: ignore[union-attr]
            made.append(Change(rule, what, words[0], words[1]))
    return made


def _subject(reading: Reading) -> str:
    if reading.slot is not None:
        operator = reading.details.get("operator", "")
        # An upper and a lower bound of one slot are two norms.
        return f"{reading.slot.name} {operator[:1]} {reading.details.get('when', '')}"
    return str(
        next((reading.details[k] for k in ("term", "act", "then") if k in reading.details), "")
    )


def _names(reading: Reading) -> str:
    """The other names of what a norm is about: a text that uses them is a decision too."""
    also = reading.slot.also if reading.slot is not None else reading.details.get("also", ())
    if not also:
        return ""
    return (
        f"（又称：{'、'.join(also)}）"
        if reading.language == "zh"
        else f" (also: {', '.join(also)})"
    )


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the changes as JSON.")
def diff(old: Path, new: Path, as_json: bool) -> None:
    """Say what changes in behaviour from OLD to NEW: norms added, removed, or read differently.

    Wording, comments and examples may change without any effect; they are not shown. Exit code 1
    where something changes, 0 where nothing does.

    \b
    Example:
      ska-build diff rules-2025.md rules-2026.md
    """
    before, after = checked_rules(old), checked_rules(new)
    found = changes(before.readings, after.readings)
    gone = {s.name for s in slots_of(before.readings)} - {s.name for s in slots_of(after.readings)}
    if as_json:
        shown = {"changes": [c.to_json() for c in found], "no_longer_checked": sorted(gone)}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        for change in found:
            click.echo(f"{change.rule}: {change.what}")
            for sign, words in (("-", change.before), ("+", change.after)):
                if words is not None:
                    click.echo(f"  {sign} {words}")
        for name in sorted(gone):
            click.echo(f"no longer checked anywhere: {name}")
        click.echo(f"{len(found)} change{'s' * (len(found) != 1)}", err=True)
    sys.exit(1 if found else 0)
