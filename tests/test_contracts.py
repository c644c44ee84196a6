"""The shipped contract rules on clauses of our own, and their evaluation against labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ska_builder.packs import contract_slots
from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.decisions.sentences import find_cues, fold
from zerolayer.evaluation import cuad
from zerolayer.readings import Slot

CLAUSES = [
    ("This Supply Agreement is entered into as of the 3rd day of May, 2011.", "effective date", 1),
    (
        "This Agreement (the “Agreement”), made this 4th day of June 2012 by A and B, …",
        "effective date",
        1,
    ),
    ("Each invoice is dated on the day of shipment, such as 5 May 2011.", "effective date", 0),
    ("The Term shall remain in effect until December 31, 2019.", "expiration date", 1),
    ("The Seller delivered the first lot on December 31, 2019.", "expiration date", 0),
    ("It shall automatically be renewed for successive terms of two (2) years.", "renewal term", 1),
    ("The licence may be renewed in writing.", "renewal term", 0),
    (
        "The lease is renewed for another year unless either side objects sixty (60) days prior to "
        "the end of the current term.",
        "renewal notice period",
        1,
    ),
    ("Goods are inspected ten (10) days prior to shipment.", "renewal notice period", 0),
    ("This deed shall be governed by the laws of the State of New York.", "governing law", 1),
    ("It is construed under, and in accordance with, the laws of England.", "governing law", 1),
    ("Acme Inc., a corporation organized under the laws of Delaware.", "governing law", 0),
]


@pytest.mark.parametrize(("clause", "slot", "count"), CLAUSES)
def test_clauses(clause: str, slot: str, count: int) -> None:
    ledger = Ledger.from_sources([Source("S", "contract", None, None, clause)], contract_slots())
    assert len(ledger.facts(slot)) == count, ledger.entries


def test_a_value_belongs_to_one_slot_unless_both_are_named_in_one_breath() -> None:
    slots = [Slot("notice period", "duration"), Slot("payment period", "duration")]

    def facts(text: str) -> list[str]:
        ledger = Ledger.from_sources([Source("S", "contract", None, None, text)], slots)
        return [f.slot for f in ledger.entries]

    text = "The notice period starts with receipt, and the payment period is 30 days."
    assert facts(text) == ["payment period"]
    both = "The notice period and the payment period are 30 days."
    assert facts(both) == ["notice period", "payment period"]


def test_a_wording_needs_all_its_parts_in_order() -> None:
    slot = Slot("venue", "text", ("(governed) … laws",))

    def cues(text: str) -> list[str]:
        return [
            text[c.start : c.end] for c in find_cues(fold(text), (slot,)) if c.end - c.start > 3
        ]

    assert cues("It is governed by the laws of Utah.") == ["laws"]
    assert cues("The laws by which it is governed.") == []
    assert cues("It is governed " + "x " * 200 + "laws.") == [], "too far apart"


def test_evaluation(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(
        "This Agreement is made as of May 3, 2011. It is governed by the laws of Ohio.", "utf-8"
    )
    answers = {"Effective Date": "5/3/11", "Governing Law": "Utah", "Renewal Term": "perpetual"}
    labels = {c: {"answer": answers.get(c, "")} for c in cuad.SLOT_OF}
    items = [{"doc_id": "a", "file": "../a.txt", "labels": labels}]
    figures = cuad.evaluate(items, tmp_path, contract_slots())
    assert (figures["labelled"], figures["found_and_right"]) == (2, 0.5)
    assert (figures["facts"], figures["wrong_facts"]) == (2, 0.5)
    assert json.dumps(figures)
    duration = Slot("renewal term", "duration")
    assert len(cuad.labelled("5 years; 2 years", duration)) == 2
    assert cuad.labelled("[]/[]/[]", Slot("expiration date", "date")) == []
