"""Typed values in English and Chinese: found in running text, compared, written."""

from zerolayer.values.find import Found, find_values
from zerolayer.values.render import renderings
from zerolayer.values.types import (
    Choice,
    Date,
    Duration,
    Money,
    Number,
    Percent,
    Quantity,
    Range,
    Text,
    Value,
    compare,
    same,
    value_from_json,
)

__all__ = [
    "Choice",
    "Date",
    "Duration",
    "Found",
    "Money",
    "Number",
    "Percent",
    "Quantity",
    "Range",
    "Text",
    "Value",
    "compare",
    "find_values",
    "renderings",
    "same",
    "value_from_json",
]
