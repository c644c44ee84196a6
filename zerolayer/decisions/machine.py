"""The decision machine over finished text: find decisions, read them, judge them."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from zerolayer.decisions import cues
from zerolayer.decisions.arbitration import settle
from zerolayer.decisions.events import DecisionEvent
from zerolayer.decisions.judge import judge
from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.decisions.sentences import fold, split
from zerolayer.decisions.statements import read_statements
from zerolayer.readings import HasRules, Slot
from zerolayer.values import Text, Value, find_values

# What `read_slot` gives where an answer says that the sources disagree.
CONTESTED: Final = Text("contested")


class DecisionMachine:
    """Checks texts that come from anywhere against sources; needs no model."""

    def __init__(self, rules: HasRules) -> None:
        """
        Args:
            rules: a pack, or a RuleSet where there is none.
        """
        self.readings = list(rules.readings)
        self.slots = list(rules.slots)

    def check(
        self, text: str, sources: Sequence[Source], question: str = ""
    ) -> list[DecisionEvent]:
        """Decision events of a text in order of position.

        Args:
            question: what the text answers, where it is known. With the sentence of a statement
                it decides whether a clause limited to one case counts.
        """
        ledger = Ledger.from_sources(sources, self.slots, question or None)
        parts = split(text)
        events = []
        for said in read_statements(text, self.slots):
            began = time.perf_counter()
            part = parts[bisect_right(parts, said.start, key=lambda p: p.start) - 1]
            sentence = text[part.start : part.end]
            found = settle(said.slot, ledger, self.readings, question=f"{question} {sentence}")
            verdict, reason = judge(said.value, found, self.readings, sentence)
            own = next((r for r in self.readings if r.slot and r.slot.name == said.slot), None)
            events.append(
                DecisionEvent(
                    rule=own.rule if own else "",
                    slot=said.slot,
                    start=said.start,
                    end=said.end,
                    stated=said.value,
                    settled=found.value,
                    verdict=verdict,
                    action="observe",
                    sources=tuple(dict.fromkeys(f.source_id for f in found.facts)),
                    microseconds=round((time.perf_counter() - began) * 1e6),
                    reason=reason,
                    facts=found.facts,
                )
            )
        return events


def read_slot(text: str, slot: Slot, question: str | None = None) -> list[Value]:
    """The values that a short answer states for the slot it was asked about.

    The slot's name may be missing ("It is 30 days."). [CONTESTED] where the answer says that the
    sources disagree; empty where no value can be read.
    """
    folded = fold(text)
    masked = re.sub(r"[*_]", " ", folded)
    if any(p.search(masked) for p in (*cues.OPEN, *cues.DISAGREE)):
        return [CONTESTED]
    said = [s.value for s in read_statements(text, [slot])]
    if said:
        return said
    found = find_values(text, {slot.type}, slot.choices)
    return [f.value for f in found if not f.ambiguous][:1]
