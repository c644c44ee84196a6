"""The word lists of the grammar, compiled once."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import yaml

WORDS: dict[str, Any] = yaml.load(
    (files("ska_builder.language") / "words.yaml").read_text(encoding="utf-8"),
    Loader=yaml.BaseLoader,  # "no" and "on" are words here
)


def any_of(words: list[str]) -> str:
    """A regular expression for one of the words, the longest first."""
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


ACTION_WORDS: dict[str, str] = WORDS["action_words"]
ACTION_FORMS: dict[str, str] = {w: k for k, ws in WORDS["actions"].items() for w in ws}
FIELD_NAMES: dict[str, str] = {w: k for k, ws in WORDS["fields"].items() for w in ws}
TYPE_NAMES: dict[str, str] = {w: k for k, ws in WORDS["types"].items() for w in ws}
SPEAKER_EN = any_of(WORDS["speakers_en"])
SPEAKER_ZH = any_of(WORDS["speakers_zh"])
IMPERATIVE = any_of(WORDS["imperatives"])
UNIT = re.compile(any_of(WORDS["units"]), re.IGNORECASE)


def type_of_name(name: str) -> str:
    """The type that the last word of a slot's name tells; "text" where it tells none."""
    if name.startswith(("number of ", "count of ")):
        return "number"
    for type_, words in WORDS["name_types"].items():
        if any(re.search(rf"(?:^|[\s-]){w}$", name) for w in words["en"]):
            return str(type_)
        if any(name.endswith(w) for w in words["zh"]):
            return str(type_)
    return "text"
