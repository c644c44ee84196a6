"""Clauses of a policy and the cases that they speak of: which one answers for a given case.

"A copy costs 8 euros on paper and 2 euros by e-mail" states two values of one slot. Each value
owns a piece of its sentence; what the pieces of one slot do not share is what tells cases apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zerolayer.decisions import cues
from zerolayer.decisions.arbitration import Settlement
from zerolayer.decisions.ledger import Fact, Source
from zerolayer.decisions.sentences import Part, find_cues, fold, split
from zerolayer.decisions.statements import Statement, statements_of
from zerolayer.decisions.terms import notions, opposites, stem, terms
from zerolayer.readings import Slot
from zerolayer.values import compare, find_values, renderings, same

FAR: Final = 0.5  # weight of a term of the sentence beside the clause itself
AKIN: Final = 0.3  # a case named by the notion of the slot itself ("borrowed" of a loan period)
# Said in every dealing, and so no case of one.
_DEALS: Final = frozenset(map(stem, ("buy", "purchase", "order", "use", "take", "pay", "cost")))
COVERS: Final = 0.25  # by how much more of it must be named where two cases fit alike
FAR_CAP: Final = 0.6  # what such terms may add up to; they often belong to every case
_CLAUSE_END: Final = re.compile(r"(?<!\d)[,，](?!\d)|(?<=\d)[,，](?= )|[;；:：。]|\.\s")
_ASIDE: Final = re.compile(r", (?:which|who|whom|whose|that)\b[^,;.]{1,80},")
_JOINTS: Final = (
    re.compile(r"[;；]"),
    re.compile(r"[,，、](?!\d{3})"),
    re.compile(r"\b(?:and|but|or|while|whereas)\b|而|但|和|或"),
)
# "plus a deposit of <value>" states another thing; "and for groups <value>" does not.
_OTHER_THING: Final = re.compile(r"\b[a-z]+ of (?:up to |at most |about )?$")
# "For orders over 50 euros the fee is …": a value that is a condition.
_OVER: Final = re.compile(
    r"\b(?:over|above|below|under|beyond|exceed\w*|more than|less than|worth|orders (?:of|from)|"
    r"aged?|older than|younger than) (?:than )?$|"
    r"(?:不?满|超过|不足|低于|高于|少于|多于|达到?|未到)$"
)
_AND_MORE: Final = re.compile(
    r"^ ?(?:or more|or less|and more|and above|and over)\b|^(?:以上|以下|以内的|及以上)"
)
_CONTINUES: Final = re.compile(r"^(?:for|with|if|when|where|in|on|at|to)\b|^(?:对|若|如|在|而)")


@dataclass(frozen=True)
class Clause:
    """A fact with the terms of its own clause (near) and of the sentence around it (far).

    `shared` are those that go for other values too; they speak of the slot and of no case.
    """

    fact: Fact
    near: Mapping[str, float]
    far: Mapping[str, float]
    shared: Mapping[str, float]


def clauses_of(source: Source, slots: Sequence[Slot]) -> list[Clause]:
    """Every value that a source states for one of the slots, in order of position."""
    text, listed = source.text, tuple(slots)
    found: list[Clause] = []
    last: int | None = None
    for part in split(text):
        said, follow = statements_of(text, part, listed, last, source=True, every=True)
        if not said and follow is None and last is not None and not part.question:
            said = _continued(text, part, listed[last])
            follow = last if said else None
        said = _coordinated(text, part, said, listed)
        blank = _without_values(text, part, said, listed)
        for slot in listed:
            own = [s for s in said if s.slot == slot.name]
            cuts = _cuts(text, part, own, said)
            for i, (statement, (start, end)) in enumerate(zip(own, cuts, strict=True)):
                head = start
                if i + 1 < len(own) and _shares_head(blank, part, own, cuts, i):
                    head = statement.end
                made = _clause(text, part, statement, start, end, slot, blank, source.id, head)
                found.append(made if i or len(own) == 1 else _introduced(made))
        last = follow if said else None
    return sorted(found, key=lambda c: c.fact.start)


def _continued(text: str, part: Part, slot: Slot) -> list[Statement]:
    """ "For children, 14 days." after a sentence about the slot."""
    body = text[part.start : part.end]
    values = find_values(body, {slot.type}, slot.choices)
    if not _CONTINUES.match(fold(body).strip()) or len(values) != 1 or values[0].ambiguous:
        return []
    value = values[0]
    return [Statement(slot.name, value.value, part.start + value.start, part.start + value.end)]


def _coordinated(
    text: str, part: Part, said: Sequence[Statement], slots: tuple[Slot, ...]
) -> list[Statement]:
    """Statements without values of other things that merely stand in the same sentence."""
    folded = fold(text[part.start : part.end])
    named = find_cues(folded, slots)
    kept: list[Statement] = []
    for statement in _without_thresholds(folded, part.start, said):
        start = statement.start - part.start
        before = [k for k in kept if k.slot == statement.slot]
        if before:
            gap = folded[before[-1].end - part.start : start]
            name_between = any(
                slots[c.slot].name == statement.slot
                and before[-1].end - part.start <= c.start
                and c.end <= start
                for c in named
            )
            if not name_between and (_OTHER_THING.search(gap) or not _joint(gap)):
                continue
        kept.append(statement)
    return kept


def _without_thresholds(folded: str, offset: int, said: Sequence[Statement]) -> list[Statement]:
    """ "For orders over 50 euros the fee is 5 euros": the first value is a condition."""
    kept = [
        s
        for s in said
        if not _OVER.search(folded[: s.start - offset])
        and not _AND_MORE.match(folded[s.end - offset :])
    ]
    return [s for s in said if s in kept or s.slot not in {k.slot for k in kept}]


def _joint(gap: str) -> re.Match[str] | None:
    """Where two coordinated clauses meet: the strongest mark, the last of its kind."""
    for pattern in _JOINTS:
        matches = list(pattern.finditer(gap))
        if matches:
            return matches[-1]
    return None


def _cuts(
    text: str, part: Part, own: Sequence[Statement], said: Sequence[Statement]
) -> list[tuple[int, int]]:
    """The piece of the part that each statement of one slot owns."""
    edges: list[tuple[int, int]] = []
    for i, statement in enumerate(own):
        start, end = part.start, part.end
        if i:
            start = _border(text, own[i - 1].end, statement.start)
        if i + 1 < len(own):
            end = _border(text, statement.end, own[i + 1].start)
        for other in said:
            # A semicolon parts clauses of their own, whatever slots they speak of.
            if other.end <= statement.start:
                marks = [m.end() for m in _JOINTS[0].finditer(text, other.end, statement.start)]
                start = max([start, *marks])
            elif other.start >= statement.end:
                marks = [m.start() for m in _JOINTS[0].finditer(text, statement.end, other.start)]
                end = min([end, *marks])
        edges.append((start, end))
    return edges


def _border(text: str, left: int, right: int) -> int:
    joint = _joint(fold(text[left:right]))
    return left + joint.start() if joint else left


def _without_values(
    text: str, part: Part, said: Sequence[Statement], slots: tuple[Slot, ...]
) -> str:
    """The part with blanks for values and names of slots: what is left speaks of cases."""
    body = text[part.start : part.end]
    spans = [(s.start - part.start, s.end - part.start) for s in said]
    spans += [(c.start, c.end) for c in find_cues(fold(body), slots)]
    for start, end in spans:
        body = body[:start] + " " * (end - start) + body[end:]
    return body


def _shares_head(
    blank: str,
    part: Part,
    own: Sequence[Statement],
    cuts: Sequence[tuple[int, int]],
    i: int,
) -> bool:
    """Whether what stands before a value goes for the next one too.

    In "notes are kept 30 days on Basic and 90 days on Team" only what follows each value tells
    the cases apart.
    """
    (start, end), (begin, stop) = cuts[i], cuts[i + 1]
    said, following = own[i], own[i + 1]

    def has_terms(low: int, high: int) -> bool:
        return bool(terms(blank[low - part.start : high - part.start]))

    return (
        has_terms(start, said.start)
        and has_terms(said.end, end)
        and not has_terms(begin, following.start)
        and has_terms(following.end, stop)
    )


def _clause(
    text: str,
    part: Part,
    said: Statement,
    start: int,
    end: int,
    slot: Slot,
    blank: str,
    source_id: str,
    head: int,
) -> Clause:
    """Args: start, end are the piece that the value owns; blank is the part without values;
    what stands before head goes for other values too."""
    piece = blank[start - part.start : end - part.start]
    low, high = said.start - start, said.end - start
    aside = _ASIDE.sub(lambda m: " " * len(m[0]), piece)
    own = name_terms(slot)
    begins = [*reversed([m.end() for m in _CLAUSE_END.finditer(aside, 0, low)]), 0]
    if head > start:
        begins = [head - start]
    after = _CLAUSE_END.search(aside, high)
    stop = after.start() if after else len(aside)
    near: dict[str, float] = {}
    for begin in begins:
        near = _foreign(terms(aside[begin:stop]), own)
        if near:
            break
    around = _foreign(terms(piece[head - start :]), own)
    far = {t: FAR * w for t, w in around.items() if t not in near}
    fact = Fact(
        slot.name,
        said.value,
        source_id,
        said.start,
        said.end,
        text[part.start : part.end].strip(),
        scope=" ".join(text[start:end].split()).strip(" ,，、;；"),
    )
    deals = {t: w for t, w in terms(piece).items() if t in _DEALS}
    return Clause(fact, near, far, {**_foreign(terms(piece[: head - start]), own), **deals})


def _introduced(clause: Clause) -> Clause:
    """The first of several values in a sentence: what the sentence begins with goes for all."""
    shared = {t: w / FAR for t, w in clause.far.items()}
    return Clause(clause.fact, clause.near, {}, {**shared, **clause.shared})


def _foreign(found: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    """Terms without those of the slot's name; what says the same in other words counts less."""
    kept = {t: w for t, w in found.items() if t not in own and t.removeprefix("-") not in _DEALS}
    akin: set[str] = set()
    for term in kept:
        shared = notions(term)
        if any(n in own for n in shared):
            akin |= {term, *shared}
    return {t: w * (AKIN if t in akin else 1.0) for t, w in kept.items()}


