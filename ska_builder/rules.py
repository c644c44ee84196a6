"""Checked rules and what decisions need of them: slots and trigger phrases. No model, no torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ska_builder.language import Checked, check_jsonl, check_text, format_diagnostic
from ska_builder.language.document import MAX_FILE
from zerolayer.errors import ZerolayerError
from zerolayer.files import read_utf8
from zerolayer.readings import Reading, Slot


def read_rules(path: Path, tokenizer: Any = None) -> Checked:
    """Read a rules.md, or a .jsonl with one rule a line, with whatever is wrong in it.

    Raises:
        ZerolayerError: the file cannot be read at all.
    """
    text = read_utf8(path, "rules file", MAX_FILE)
    read = check_jsonl if path.suffix == ".jsonl" else check_text
    return read(text, str(path), tokenizer)


def checked_rules(path: Path) -> Checked:
    """Read and check a rules file.

    Raises:
        ZerolayerError: the file has errors; the message shows each with its line.
    """
    checked = read_rules(path)
    errors = checked.errors
    if errors:
        shown = "\n".join(format_diagnostic(d, checked.text) for d in errors)
        raise ZerolayerError(f"{path} has {len(errors)} error(s); nothing was built\n{shown}")
    return checked


def slots_of(readings: Sequence[Reading]) -> list[Slot]:
    """The slots that the readings name, each once; other names add up."""
    slots: dict[str, Slot] = {}
    for reading in readings:
        if reading.slot is None:
            continue
        old = slots.get(reading.slot.name)
        also = tuple(dict.fromkeys((*(old.also if old else ()), *reading.slot.also)))
        choices = reading.slot.choices
        if reading.slot.type == "choice" and not choices:
            listed = reading.details.get("value")
            choices = tuple(map(str, listed)) if isinstance(listed, list) else ()
        slots[reading.slot.name] = Slot(reading.slot.name, reading.slot.type, also, choices)
    return list(slots.values())


def triggers_of(readings: Sequence[Reading], slots: Sequence[Slot]) -> list[dict[str, Any]]:
    """Trigger phrases: each slot's names, each definition's term."""
    triggers: list[dict[str, Any]] = [
        # A name with "…" is for reading; a trigger has to be seen before its value is said.
        {"slot": s.name, "phrases": [n for n in (s.name, *s.also) if not re.search(r"…|\.\.\.", n)]}
        for s in slots
    ]
    for reading in readings:
        if reading.kind == "definition":
            also = list(reading.details.get("also", ()))
            triggers.append(
                {"term": reading.details["term"], "phrases": [reading.details["term"], *also]}
            )
    return triggers
