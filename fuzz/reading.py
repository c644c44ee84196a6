"""Coverage-guided fuzzing of the value reader, the ledger and the checker.

    python fuzz/reading.py -max_total_time=600

Laws: every offset lies in the text and in order; what is found at a place reads the same alone;
a value written down is found again; a text checked against itself contradicts nothing.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["zerolayer.values", "zerolayer.decisions"]):
    from zerolayer.decisions.ledger import Ledger, Source
    from zerolayer.decisions.machine import DecisionMachine
    from zerolayer.decisions.sentences import fold, split
    from zerolayer.readings import RuleSet, Slot
    from zerolayer.values import find_values, renderings, same, value_from_json

TYPES = ("duration", "money", "date", "percent", "number", "quantity", "choice")
CHOICES = ("Lisbon", "New York", "上海")
SLOTS = [
    Slot("payment period", "duration", ("time to pay",)),
    Slot("付款期限", "duration"),
    Slot("liability cap", "money"),
    Slot("effective date", "date"),
    Slot("seat", "choice", (), CHOICES),
]
# Raw bytes rarely become a sentence, so half of the input picks from these.
WORDS = tuple(
    "thirty (30) days;45 days;5;1,000;.;/;USD ;€;million;%;-;17 March 2025;03/04/2027;the ;is ;"
    "payment period ;liability cap ;effective date ;not ;: ;三十;日;人民币;万元;百分之;付款期限;为;"
    "二〇二五年;。;\n;| ;**;or ;to ;Lisbon;Q1;half ;a ;business ;month;twelve;hundred ;１０".split(
        ";"
    )
)


def text_of(data: bytes) -> str:
    """A text from the fuzzer's bytes: words by index, and free characters."""
    provider = atheris.FuzzedDataProvider(data)
    parts = []
    while provider.remaining_bytes() and len(parts) < 60:
        if provider.ConsumeBool():
            parts.append(WORDS[provider.ConsumeIntInRange(0, len(WORDS) - 1)])
        else:
            parts.append(provider.ConsumeUnicodeNoSurrogates(provider.ConsumeIntInRange(1, 6)))
    return "".join(parts)


def check_one(data: bytes) -> None:
    """All laws on one text."""
    text = text_of(data)
    assert len(fold(text)) == len(text)
    at = 0
    for part in split(text):
        assert at <= part.start < part.end <= len(text)
        at = part.end
    for kind in TYPES:
        last = 0
        for found in find_values(text, {kind}, CHOICES):
            assert last <= found.start < found.end <= len(text), (kind, text)
            last = found.end
            value = found.value
            assert value.type == kind
            assert same(value_from_json(kind, value.to_json()), value), (kind, text, value)
            if found.ambiguous or value.to_json() is None or "low" in str(value.to_json()):
                continue
            for language in ("en", "zh"):
                for written in renderings(value, language):
                    again = [f.value for f in find_values(written, {kind}, CHOICES)]
                    assert any(same(a, value) for a in again), (text, value, written, again)
    if not text.strip():
        return
    source = Source("S", "contract", None, None, text)
    ledger = Ledger.from_sources([source], SLOTS)
    for fact in ledger.entries:
        assert 0 <= fact.start < fact.end <= len(text)
    assert Ledger.from_json(ledger.to_json()).entries == ledger.entries
    for event in DecisionMachine(RuleSet([], SLOTS)).check(text, [source]):
        assert 0 <= event.start < event.end <= len(text)


if __name__ == "__main__":
    atheris.Setup(sys.argv, check_one)
    atheris.Fuzz()
