"""Decision events: what was stated at a decision point, and what the sources settle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zerolayer.decisions.ledger import Fact
from zerolayer.values import Value


@dataclass(frozen=True)
class DecisionEvent:
    """One decision. Offsets are code points of the text; verdict is consistent, contradiction,
    contested or unsupported, and unsure where a probe could not tell (a probe's event has no slot
    and nothing settled, its stated value is the sentence as a Text); action is what was done
    (observe, steer, enforce, repair, stop); reason says in one sentence why the settled value
    holds, or why there is none."""

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
    reason: str = ""
    facts: tuple[Fact, ...] = ()

    def to_json(self, with_text: bool = False) -> dict[str, Any]:
        """The event as JSON; without any source text by default, so that it may be logged."""
        data = {
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
            "reason": self.reason,
        }
        if with_text:
            data["quotes"] = [
                {"source": f.source_id, "start": f.start, "end": f.end, "quote": f.quote}
                for f in self.facts
            ]
        return data
