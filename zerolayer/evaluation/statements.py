"""statements: are decisions in a running text found, read and judged?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ska_builder.language import read_norms
from zerolayer.decisions.ledger import Source
from zerolayer.decisions.machine import DecisionMachine
from zerolayer.readings import RuleSet, Slot

Item = dict[str, Any]


def evaluate(items: Sequence[Item], advance: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Precision, recall and F1 over all events; by language and verdict. No model is needed."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])  # matched, predicted, gold
    false_on_empty = characters = 0
    for item in items:
        slots = [Slot.from_json(s) for s in item["slots"]]
        machine = DecisionMachine(RuleSet(read_norms(item["rules"]), slots))
        sources = [Source.from_json(s) for s in item["sources"]]
        predicted = [
            {"slot": e.slot, "verdict": e.verdict, "span": (e.start, e.end)}
            for e in machine.check(item["answer"], sources)
        ]
        gold = [
            {"slot": e["slot"], "verdict": e["verdict"], "span": (e["char_start"], e["char_end"])}
            for e in item["events"]
        ]
        matched = _match(predicted, gold)
        for key in ("all", item["language"]):
            counts[key][0] += len(matched)
            counts[key][1] += len(predicted)
            counts[key][2] += len(gold)
        if not gold:
            false_on_empty += len(predicted)
            characters += len(item["answer"])
        if advance:
            advance(1)
    return {
        **_figures(counts["all"]),
        "by_language": {k: _figures(v) for k, v in counts.items() if k != "all"},
        "false_per_1000_characters": round(1000 * false_on_empty / max(1, characters), 4),
    }


def _match(predicted: Sequence[Item], gold: Sequence[Item]) -> list[tuple[Item, Item]]:
    """Greedy from left to right: equal slot and verdict, spans that share a character."""
    free = list(gold)
    pairs = []
    for event in predicted:
        for other in free:
            overlap = min(event["span"][1], other["span"][1]) > max(
                event["span"][0], other["span"][0]
            )
            if overlap and (event["slot"], event["verdict"]) == (other["slot"], other["verdict"]):
                pairs.append((event, other))
                free.remove(other)
                break
    return pairs


def _figures(count: Sequence[int]) -> dict[str, Any]:
    matched, predicted, gold = count
    precision = matched / predicted if predicted else 1.0
    recall = matched / gold if gold else 1.0
    f1 = 2 * precision * recall / (precision + recall) if matched else 0.0
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(f1, 4),
        "events": gold,
    }
