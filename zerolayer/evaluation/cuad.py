"""cuad: the ledger of real contracts against their attorneys' labels. No model is needed.

Five categories have values that the machine knows. A label is *found* where a fact states one of
its values; a fact is *wrong* where it states a value that the label does not have, and also where
the attorneys gave the category no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.evaluation.stats import cluster_interval
from zerolayer.files import read_utf8
from zerolayer.readings import Slot
from zerolayer.values import Value, find_values, same, value_from_json

SLOT_OF = {
    "Effective Date": "effective date",
    "Expiration Date": "expiration date",
    "Renewal Term": "renewal term",
    "Notice Period To Terminate Renewal": "renewal notice period",
    "Governing Law": "governing law",
}
MAX_CONTRACT = 1 << 20
Item = dict[str, Any]


def evaluate(
    items: Sequence[Item],
    folder: Path,
    slots: Sequence[Slot],
    advance: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Shares over all categories, and for each.

    Args:
        items: rows of labels.jsonl.
        folder: with the contracts.
        slots: of the shipped contract rules.
    """
    by_name = {s.name: s for s in slots}
    rows: dict[str, list[tuple[str, bool | None, int, int]]] = {c: [] for c in SLOT_OF}
    for item in items:
        text = read_utf8(folder / Path(str(item["file"])).name, "contract", MAX_CONTRACT)
        source = Source(item["doc_id"], "contract", None, None, text)
        ledger = Ledger.from_sources([source], slots)
        for category, name in SLOT_OF.items():
            gold = labelled(item["labels"][category]["answer"], by_name[name])
            stated = _distinct([f.value for f in ledger.facts(name)])
            wrong = sum(not any(same(v, g) for g in gold) for v in stated)
            found = any(same(v, g) for v in stated for g in gold) if gold else None
            rows[category].append((item["doc_id"], found, len(stated), wrong))
        if advance:
            advance(1)
    return {
        **_figures([row for part in rows.values() for row in part]),
        "by_category": {category: _figures(part) for category, part in rows.items()},
    }


def labelled(answer: str, slot: Slot) -> list[Value]:
    """The values of an attorneys' answer: "6/21/99", "successive 1 year", "5 years; 2 years",
    "New York"; none where it has no value ("perpetual", "[]/[]/[]")."""
    if slot.type == "date":
        try:
            day = datetime.strptime(answer.strip(), "%m/%d/%y").date()
        except ValueError:
            return []
        return [value_from_json("date", day.isoformat())]
    return [f.value for f in find_values(answer, {slot.type}, slot.choices)]


def _distinct(values: Sequence[Value]) -> list[Value]:
    kept: list[Value] = []
    for value in values:
        if not any(same(value, other) for other in kept):
            kept.append(value)
    return kept


def _figures(rows: Sequence[tuple[str, bool | None, int, int]]) -> dict[str, Any]:
    asked = [(name, float(found)) for name, found, _, _ in rows if found is not None]
    stated, wrong = sum(r[2] for r in rows), sum(r[3] for r in rows)
    return {
        "labelled": len(asked),
        "found_and_right": round(sum(f for _, f in asked) / len(asked), 4) if asked else None,
        "ci95": cluster_interval([f for _, f in asked], [n for n, _ in asked]) if asked else None,
        "facts": stated,
        "wrong_facts": round(wrong / stated, 4) if stated else None,
    }