def name_terms(slot: Slot) -> dict[str, float]:
    """Terms of a slot's names."""
    found: dict[str, float] = {}
    for name in (slot.name, *slot.also):
        for term, weight in terms(name.replace("_", " ")).items():
            found[term] = max(weight, found.get(term, 0.0))
    return found


def scores(clauses: Sequence[Clause], wanted: Mapping[str, float]) -> list[float]:
    """How well each clause's case fits the wanted terms; what all clauses share counts nothing.

    A term that the clause has with the opposite sign counts against it.
    """
    counts = Counter(t for c in clauses for t in {*c.near, *c.far})
    n = len(clauses)

    def fit(own: Mapping[str, float]) -> float:
        total = 0.0
        for term, weight in own.items():
            rare = math.log(n / counts[term]) / math.log(n) if n > 1 else 0.0
            if term in wanted:
                total += rare * weight
            elif any(o in wanted for o in opposites(term)):
                total -= rare * weight
        return total

    return [fit(c.near) + max(-FAR_CAP, min(FAR_CAP, fit(c.far))) for c in clauses]


def best(clauses: Sequence[Clause], wanted: Mapping[str, float], margin: float) -> list[Clause]:
    """The clauses that fit the wanted terms best, by the margin; all where the terms tell nothing.

    They may still be of several values: a dog is a small dog or a large one.
    """
    found = scores(clauses, wanted)
    high = max(found, default=0.0)
    kept = [c for c, s in zip(clauses, found, strict=True) if s > high - margin]
    if high < margin or one_value(kept):
        return kept
    # "gold" fits the gold card and the white gold card; it is all that the first one says.
    kept.sort(key=lambda c: -_covered(c, wanted))
    rest = [c for c in kept if not same(c.fact.value, kept[0].fact.value)]
    if _covered(kept[0], wanted) - _covered(rest[0], wanted) >= COVERS:
        return [c for c in kept if c not in rest]
    return kept


