"""Bounds and settlements together give a verdict."""

from __future__ import annotations

from typing import Any

import pytest

from ska_builder.language import read_norms
from zerolayer.decisions.arbitration import Settlement
from zerolayer.decisions.judge import judge, keeps
from zerolayer.decisions.ledger import Source
from zerolayer.decisions.machine import DecisionMachine
from zerolayer.readings import Reading, RuleSet, Slot
from zerolayer.values import value_from_json


def days(n: int, unit: str = "day") -> dict[str, str]:
    return {"count": str(n), "unit": unit}


@pytest.mark.parametrize(
    ("operator", "limit", "stated", "kept"),
    [
        ("<=", days(30), days(30), True),
        ("<", days(30), days(30), False),
        (">=", days(2, "week"), days(14), True),
        (">", days(12, "month"), days(1, "year"), False),
        ("<=", days(1, "month"), days(30), None),  # days and months have no order
        ("between", [days(10), days(20)], days(21), False),
        ("between", [days(10), days(20)], days(10), True),
        ("in", [days(7), days(14)], days(2, "week"), True),
        ("in", [days(7), days(14)], days(8), False),
        ("~", days(7), days(8), None),
    ],
)
def test_operators(operator: str, limit: Any, stated: Any, kept: bool | None) -> None:
    value = value_from_json("duration", stated)
    assert keeps({"operator": operator, "value": limit}, value) is kept


def test_what_cannot_be_told_is_left_open() -> None:
    value = value_from_json("money", {"amount": "900", "currency": "USD"})
    limit = {"amount": "500", "currency": "USD"}
    assert keeps({"operator": "<=", "value": limit}, value) is False
    assert keeps({"operator": "<=", "value": limit, "when": "for tenants"}, value) is None
    assert keeps({"operator": "<=", "value": {"amount": "500", "currency": "EUR"}}, value) is None
    assert keeps({"operator": "<=", "value": "500 dollars"}, value) is None
    share = value_from_json("percent", {"percent": "40"})
    assert keeps({"operator": "<=", "value": {"percent": "30", "of": "price"}}, share) is None


RULE = "The **liability cap** must not exceed USD 500,000, except for gross negligence."
CAP = Slot("liability cap", "money")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("The liability cap is USD 900,000.", "contradiction"),
        ("The liability cap is USD 400,000.", "unsupported"),
        ("For gross negligence the liability cap is USD 900,000.", "unsupported"),
    ],
)
def test_a_bound_decides_without_a_source(text: str, verdict: str) -> None:
    machine = DecisionMachine(RuleSet(read_norms([RULE]), [CAP]))
    (event,) = machine.check(text, [])
    assert event.verdict == verdict
    assert ("at most USD 500,000" in event.reason) == (verdict == "contradiction")


def test_a_bound_outweighs_a_source_that_breaks_it() -> None:
    machine = DecisionMachine(RuleSet(read_norms([RULE]), [CAP]))
    text = "The liability cap is USD 900,000."
    (event,) = machine.check(text, [Source("C", "contract", None, None, text)])
    assert event.verdict == "contradiction"


def test_reasons_are_in_the_language_of_the_rule() -> None:
    slot = Slot("违约金", "percent")
    reading = Reading(
        "R", 1, "bound", "zh", slot, None, {"operator": "<=", "value": {"percent": "30"}}
    )
    found = Settlement("违约金", "unsupported", None, (), "")
    value = value_from_json("percent", {"percent": "40"})
    assert judge(value, found, [reading], "")[1] == "规则要求不超过30%"
