"""Statements: places where a text gives a slot a value as holding.

A sentence is masked first (values and slot names become single signs), so that the patterns of
`cues` can say which values are denied, supposed, replaced or laid to a source that has lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zerolayer.decisions import cues
from zerolayer.decisions.sentences import Cue, Part, find_cues, fold, split
from zerolayer.readings import Slot
from zerolayer.values import Found, Value, find_values


@dataclass(frozen=True)
class Statement:
    """`text[start:end]` states `value` for the slot."""

    slot: str
    value: Value
    start: int
    end: int


def read_statements(text: str, slots: Sequence[Slot]) -> list[Statement]:
    """Statements of a text in order; denied, supposed, asked and rejected values are left out."""
    found: list[Statement] = []
    last: int | None = None
    header: list[str] = []
    for part in split(text):
        cells = _table_row(text, part)
        if cells is not None and not header:
            header = cells
        said, last = statements_of(text, part, tuple(slots), last)
        found += said
    return sorted(found, key=lambda s: s.start)


def _table_row(text: str, part: Part) -> list[str] | None:
    line = text[part.start : part.end].strip()
    return [c.strip() for c in line.split("|")] if line.count("|") >= 1 else None


def statements_of(
    text: str,
    part: Part,
    slots: tuple[Slot, ...],
    last: int | None = None,
    source: bool = False,
    every: bool = False,
) -> tuple[list[Statement], int | None]:
    """Statements of one part, and the slot that a following "it" would mean.

    Args:
        last: slot of the part before, for "The answer is …" after a question or a heading.
        source: the part belongs to a source document, where a bare conflict of two values is
            read as a replacement and not as a report.
        every: all values of a slot ("8 euros on paper and 2 euros by e-mail") and not only the
            one nearest to its name.
    """
    body = text[part.start : part.end]
    folded = fold(body)
    named = find_cues(folded, slots)
    if not named and last is not None and _refers(folded, slots[last], body):
        named = [Cue(last, 0, 0)]
    if not named:
        return [], None
    follow = named[-1].slot
    if part.question:
        return [], follow
    values = _values(body, slots, {c.slot for c in named})
    if not values:
        return [], follow
    masked, places = _mask(folded, values, named)
    concluded = 0
    if not source:
        if any(p.search(masked) for p in cues.OPEN):
            return [], None
        report = max((m.end() for p in cues.DISAGREE for m in p.finditer(masked)), default=0)
        if report:
            ends = [m.end() for p in cues.CONCLUSION for m in p.finditer(masked, report)]
            if not ends:
                return [], None
            concluded = min(ends)
    old = _excluded(masked, places, source)
    old |= {i for place, i in places.items() if place < concluded}
    alive = [v for i, v in enumerate(values) if i not in old]
    pairs = _assign(alive, named, slots, masked, every)
    return [
        Statement(slots[s].name, v.value, part.start + v.start, part.start + v.end)
        for s, v in pairs
    ], follow


def _refers(folded: str, slot: Slot, body: str) -> bool:
    values = find_values(body, {slot.type}, slot.choices)
    if not values:
        return False
    masked, _ = _mask(folded, values, [])
    return any(p.search(masked.strip(" *_")) for p in cues.REFERENCE)


def _values(body: str, slots: tuple[Slot, ...], wanted: set[int]) -> list[Found]:
    kinds: dict[str, set[str]] = {}
    for s in wanted:
        kinds.setdefault(slots[s].type, set()).update(slots[s].choices)
    found: list[Found] = []
    for kind, choices in kinds.items():
        # 03/04/2027 states neither of its two readings.
        found += [f for f in find_values(body, {kind}, sorted(choices)) if not f.ambiguous]
    return sorted(found, key=lambda f: f.start)


def _mask(folded: str, values: Sequence[Found], named: Sequence[Cue]) -> tuple[str, dict[int, int]]:
    """Values and names as single signs; places maps a sign's offset to the value's index."""
    first = named[0].slot if named else -1
    spans = [(v.start, v.end, cues.VALUE, i) for i, v in enumerate(values)]
    spans += [
        (c.start, c.end, cues.SLOT if c.slot == first else cues.OTHER, -1)
        for c in named
        if c.end > c.start and not any(v.start < c.end and c.start < v.end for v in values)
    ]
    out: list[str] = []
    places: dict[int, int] = {}
    at = length = 0
    for start, end, sign, index in sorted(spans):
        if start < at:
            continue
        piece = re.sub(r"[*_]", " ", folded[at:start])
        out += [piece, sign]
        length += len(piece)
        if index >= 0:
            places[length] = index
        length += 1
        at = end
    out.append(re.sub(r"[*_]", " ", folded[at:]))
    return "".join(out), places


def _excluded(masked: str, places: dict[int, int], source: bool) -> set[int]:
    """Indices of values that are not stated here."""
    old: set[int] = set()
    for pattern in cues.DENIED:
        for match in pattern.finditer(masked):
            start, end = _denied(masked, match, cues.CLAUSE if source else cues.TURN)
            old.update(i for p, i in places.items() if start <= p < end)
    for pattern in (*cues.OLD, *cues.SUPPOSED):
        for match in _matches(pattern, masked):
            if "old" in pattern.groupindex:
                covered = [match.start("old")]
            else:
                covered = [p for p in places if match.start() <= p < match.end()]
            old.update(places[p] for p in covered if p in places)
    for pattern in cues.FORMER:
        for match in _matches(pattern, masked):
            index = places.get(match.start("old"))
            if index is not None and len(set(places.values()) - old - {index}) >= 1:
                old.add(index)
    return old


def _denied(masked: str, match: re.Match[str], turns: re.Pattern[str]) -> tuple[int, int]:
    """How far a denial reaches: to the semicolon or the turn ("but …") on either side.

    In a source it ends with its clause: "if nobody is at home, …" denies nothing behind the comma.
    """
    start = max((m.end() for m in turns.finditer(masked, 0, match.start())), default=0)
    turn = turns.search(masked, match.end())
    return start, turn.start() if turn else len(masked)


def _matches(pattern: re.Pattern[str], masked: str) -> Iterator[re.Match[str]]:
    """All matches, overlapping ones too."""
    at = 0
    while at <= len(masked) and (match := pattern.search(masked, at)):
        yield match
        at = match.start() + 1


def _assign(
    values: Sequence[Found],
    named: Sequence[Cue],
    slots: tuple[Slot, ...],
    masked: str,
    every: bool = False,
) -> list[tuple[int, Found]]:
    """Each value to the name that governs it."""
    distinct = list(dict.fromkeys(c.slot for c in named))
    if len(distinct) > 1 and any(p.search(masked) for p in cues.IN_ORDER):
        fitting = [v for v in values]
        if len(fitting) == len(distinct):
            return list(zip(distinct, fitting, strict=True))
    best: dict[int | tuple[int, int], tuple[float, int, Found]] = {}
    for value in values:
        ranked = sorted(
            (_distance(value, cue, named), cue.slot)
            for cue in named
            if slots[cue.slot].type == value.value.type
        )
        if not ranked:
            continue
        distance, slot = ranked[0]
        key = (slot, value.start) if every else slot
        if key not in best or distance < best[key][0]:
            best[key] = (distance, slot, value)
    return sorted(((s, v) for _, s, v in best.values()), key=lambda p: p[1].start)


def _distance(value: Found, cue: Cue, named: Sequence[Cue]) -> float:
    """Characters between; another slot's name there weighs heavily, value first a little."""
    low, high = (cue.end, value.start) if cue.start <= value.start else (value.end, cue.start)
    between = sum(low <= other.start and other.end <= high for other in named if other is not cue)
    return max(0, high - low) + 60 * between + (4 if cue.start > value.start else 0)
