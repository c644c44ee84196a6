"""The project's contrast data: counterbalanced, and apart from the evaluation set."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from ska_builder.contrast.pairs import COUNTERBALANCED, Pair, generate_all
from zerolayer.evaluation.stats import read_items

PAIRS = generate_all(0, 4)


def groups() -> dict[str, list[Pair]]:
    table: dict[str, list[Pair]] = defaultdict(list)
    for pair in PAIRS:
        table[pair.group].append(pair)
    return table


def test_no_fixed_habit_can_win() -> None:
    """In a group each continuation is right as often as wrong, and first as often as last."""
    for name, pairs in groups().items():
        good = sorted(p.good for p in pairs)
        assert good == sorted(p.bad for p in pairs), name
        if pairs[0].kind in COUNTERBALANCED:
            assert len(pairs) == 4, name
            folded = [p.context.lower() for p in pairs]  # a value may open a sentence
            first = [c.find(p.good.strip(" .").lower()) for c, p in zip(folded, pairs, strict=True)]
            last = [c.find(p.bad.strip(" .").lower()) for c, p in zip(folded, pairs, strict=True)]
            assert sum(a < b for a, b in zip(first, last, strict=True)) == 2, pairs
        else:
            assert len(pairs) == 2, name


def test_continuations_have_similar_length() -> None:
    for pair in PAIRS:
        assert pair.good.startswith(" ") and pair.bad.startswith(" ")
        assert "{" not in pair.rule + pair.context + pair.good + pair.bad
        if pair.kind not in COUNTERBALANCED:
            assert abs(len(pair.good) - len(pair.bad)) <= 0.4 * max(len(pair.good), len(pair.bad))


def test_same_seed_same_pairs() -> None:
    assert generate_all(0, 4) == PAIRS
    assert generate_all(1, 4) != PAIRS


def test_apart_from_the_evaluation_set(data: Path) -> None:
    """No eight words in a row are shared with contrast.jsonl."""

    def grams(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return {tuple(words[i : i + 8]) for i in range(len(words) - 7)}

    theirs: set[tuple[str, ...]] = set()
    for item in read_items(data / "eval", "contrast"):
        theirs |= grams(item["rule"]) | grams(item["context"] + item["good"])
    for pair in PAIRS:
        shared = theirs & (grams(pair.rule) | grams(pair.context + pair.good))
        assert not shared, (pair.template, shared)
