"""Turns of a conversation: what was asked, what holds for it, and who stated which value where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zerolayer.decisions.arbitration import Settlement
from zerolayer.decisions.ledger import VERSION as LEDGER_VERSION
from zerolayer.decisions.ledger import Ledger
from zerolayer.values import Value, value_from_json


@dataclass(frozen=True)
class Said:
    """A value that stands in a turn at text[start:end], and who said it ("user", "answer")."""

    slot: str
    value: Value
    turn: int
    speaker: str
    start: int
    end: int
    quote: str

    def to_json(self) -> dict[str, Any]:
        return {
            "slot": self.slot,
            "type": self.value.type,
            "value": self.value.to_json(),
            "turn": self.turn,
            "speaker": self.speaker,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Said:
        return cls(
            data["slot"],
            value_from_json(data["type"], data["value"]),
            data["turn"],
            data["speaker"],
            data["start"],
            data["end"],
            data["quote"],
        )


@dataclass
class Turn:
    """One question, what holds for the slots that it asks for, and what was answered."""

    number: int
    question: str
    decisions: tuple[Settlement, ...] = ()
    case_turns: tuple[int, ...] = ()  # turns whose words decide the case, the nearest first
    said: tuple[Said, ...] = ()
    answer: str | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that the question asks for."""
        return tuple(d.slot for d in self.decisions)

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "answer": self.answer,
            "case_turns": list(self.case_turns),
            "decisions": [_settlement_to_json(d) for d in self.decisions],
            "said": [s.to_json() for s in self.said],
        }

    @classmethod
    def from_json(cls, number: int, data: Mapping[str, Any]) -> Turn:
        """Raises KeyError, TypeError or ValueError where the data is no turn."""
        if not isinstance(data["question"], str) or not isinstance(data["answer"], str | None):
            raise TypeError(f"question and answer of turn {number} must be texts")
        if any(type(n) is not int or not 1 <= n <= number for n in data["case_turns"]):
            raise ValueError(f"case_turns of turn {number} are {data['case_turns']!r}")
        return cls(
            number,
            data["question"],
            tuple(_settlement_from_json(d) for d in data["decisions"]),
            tuple(data["case_turns"]),
            tuple(Said.from_json(s) for s in data["said"]),
            data["answer"],
        )


def _settlement_to_json(found: Settlement) -> dict[str, Any]:
    facts = Ledger(list(found.facts)).to_json()["facts"]
    value = None
    if found.value is not None:
        value = {"type": found.value.type, "value": found.value.to_json()}
    return {
        "slot": found.slot,
        "status": found.status,
        "value": value,
        "facts": facts,
        "reason": found.reason,
    }


def _settlement_from_json(data: Mapping[str, Any]) -> Settlement:
    value = data["value"]
    ledger = Ledger.from_json({"version": LEDGER_VERSION, "sources": [], "facts": data["facts"]})
    return Settlement(
        data["slot"],
        data["status"],
        None if value is None else value_from_json(value["type"], value["value"]),
        tuple(ledger.entries),
        data["reason"],
    )