def one_value(clauses: Sequence[Clause]) -> bool:
    """Whether all of the clauses state the same."""
    return all(same(c.fact.value, clauses[0].fact.value) for c in clauses)


def _covered(clause: Clause, wanted: Mapping[str, float]) -> float:
    """The share of a clause's own terms that are wanted, by weight."""
    whole = sum(clause.near.values())
    return sum(w for t, w in clause.near.items() if t in wanted) / whole if whole else 0.0


def general(clauses: Sequence[Clause]) -> list[Clause]:
    """The clauses that speak of no case, or of every one, where others do speak of one."""
    plain = [c for c in clauses if not c.near or cues.UNIVERSAL.search(fold(c.fact.scope))]
    return plain if len(plain) < len(clauses) else []


def extreme(clauses: Sequence[Clause], high: bool) -> Clause | None:
    """The clause with the highest or lowest value, if the values have an order."""
    chosen = clauses[0]
    for clause in clauses[1:]:
        order = compare(clause.fact.value, chosen.fact.value)
        if order is None:
            return None
        if order == (1 if high else -1):
            chosen = clause
    return chosen


def open_case(slot: str, clauses: Sequence[Clause]) -> Settlement:
    """Several cases, and nothing said so far tells which one is meant."""
    zh = is_chinese(slot)
    language = "zh" if zh else "en"
    listed = [f"{renderings(c.fact.value, language)[0]} ({c.fact.scope})" for c in clauses]
    reason = (
        "要看是哪种情况：" + "；".join(listed)
        if zh
        else "it depends on the case: " + "; ".join(listed)
    )
    return Settlement(slot, "contested", None, tuple(c.fact for c in clauses), reason)


def open_text(found: Settlement) -> str:
    """What may be said of a contested slot: that cases differ, or that the sources disagree."""
    zh = is_chinese(found.slot)
    language = "zh" if zh else "en"
    values = list(dict.fromkeys(renderings(f.value, language)[0] for f in found.facts))[:4]
    if len({f.source_id for f in found.facts}) > 1:
        said = "有争议的：资料不一致，" if zh else "contested: the sources disagree, "
    else:
        said = "要看情况的：" if zh else "not the same in every case: "
    return said + ("或" if zh else " or ").join(values)


def unsupported(slot: str) -> Settlement:
    """No source speaks of the slot in this case."""
    reason = "资料中没有写明" if is_chinese(slot) else "no source states it"
    return Settlement(slot, "unsupported", None, (), reason)


def is_chinese(text: str) -> bool:
    """Whether a text has a Chinese character."""
    return any("\u4e00" <= c <= "\u9fff" for c in text)
