"""Typed values: what a slot can hold, their JSON forms, and when two of them are equal.

A value keeps the unit in which it was written; `canonical()` is what equality and order compare.
A year is 12 months, a quarter 3 months, a week 7 days; nothing else converts.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, TypeAlias

from zerolayer.errors import ZerolayerError

# unit -> (unit it is compared in, how many of them)
_BASE: dict[str, tuple[str, int]] = {
    "second": ("second", 1),
    "minute": ("minute", 1),
    "hour": ("hour", 1),
    "day": ("day", 1),
    "business day": ("business day", 1),
    "week": ("day", 7),
    "month": ("month", 1),
    "quarter": ("month", 3),
    "year": ("month", 12),
}
DURATION_UNITS = tuple(_BASE)
# Decimal would also take "1e999999", which no arithmetic here could bear.
_DECIMAL = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,15})?", re.ASCII)


def plain(number: Decimal) -> str:
    """A decimal without exponent and superfluous zeros: "45", "0.05", "-18"."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def fold_text(text: str) -> str:
    """Case and white space folded, as texts and choices are compared."""
    return " ".join(text.casefold().split())


@dataclass(frozen=True)
class Duration:
    """A length of time as counted in the text; `unit` is one of DURATION_UNITS."""

    count: Decimal
    unit: str
    type: ClassVar[str] = "duration"

    def to_json(self) -> dict[str, str]:
        return {"count": plain(self.count), "unit": self.unit}

    def canonical(self) -> Hashable:
        base, factor = _BASE[self.unit]
        return ("duration", base, self.count * factor)


@dataclass(frozen=True)
class Money:
    """An amount in a currency (ISO 4217)."""

    amount: Decimal
    currency: str
    type: ClassVar[str] = "money"

    def to_json(self) -> dict[str, str]:
        return {"amount": plain(self.amount), "currency": self.currency}

    def canonical(self) -> Hashable:
        return ("money", self.currency, self.amount)


@dataclass(frozen=True)
class Percent:
    """A share of a hundred; `of` is its base where the text names one."""

    percent: Decimal
    of: str | None = None
    type: ClassVar[str] = "percent"

    def to_json(self) -> dict[str, str]:
        data = {"percent": plain(self.percent)}
        if self.of is not None:
            data["of"] = self.of
        return data

    def canonical(self) -> Hashable:
        """Without `of`, which `same` compares only where both sides have it."""
        return ("percent", self.percent)


@dataclass(frozen=True)
class Date:
    """A calendar day, ISO 8601."""

    iso: str
    type: ClassVar[str] = "date"

    def to_json(self) -> str:
        return self.iso

    def canonical(self) -> Hashable:
        return ("date", self.iso)


@dataclass(frozen=True)
class Number:
    """A bare number; its unit is part of the slot's meaning."""

    number: Decimal
    type: ClassVar[str] = "number"

    def to_json(self) -> str:
        return plain(self.number)

    def canonical(self) -> Hashable:
        return ("number", self.number)


@dataclass(frozen=True)
class Quantity:
    """An amount with a physical unit (mg, ml, km), the unit as written."""

    amount: Decimal
    unit: str
    type: ClassVar[str] = "quantity"

    def to_json(self) -> dict[str, str]:
        return {"amount": plain(self.amount), "unit": self.unit}

    def canonical(self) -> Hashable:
        return ("quantity", self.unit, self.amount)


@dataclass(frozen=True)
class Choice:
    """One of a slot's choices."""

    text: str
    type: ClassVar[str] = "choice"

    def to_json(self) -> str:
        return self.text

    def canonical(self) -> Hashable:
        return ("choice", fold_text(self.text))


@dataclass(frozen=True)
class Text:
    """Free text, compared after folding of case and white space."""

    text: str
    type: ClassVar[str] = "text"

    def to_json(self) -> str:
        return self.text

    def canonical(self) -> Hashable:
        return ("text", fold_text(self.text))


@dataclass(frozen=True)
class Range:
    """Two values of one type, both included. A range never equals a single value."""

    low: Value
    high: Value

    @property
    def type(self) -> str:
        """The type of the ends, which is the slot's type."""
        return self.low.type

    def to_json(self) -> dict[str, Any]:
        return {"low": self.low.to_json(), "high": self.high.to_json()}

    def canonical(self) -> Hashable:
        return ("range", self.low.canonical(), self.high.canonical())


Value: TypeAlias = Duration | Money | Percent | Date | Number | Quantity | Choice | Text | Range
VALUE_TYPES = ("duration", "money", "percent", "date", "number", "quantity", "choice", "text")


