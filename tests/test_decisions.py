"""Ledger, arbitration and the reading of answers, on wordings of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ska_builder.language import read_norms
from zerolayer.decisions.arbitration import Settlement, settle
from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.decisions.machine import CONTESTED, DecisionMachine, read_slot
from zerolayer.decisions.statements import read_statements
from zerolayer.errors import ZerolayerError
from zerolayer.evaluation import statements
from zerolayer.evaluation.stats import read_items
from zerolayer.readings import Reading, RuleSet, Slot

PERIOD = Slot("payment period", "duration", ("time to pay",))
FRIST = Slot("付款期限", "duration")
RULES = ["The amendment prevails over the contract, and the contract over the letter."]


def source(
    i: str, kind: str, text: str, date: str | None = None, rank: int | None = None
) -> Source:
    return Source(i, kind, date, rank, text)


def settled(
    sources: list[Source], rules: list[str], slot: Slot = PERIOD, question: str | None = None
) -> Settlement:
    ledger = Ledger.from_sources(sources, [slot], question)
    return settle(slot.name, ledger, read_norms(rules), question)


def shown(found: Settlement) -> object:
    return found.value.to_json() if found.value is not None else found.status


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The payment period is thirty (30) days.", "30"),
        ("1. Payment period: 30 days, counted from delivery.", "30"),
        ("Thirty days is the payment period.", "30"),
        ("The payment\nperiod amounts to 30 days.", "30"),
        ("The payment period of 14 days is replaced by 30 days.", "30"),
        ("The payment period is 30 days instead of 14 days.", "30"),
        ("The payment period is raised from 14 days to 30 days.", "30"),
        ("The payment period is not 14 days but 30 days.", "30"),
        ("A notice period of 90 days applies; the payment period is 30 days.", "30"),
    ],
)
def test_what_a_source_states(text: str, count: str) -> None:
    assert shown(settled([source("S", "contract", text)], [])) == {"count": count, "unit": "day"}


@pytest.mark.parametrize(
    "text",
    [
        "The payment period is set out in annex 4.",
        "If the payment period were 30 days, interest would run.",
        "The warranty lasts 30 days.",
    ],
)
def test_what_states_nothing(text: str) -> None:
    assert settled([source("S", "contract", text)], []).status == "unsupported"


def test_order_of_kinds() -> None:
    sources = [
        source("S1", "contract", "The payment period is 30 days."),
        source("S2", "amendment", "The payment period is 45 days."),
        source("S3", "letter", "Payment period: 60 days."),
    ]
    found = settled(sources, RULES)
    assert shown(found) == {"count": "45", "unit": "day"} and "S2" in found.reason
    silent = [source("S2", "amendment", "Pallets are exchanged."), *sources[::2]]
    assert shown(settled(silent, RULES)) == {"count": "30", "unit": "day"}


def test_ties_and_contested() -> None:
    sources = [
        source("A", "contract", "The payment period is 30 days.", "2024-01-01", 1),
        source("B", "contract", "The payment period is 45 days.", "2025-01-01", 1),
    ]
    assert settled(sources, RULES).status == "contested"
    later = [*RULES, "Of two sources of one kind, the later one counts."]
    assert shown(settled(sources, later)) == {"count": "45", "unit": "day"}
    same_day = [sources[0], source("B", "contract", sources[1].text, "2024-01-01", 1)]
    assert settled(same_day, later).status == "contested"
    other = [sources[0], source("C", "web page", "The payment period is 9 days.")]
    assert settled(other, RULES).status == "contested"


def test_orders_of_several_rules_rank_kinds_together() -> None:
    rules = [
        "The amendment prevails over the master agreement.",
        "The master agreement prevails over the order form; of two order forms, the later one.",
        "The data protection annex prevails over the order form.",
    ]

    def one(kind: str, days: int, day: str | None = None) -> Source:
        return source(f"{kind}{days}", kind, f"The payment period is {days} days.", day)

    amendment, master = one("amendment", 10), one("master agreement", 20)
    annex, form = one("data protection annex", 30), one("order form", 40, "2025-05-01")
    found = settled([form, amendment], rules)
    assert shown(found) == {"count": "10", "unit": "day"}, "by way of the master agreement"
    assert "amendment prevails over order form" in found.reason
    assert shown(settled([master, form], rules)) == {"count": "20", "unit": "day"}
    assert settled([master, annex, form], rules).status == "contested", "no rule compares the two"
    later = one("order form", 50, "2025-06-01")
    found = settled([form, later], rules)
    assert shown(found) == {"count": "50", "unit": "day"}
    assert "the later date counts" in found.reason
    circle = [*rules, "The order form prevails over the amendment."]
    assert settled([form, amendment], circle).status == "contested"


def test_a_rule_may_set_the_value_itself() -> None:
    sources = [source("S", "contract", "The payment period is 30 days.")]
    found = settled(sources, ["The **payment period** must be exactly 45 days."])
    assert shown(found) == {"count": "45", "unit": "day"} and "rule" in found.reason
    assert settled([], ["The **payment period** must be at most 45 days."]).status == "unsupported"
    case = ["The **payment period** must be exactly 45 days, except for samples."]
    question = "What is the payment period for samples?"
    assert shown(settled(sources, case, question=question)) == {"count": "30", "unit": "day"}
    machine = DecisionMachine(RuleSet(read_norms(case), [PERIOD]))
    events = machine.check("The payment period is 45 days.", [])
    assert [e.verdict for e in events] == ["consistent"]


def test_dates_are_compared_as_dates() -> None:
    sources = [
        source("A", "amendment", "The payment period is 30 days.", "20250615"),
        source("B", "amendment", "The payment period is 45 days.", "2025-03-01"),
    ]
    found = settled(sources, ["Of two amendments, the later one."])
    assert shown(found) == {"count": "30", "unit": "day"}


def test_equal_in_another_unit_needs_no_rule() -> None:
    sources = [
        source("A", "contract", "The payment period is two weeks."),
        source("B", "letter", "Payment period: fourteen (14) days."),
    ]
    assert settled(sources, []).status == "settled"


def test_a_limited_clause_speaks_for_its_case_alone() -> None:
    sources = [
        source("A", "amendment", "For samples only, the payment period is 9 days."),
        source("B", "contract", "The payment period is 30 days."),
    ]
    question = "What is the payment period for regular goods, samples aside?"
    assert shown(settled(sources, RULES, question=question)) == {"count": "30", "unit": "day"}
    question = "What is the payment period for samples?"
    assert shown(settled(sources, RULES, question=question)) == {"count": "9", "unit": "day"}


def test_chinese() -> None:
    sources = [
        source("甲", "主合同", "第三条 付款期限为三十日，自发票送达时算起。"),
        source("乙", "补充协议", "付款期限由三十日改为６０天。"),
    ]
    found = settled(sources, ["补充协议优先于主合同。"], FRIST)
    assert shown(found) == {"count": "60", "unit": "day"}
    assert "乙" in found.reason
    assert settled(sources, [], FRIST).status == "contested"


def test_check_judges_an_answer() -> None:
    machine = DecisionMachine(RuleSet(read_norms(RULES), [PERIOD]))
    sources = [source("S", "contract", "The payment period is 30 days.")]

    def verdicts(text: str) -> list[tuple[str, str]]:
        return [(text[e.start : e.end], e.verdict) for e in machine.check(text, sources)]

    assert verdicts("The payment period is **30 days**.") == [("30 days", "consistent")]
    assert verdicts("The payment period is 45 days.") == [("45 days", "contradiction")]
    assert verdicts("| Point | Entry |\n|---|---|\n| Time to pay | 45 days |") == [
        ("45 days", "contradiction")
    ]
    assert verdicts("The payment period is not 45 days.") == []
    assert verdicts("Is the payment period 45 days?") == []
    assert machine.check("The payment period is 45 days.", [])[0].verdict == "unsupported"
    assert machine.check("", sources) == []


def test_read_slot() -> None:
    assert [v.to_json() for v in read_slot("It is 30 days.", PERIOD)] == [
        {"count": "30", "unit": "day"}
    ]
    assert read_slot("The sources disagree on the payment period.", PERIOD) == [CONTESTED]
    assert read_slot("I do not know.", PERIOD) == []


def test_ledger_roundtrip_and_bad_sources() -> None:
    ledger = Ledger.from_sources(
        [source("S", "contract", "The payment period is 30 days.")], [PERIOD]
    )
    again = Ledger.from_json(ledger.to_json())
    assert again.entries == ledger.entries
    with pytest.raises(ZerolayerError, match="version"):
        Ledger.from_json({"version": 99})
    with pytest.raises(ZerolayerError, match="empty"):
        Source.from_json({"id": "S", "kind": "contract", "text": "  "})


def test_hostile_text_ends_in_time() -> None:
    """No pattern may take more than linear time on long, repetitive text."""
    machine = DecisionMachine(RuleSet([], [PERIOD]))
    long = "the payment period of 30 days or 45 days, " * 400
    assert len(long) > 15_000
    machine.check(long, [source("S", "contract", long)])
    machine.check("if " * 5000 + "30 days", [])


def test_statements_set(data: Path) -> None:
    """A floor under the evaluation set, so that a change that costs much is seen."""
    figures = statements.evaluate(read_items(data / "eval", "statements"))
    assert figures["precision"] >= 0.88 and figures["recall"] >= 0.9, figures


SENTENCES = Path(__file__).with_name("decision_sentences.jsonl").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", SENTENCES, ids=range(len(SENTENCES)))
def test_sentences(line: str) -> None:
    """Stated, denied, supposed, asked, replaced: in wordings that no evaluation set has."""
    case = json.loads(line)
    slots = [Slot.from_json(s) for s in case["slots"]]
    said = read_statements(case["text"], slots)
    assert [case["text"][s.start : s.end] for s in said] == case["stated"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"name": "x"}, "type: Field required"),
        ({"name": 3, "type": "date"}, "name: Input should be a valid string"),
        (
            {"name": "x", "type": "choice", "choices": "ab"},
            "choices: Input should be a valid tuple",
        ),
        (["x"], "a slot is malformed"),
    ],
)
def test_a_malformed_slot_is_said(data: object, said: str) -> None:
    with pytest.raises(ZerolayerError, match=said):
        Slot.from_json(data)
    reading = {"rule": "R", "line": 1, "kind": "consistency", "language": "en", "slot": data}
    with pytest.raises(ZerolayerError, match="a reading is malformed: slot"):
        Reading.from_json(reading)
