"""Verdicts: a stated value against what the sources settle and against the rules' bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zerolayer.decisions.arbitration import Settlement
from zerolayer.decisions.sentences import fold
from zerolayer.readings import Reading
from zerolayer.values import Value, compare, renderings, same, value_from_json

# Which outcomes of compare(stated, limit) keep a bound.
KEEPS = {"<=": (-1, 0), "<": (-1,), ">=": (0, 1), ">": (1,), "=": (0,)}
WORDS = {
    "en": {"<=": "at most", "<": "below", ">=": "at least", ">": "above", "=": "exactly"},
    "zh": {"<=": "不超过", "<": "低于", ">=": "不少于", ">": "高于", "=": "等于"},
}


def judge(
    stated: Value, found: Settlement, readings: Sequence[Reading], sentence: str
) -> tuple[str, str]:
    """(verdict, reason) of a statement of the slot that `found` settles.

    A value that breaks a bound is a contradiction whatever the sources say, as a bound is what
    the rules themselves state of the slot.

    Args:
        sentence: where the value is stated; a bound's exception that is named there lifts it.
    """
    for reading in readings:
        if (
            reading.kind == "bound"
            and reading.slot is not None
            and reading.slot.name == found.slot
            and keeps(reading.details, stated) is False
            and not _excepted(reading, sentence)
        ):
            return "contradiction", _broken(reading)
    if found.status != "settled" or found.value is None:
        return found.status, found.reason
    return ("consistent" if same(stated, found.value) else "contradiction"), found.reason


def keeps(details: dict[str, Any], stated: Value) -> bool | None:
    """Whether a value keeps a bound; None where that cannot be told.

    It cannot for a bound under a condition, a share of something, or values without an order
    (days and months, two currencies).
    """
    operator, limit = details.get("operator"), details.get("value")
    share = isinstance(limit, dict) and limit.get("of") is not None
    if details.get("when") or share:
        return None
    if operator == "in" and isinstance(limit, list):
        return any(same(stated, value_from_json(stated.type, one)) for one in limit)
    if operator == "between" and isinstance(limit, list) and len(limit) == 2:
        low, high = (_compared(stated, one) for one in limit)
        return None if low is None or high is None else low >= 0 and high <= 0
    if operator not in KEEPS:
        return None
    order = _compared(stated, limit)
    return None if order is None else order in KEEPS[operator]


def _compared(stated: Value, limit: Any) -> int | None:
    try:
        return compare(stated, value_from_json(stated.type, limit))
    except ValueError:
        return None


def _excepted(reading: Reading, sentence: str) -> bool:
    folded = fold(sentence)
    return any(fold(str(case)) in folded for case in reading.details.get("except", ()))


def _broken(reading: Reading) -> str:
    assert reading.slot is not None
    limit, operator = reading.details["value"], reading.details["operator"]
    language = reading.language
    limits = limit if isinstance(limit, list) else [limit]
    shown = [renderings(value_from_json(reading.slot.type, one), language)[0] for one in limits]
    if operator == "between":
        said = f"{shown[0]}至{shown[1]}" if language == "zh" else f"{shown[0]} to {shown[1]}"
    elif operator == "in":
        said = "、".join(shown) if language == "zh" else " or ".join(shown)
    else:
        gap = "" if language == "zh" else " "
        said = f"{WORDS[language][operator]}{gap}{shown[0]}"
    return f"规则要求{said}" if language == "zh" else f"the rule allows {said}"
