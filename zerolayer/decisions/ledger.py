"""The ledger: what sources state for each slot, every fact with its source, place and quote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any

from zerolayer.decisions import cues
from zerolayer.decisions.sentences import Part, find_cues, fold, split, stems
from zerolayer.decisions.statements import statements_of
from zerolayer.errors import ZerolayerError
from zerolayer.readings import Slot
from zerolayer.values import Value, find_values, value_from_json

VERSION = 1
# Between two names that share a value.
_TOGETHER = re.compile(r"\W*(?:and|or|as well as|及|和|与|以及)?\W*(?:the\W*)?")


@dataclass(frozen=True)
class Source:
    """A document: `kind` is the name that rules use, `date` ISO 8601, a larger rank is higher."""

    id: str
    kind: str
    date: str | None
    rank: int | None
    text: str

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Source:
        """Raises ZerolayerError: a key is missing, the text empty, the date not ISO 8601."""
        for key in ("id", "kind", "text"):
            if not isinstance(data.get(key), str):
                raise ZerolayerError(f"a source needs {key!r} as text, not {data.get(key)!r}")
        day, rank = data.get("date"), data.get("rank")
        try:
            day is None or date.fromisoformat(day)
        except (TypeError, ValueError) as error:
            raise ZerolayerError(
                f"source {data['id']} has the date {day!r}; write it as 2025-06-15"
            ) from error
        if rank is not None and type(rank) is not int:
            raise ZerolayerError(f"source {data['id']}: rank must be a whole number, not {rank!r}")
        if not data["text"].strip():
            raise ZerolayerError(f"source {data['id']} is empty")
        return cls(data["id"], data["kind"], data.get("date"), data.get("rank"), data["text"])


@dataclass(frozen=True)
class Fact:
    """A source states `value` for a slot at text[start:end].

    `scope` is the phrase that names a case; `limited` tells that it says so in so many words
    ("for samples only, …"), where "for adults the dose is …" may just be how the clause speaks.
    """

    slot: str
    value: Value
    source_id: str
    start: int
    end: int
    quote: str
    scope: str = ""
    limited: bool = False


@dataclass
class Ledger:
    """Facts of all sources, and what is needed of the sources to settle them."""

    entries: list[Fact] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)

    @classmethod
    def from_sources(
        cls, sources: Sequence[Source], slots: Sequence[Slot], question: str | None = None
    ) -> Ledger:
        """Read the sources.

        Args:
            question: helps to find a clause that states the slot without naming it.

        Raises:
            ZerolayerError: two sources with one id.
        """
        names = Counter(s.id for s in sources)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ZerolayerError(f"two sources have the id {twice[0]!r}; give each its own")
        ledger = cls(sources={s.id: s for s in sources})
        for source in sources:
            found = [fact for slot in slots for fact in _facts(source, slot, question)]
            ledger.entries += _one_slot_each(source, slots, found)
        return ledger

    def facts(self, slot: str) -> list[Fact]:
        """The facts of one slot, in the order of sources and position."""
        return [f for f in self.entries if f.slot == slot]

    def to_json(self) -> dict[str, Any]:
        """The facts, versioned; sources without their text."""
        return {
            "version": VERSION,
            "sources": [
                {"id": s.id, "kind": s.kind, "date": s.date, "rank": s.rank}
                for s in self.sources.values()
            ],
            "facts": [
                {
                    "slot": f.slot,
                    "type": f.value.type,
                    "value": f.value.to_json(),
                    "source": f.source_id,
                    "start": f.start,
                    "end": f.end,
                    "quote": f.quote,
                    "scope": f.scope,
                    "limited": f.limited,
                }
                for f in self.entries
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Ledger:
        """Raises ZerolayerError for another version."""
        if data.get("version") != VERSION:
            raise ZerolayerError(
                f"ledger has version {data.get('version')!r}, this zerolayer reads {VERSION}"
            )
        return cls(
            [
                Fact(
                    f["slot"],
                    value_from_json(f["type"], f["value"]),
                    f["source"],
                    f["start"],
                    f["end"],
                    f["quote"],
                    f["scope"],
                    f["limited"],
                )
                for f in data["facts"]
            ],
            {
                s["id"]: Source(s["id"], s["kind"], s["date"], s["rank"], " ")
                for s in data["sources"]
            },
        )


def _facts(source: Source, slot: Slot, question: str | None) -> list[Fact]:
    parts = split(source.text)
    facts = [
        Fact(
            slot.name,
            said.value,
            source.id,
            said.start,
            said.end,
            source.text[part.start : part.end].strip(),
            *_scope(source.text[part.start : part.end], slot),
        )
        for part in parts
        for said in statements_of(source.text, part, (slot,), source=True)[0]
    ]
    if not facts and question:
        facts = _unnamed(source, slot, question, parts)
    return facts


def _one_slot_each(source: Source, slots: Sequence[Slot], facts: list[Fact]) -> list[Fact]:
    """A value that two slots lay claim to is that of the name which governs it, unless both are
    named in one breath ("the notice period and the payment period are 30 days")."""
    claims: dict[tuple[int, int], set[str]] = {}
    for fact in facts:
        claims.setdefault((fact.start, fact.end), set()).add(fact.slot)
    shared = {span for span, names in claims.items() if len(names) > 1}
    lost: set[tuple[str, int, int]] = set()
    for part in split(source.text) if shared else ():
        inside = [span for span in shared if part.start <= span[0] < part.end]
        if not inside:
            continue
        rivals = tuple(s for s in slots if any(s.name in claims[span] for span in inside))
        folded = fold(source.text[part.start : part.end])
        named = find_cues(folded, rivals)
        if any(_TOGETHER.fullmatch(folded[a.end : b.start]) for a, b in pairwise(named)):
            continue
        for said in statements_of(source.text, part, rivals, source=True, every=True)[0]:
            for name in claims.get((said.start, said.end), set()) - {said.slot}:
                lost.add((name, said.start, said.end))
    return [f for f in facts if (f.slot, f.start, f.end) not in lost]


def _unnamed(source: Source, slot: Slot, question: str, parts: Sequence[Part]) -> list[Fact]:
    """A clause that answers the question in other words: one value, and shared content words."""
    wanted = _content(question + " " + slot.name)
    best: tuple[int, Part] | None = None
    for part in parts:
        body = source.text[part.start : part.end]
        values = find_values(body, {slot.type}, slot.choices)
        if len(values) != 1 or values[0].ambiguous:
            continue
        shared = len(wanted & _content(body))
        if shared >= 2 and (best is None or shared > best[0]):
            best = (shared, part)
    if best is None:
        return []
    part = best[1]
    body = source.text[part.start : part.end]
    value = find_values(body, {slot.type}, slot.choices)[0]
    return [
        Fact(
            slot.name,
            value.value,
            source.id,
            part.start + value.start,
            part.start + value.end,
            body.strip(),
            *_scope(body, slot),
        )
    ]


def _content(text: str) -> set[str]:
    """Stems of content words; of Chinese, pairs of neighbouring signs."""
    folded = fold(text)
    english = {s for s in stems(folded) if len(s) >= 3} - {
        s for word in cues.GENERIC for s in (word, *stems(word))
    }
    chinese = re.findall(r"[\u4e00-\u9fff]+", cues.GENERIC_ZH.sub(" ", folded))
    return english | {run[i : i + 2] for run in chinese for i in range(len(run) - 1)}


def _scope(body: str, slot: Slot) -> tuple[str, bool]:
    """The phrase that names a case for which a clause speaks, and whether it limits it to that."""
    folded = fold(body).strip()
    named = find_cues(folded, (slot,))
    if not named:
        return "", False
    head = folded[: named[0].start]
    trailing = cues.TRAILING_CASE.search(folded, named[0].end)
    if trailing:
        return trailing[0], True
    # "If the buyer pays late, interest of …" is how such a clause speaks; "for samples, …" limits.
    condition = cues.CONDITION.match(head) is not None
    limited = bool(cues.LIMITED.search(head)) or (
        head.rstrip().endswith((",", "，")) and not condition
    )
    head = head.strip(" ,，:：")
    for pattern in (cues.LEADING_CASE, cues.LEADING_CASE_ZH):
        match = pattern.match(head)
        if match and not cues.UNIVERSAL.search(match[1]):
            return match[1], limited
    return "", False


def applies(fact: Fact, question: str | None) -> bool:
    """Whether a fact speaks of the case that is asked about.

    A limited fact does where the question names its whole case and does not leave it out. Any
    other fact does unless the question names a part of its case alone ("weak kidneys" against
    "healthy kidneys").
    """
    wanted = _content(fact.scope)
    if not wanted:
        return not fact.limited
    if not question:
        return not fact.limited
    folded = fold(question)
    asked = _content(question)
    shared = wanted & asked
    for word in shared:
        at = folded.find(word)
        if cues.LEAVES_OUT_BEFORE.search(folded[:at]) or cues.LEAVES_OUT_AFTER.search(
            folded[at + len(word) :]
        ):
            return False
    if len(shared) >= 0.8 * len(wanted):
        return True
    return not fact.limited and not shared
