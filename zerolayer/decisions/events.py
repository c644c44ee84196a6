"""Decision events: what was stated at a decision point, and what the sources settle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zerolayer.values import Value


@dataclass(frozen=True)
class DecisionEvent:
    """One decision. Offsets are code points of the text; verdict is consistent, contradiction,
    contested or unsupported; action is what was done (observe, steer, enforce, repair, stop)."""

    rule: str
    slot: str
    start: int
    end: int
    stated: Value
    settled: Value | None
    verdict: str
    action: str
    sources: tuple[str, ...]
    microseconds: int = 0

    def to_json(self) -> dict[str, Any]:
        """Without any source text, so that it may be logged."""
        return {
            "rule": self.rule,
            "slot": self.slot,
            "start": self.start,
            "end": self.end,
            "stated": self.stated.to_json(),
            "settled": self.settled.to_json() if self.settled is not None else None,
            "verdict": self.verdict,
            "action": self.action,
            "sources": list(self.sources),
            "microseconds": self.microseconds,
        }
