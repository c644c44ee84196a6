"""Arbitration: which of several facts holds, by the precedence rules and by them alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from zerolayer.decisions.ledger import Fact, Ledger, Source, applies
from zerolayer.decisions.sentences import fold
from zerolayer.readings import Reading
from zerolayer.values import Value, renderings, same, value_from_json

TIES = {
    "en": {
        "later date": "the later date counts",
        "earlier date": "the earlier date counts",
        "higher rank": "the higher rank counts",
    },
    "zh": {
        "later date": "以日期在后者为准",
        "earlier date": "以日期在前者为准",
        "higher rank": "以级别较高者为准",
    },
}


@dataclass(frozen=True)
class Settlement:
    """What the sources settle for a slot: settled, contested or unsupported, and why."""

    slot: str
    status: str
    value: Value | None
    facts: tuple[Fact, ...]
    reason: str


def settle(
    slot: str, ledger: Ledger, readings: Sequence[Reading], question: str | None = None
) -> Settlement:
    """Settle one slot.

    A rule that sets the value itself ("the rent must be EUR 900") settles it, whatever the sources
    say. Else the orders of all precedence rules together rank the kinds; a kind that they do not
    compare with another stands beside it. Facts of a lower kind give way, then the tie rules part
    what is left of one kind, in the order in which they are written. Facts limited to another case
    than the one asked about take no part.
    """
    language = "zh" if re.search(r"[\u4e00-\u9fff]", slot) else "en"
    precedence = [r for r in readings if r.kind == "precedence"]
    by_rule = _set_by_rule(slot, readings, question)
    if by_rule is not None:
        return by_rule
    facts = [f for f in ledger.facts(slot) if applies(f, question)]
    scoped = [f for f in facts if f.limited]
    if scoped:
        # The case that is asked about has clauses of its own in these sources.
        own = {f.source_id for f in scoped}
        facts = [f for f in facts if f.limited or f.source_id not in own]
    if not facts:
        text = "资料中没有写明" if language == "zh" else "no source states it"
        return Settlement(slot, "unsupported", None, (), text)
    if _agree(facts):
        shown = renderings(facts[0].value, language)[0]
        ids = ", ".join(dict.fromkeys(f.source_id for f in facts))
        text = f"{ids}写明{shown}" if language == "zh" else f"{shown} by {ids}, and none disagrees"
        return Settlement(slot, "settled", facts[0].value, tuple(facts), text)
    kinds = {f.source_id: _name(ledger.sources[f.source_id].kind) for f in facts}
    lower = set().union(*(_below(kind, precedence) for kind in set(kinds.values())))
    left = [f for f in facts if kinds[f.source_id] not in lower]
    used: list[str] = []
    if not _agree(left) and len({kinds[f.source_id] for f in left}) == 1:
        for tie in _ties(precedence):
            if not _agree(left):
                used.append(tie)
                left = _part(left, tie, ledger)
    if not left or not _agree(left):
        return _contested(slot, facts, ledger, language)
    if precedence:
        language = precedence[0].language
    beaten = [f for f in facts if kinds[f.source_id] not in {kinds[g.source_id] for g in left}]
    text = _why(left[0], beaten, used, ledger, language)
    return Settlement(slot, "settled", left[0].value, tuple(left), text)


def _set_by_rule(slot: str, readings: Sequence[Reading], question: str | None) -> Settlement | None:
    folded = fold(question or "")
    for reading in readings:
        d = reading.details
        if reading.kind != "bound" or reading.slot is None or reading.slot.name != slot:
            continue
        share = isinstance(d["value"], dict) and d["value"].get("of") is not None
        excepted = any(fold(str(case)) in folded for case in d.get("except", ()))
        if d["operator"] != "=" or d.get("when") or share or excepted:
            continue
        value = value_from_json(reading.slot.type, d["value"])
        shown = renderings(value, reading.language)[0]
        zh = reading.language == "zh"
        text = (
            f"规则「{reading.rule}」定为{shown}"
            if zh
            else f"the rule {reading.rule!r} sets {shown}"
        )
        return Settlement(slot, "settled", value, (), text)
    return None


def _agree(facts: Sequence[Fact]) -> bool:
    return all(same(f.value, facts[0].value) for f in facts)


def _below(kind: str, precedence: Sequence[Reading]) -> set[str]:
    """The kinds that give way to `kind`, as the orders state or imply. In orders that turn in a
    circle each kind is below itself, so that none of them prevails."""
    next_lower: dict[str, set[str]] = {}
    for reading in precedence:
        for high, low in pairwise(_name(k) for k in reading.details.get("order", ())):
            next_lower.setdefault(high, set()).add(low)
    reached: set[str] = set()
    waiting = [kind]
    while waiting:
        fresh = next_lower.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    return reached


def _name(kind: str) -> str:
    words = fold(kind).strip().removeprefix("the ").split()
    return " ".join(w[:-1] if len(w) > 3 and w.endswith("s") else w for w in words)


def _ties(precedence: Sequence[Reading]) -> list[str]:
    ties: list[str] = []
    for reading in precedence:
        listed = reading.details.get("ties") or [reading.details.get("tie")]
        ties += [t for t in listed if t and t not in ties]
    return ties


def _part(facts: Sequence[Fact], tie: str, ledger: Ledger) -> list[Fact]:
    keys = [_key(ledger.sources[f.source_id], tie) for f in facts]
    known = [k for k in keys if k is not None]
    if len(known) < len(keys):
        return list(facts)
    best = (min if tie == "earlier date" else max)(known)
    return [f for f, k in zip(facts, keys, strict=True) if k == best]


def _key(source: Source, tie: str) -> int | None:
    if tie == "higher rank":
        return source.rank
    return date.fromisoformat(source.date).toordinal() if source.date else None


def _why(
    winner: Fact, beaten: Sequence[Fact], ties: Sequence[str], ledger: Ledger, language: str
) -> str:
    source = ledger.sources[winner.source_id]
    shown = renderings(winner.value, language)[0]
    lower = list(dict.fromkeys(ledger.sources[f.source_id].kind for f in beaten))
    if language == "zh":
        steps = [f"{source.kind}优先于{'、'.join(lower)}"] * bool(lower)
        steps += [TIES["zh"].get(tie, tie) for tie in ties]
        return f"{source.id}（{source.kind}）写明{shown}；按规则，{'，'.join(steps)}"
    steps = [f"{source.kind} prevails over {' and '.join(lower)}"] * bool(lower)
    steps += [TIES["en"].get(tie, tie) for tie in ties]
    return f"{source.id} ({source.kind}) states {shown}; by the rules, {', and '.join(steps)}"


def _contested(slot: str, facts: Sequence[Fact], ledger: Ledger, language: str) -> Settlement:
    said = ", ".join(
        f"{f.source_id} ({ledger.sources[f.source_id].kind}): {renderings(f.value, language)[0]}"
        for f in facts
    )
    text = (
        f"资料互相矛盾，没有规则可以区分：{said}"
        if language == "zh"
        else f"the sources disagree and no rule parts them: {said}"
    )
    return Settlement(slot, "contested", None, tuple(facts), text)
