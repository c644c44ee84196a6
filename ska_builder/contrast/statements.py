"""Statements that keep or break one rule, made from its reading; for probes.

A definition's opposite turns the first "can", "not", "得" … of its meaning round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from zerolayer.readings import Reading

PARTS = ("train", "validate", "test")
LEARNED = ("prohibition", "requirement", "definition")
_TURNS = {
    "en": [
        (r"\b(can|may|must|shall|will|is|are|does|do|has|have)( ?not)\b", r"\1"),
        (r"\b(can|may|must|shall|will|is|are|has|have)\b", r"\1 not"),
        (r"\bwithout\b", "with"),
        (r"\bmore than\b", "less than"),
        (r"\bless than\b", "more than"),
    ],
    "zh": [
        (r"不得|不能|不可以?|禁止", "可以"),
        (r"可以|能够|应当|必须", "不得"),
        (r"未", "已"),
        (r"超过", "不超过"),
    ],
}


@dataclass(frozen=True)
class Statement:
    """A continuation of an opening; `keeps` tells whether it conforms to the rule."""

    opening: str
    text: str
    keeps: bool


@cache
def _data() -> dict[str, Any]:
    file = resources.files("ska_builder.contrast").joinpath("statements.yaml")
    data: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return data


def statements(reading: Reading) -> dict[str, list[Statement]] | str:
    """Statements by part (train, validate, test), or in one sentence why there are none."""
    if reading.slot is not None and reading.slot.type == "text":
        return "statements of a slot of type text have no wording to learn from yet"
    if reading.kind not in LEARNED:
        return f"a {reading.kind} is decided by its value, not by a probe"
    fields: dict[str, str] = {
        k: str(reading.details[k]) for k in ("act", "when", "then") if k in reading.details
    }
    if reading.kind == "requirement" and "when" not in fields:
        return "the requirement has no condition that could begin a decision"
    if reading.kind == "definition":
        meaning = str(reading.details["meaning"])
        turned = opposite(meaning, reading.language)
        if turned is None:
            return "the meaning has no word whose opposite is known, so nothing false can be made"
        fields |= {"term": str(reading.details["term"]), "meaning": meaning, "opposite": turned}
    data = _data()[reading.language]
    return {
        part: [
            Statement(opening, _filled(text, fields), side == "good")
            for opening in data["openings"][part]
            for side in ("good", "bad")
            for text in data[reading.kind][part][side]
        ]
        for part in PARTS
    }


def opposite(meaning: str, language: str) -> str | None:
    """The meaning with its first negation or permission turned round; None where none is known."""
    for pattern, other in _TURNS[language]:
        turned, count = re.subn(pattern, other, meaning, count=1)
        if count:
            return turned
    return None


def _filled(text: str, fields: dict[str, str]) -> str:
    filled = text.format(**fields)
    start = len(filled) - len(filled.lstrip())
    return filled[:start] + filled[start : start + 1].upper() + filled[start + 1 :]