def _decimal(data: object, what: str) -> Decimal:
    if isinstance(data, Decimal | int | float) and not isinstance(data, bool):
        data = format(Decimal(str(data)), "f") if Decimal(str(data)).is_finite() else str(data)
    if isinstance(data, str) and _DECIMAL.fullmatch(data.strip()):
        try:
            return Decimal(data.strip())
        except InvalidOperation:  # pragma: no cover - the pattern above admits decimals only
            pass
    raise ZerolayerError(f'{what} must be a decimal number such as "30" or "7.5", not {data!r}')


def _keys(type: str, data: object, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(data, dict) or any(key not in data for key in keys):
        names = " and ".join(f'"{key}"' for key in keys)
        raise ZerolayerError(f"a {type} value must be an object with {names}, not {data!r}")
    return data


def value_from_json(type: str, data: Any) -> Value:
    """The value of that type in its JSON form; {"low", "high"} gives a Range of any type.

    Raises ZerolayerError that names the offending part.
    """
    if type not in VALUE_TYPES:
        raise ZerolayerError(
            f"unknown value type {type!r}; it must be one of {', '.join(VALUE_TYPES)}"
        )
    if isinstance(data, dict) and "low" in data and "high" in data:
        low, high = value_from_json(type, data["low"]), value_from_json(type, data["high"])
        if isinstance(low, Range) or isinstance(high, Range):
            raise ZerolayerError(f"an end of a range must be one {type}, not a range: {data!r}")
        return Range(low, high)
    if type == "duration":
        found = _keys(type, data, ("count", "unit"))
        if found["unit"] not in DURATION_UNITS:
            raise ZerolayerError(
                f"unknown unit {found['unit']!r} of a duration; "
                f"it must be one of {', '.join(DURATION_UNITS)}"
            )
        return Duration(_decimal(found["count"], "the count of a duration"), found["unit"])
    if type == "money":
        found = _keys(type, data, ("amount", "currency"))
        currency = found["currency"]
        if not isinstance(currency, str) or not re.fullmatch(r"[A-Z]{3}", currency):
            raise ZerolayerError(
                f'a currency must be an ISO 4217 code such as "EUR", not {currency!r}'
            )
        return Money(_decimal(found["amount"], "the amount of money"), currency)
    if type == "percent":
        if not isinstance(data, dict):
            return Percent(_decimal(data, "a percentage"))
        found = _keys(type, data, ("percent",))
        of = found.get("of")
        if of is not None and not isinstance(of, str):
            raise ZerolayerError(f'the base "of" of a percentage must be text, not {of!r}')
        return Percent(_decimal(found["percent"], "a percentage"), of)
    if type == "quantity":
        found = _keys(type, data, ("amount", "unit"))
        if not isinstance(found["unit"], str) or not found["unit"]:
            raise ZerolayerError(f"the unit of a quantity must be text, not {found['unit']!r}")
        return Quantity(_decimal(found["amount"], "the amount of a quantity"), found["unit"])
    if type == "number":
        return Number(_decimal(data, "a number"))
    if type == "date":
        try:
            if not isinstance(data, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", data, re.ASCII):
                raise ValueError
            datetime.date.fromisoformat(data)
        except ValueError:
            raise ZerolayerError(
                f'a date must be a day in ISO 8601 such as "2025-03-17", not {data!r}'
            ) from None
        return Date(data)
    if not isinstance(data, str) or not data.strip():
        raise ZerolayerError(f"a {type} value must be a text that is not empty, not {data!r}")
    return Choice(data) if type == "choice" else Text(data)


def same(a: Value, b: Value) -> bool:
    """Whether two values are equal: same canonical form; `of` only counts if both have it."""
    if a.canonical() != b.canonical():
        return False
    if isinstance(a, Percent) and isinstance(b, Percent) and a.of is not None and b.of is not None:
        return fold_text(a.of) == fold_text(b.of)
    if isinstance(a, Range) and isinstance(b, Range):
        return same(a.low, b.low) and same(a.high, b.high)
    return True


def compare(a: Value, b: Value) -> int | None:
    """-1, 0 or 1 for a below, equal to, above b; None where they have no order.

    Days and months, two currencies, two types have none. Ranges are ordered where they do not
    overlap; a range and a single value likewise.
    """
    if isinstance(a, Range) or isinstance(b, Range):
        if same(a, b):
            return 0
        a_low, a_high = (a.low, a.high) if isinstance(a, Range) else (a, a)
        b_low, b_high = (b.low, b.high) if isinstance(b, Range) else (b, b)
        if compare(a_high, b_low) == -1:
            return -1
        return 1 if compare(a_low, b_high) == 1 else None
    left, right = a.canonical(), b.canonical()
    if left == right:
        return 0 if same(a, b) else None
    assert isinstance(left, tuple) and isinstance(right, tuple)
    if left[:-1] != right[:-1] or a.type in ("choice", "text"):
        return None
    return -1 if left[-1] < right[-1] else 1
