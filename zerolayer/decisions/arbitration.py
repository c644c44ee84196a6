"""Arbitration: which of several facts holds, by the precedence rules and by them alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zerolayer.decisions.ledger import Fact, Ledger, Source, applies
from zerolayer.decisions.sentences import fold
from zerolayer.readings import Reading
from zerolayer.values import Value, renderings, same


@dataclass(frozen=True)
class Settlement:
    """What the sources settle for a slot: settled, contested or unsupported, and why."""

    slot: str
    status: str
    value: Value | None
    facts: tuple[Fact, ...]
    reason: str


def settle(
    slot: str, ledger: Ledger, precedence: Sequence[Reading], question: str | None = None
) -> Settlement:
    """Settle one slot.

    Order of kinds first, then the tie rules in their order; a kind that the order does not name
    has no place in it. Facts limited to another case than the one asked about take no part.
    """
    language = "zh" if re.search(r"[\u4e00-\u9fff]", slot) else "en"
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
    left = list(facts)
    order = next(
        (list(r.details.get("order", ())) for r in precedence if r.details.get("order")), []
    )
    why = ""
    if order:
        ranked = [(_place(ledger.sources[f.source_id].kind, order), f) for f in left]
        if any(place is None for place, _ in ranked):
            # A kind outside the order cannot be compared with those inside it.
            return _contested(slot, facts, ledger, language)
        best = min(place for place, _ in ranked if place is not None)
        left = [f for place, f in ranked if place == best]
        why = ledger.sources[left[0].source_id].kind
    elif len({ledger.sources[f.source_id].kind for f in left}) > 1:
        # Tie rules are for sources of one kind; nothing ranks the kinds.
        return _contested(slot, facts, ledger, language)
    for tie in _ties(precedence):
        if _agree(left):
            break
        left = _part(left, tie, ledger)
        why = f"{why}, {tie}" if why else tie
    if not _agree(left):
        return _contested(slot, facts, ledger, language)
    winner = ledger.sources[left[0].source_id]
    shown = renderings(left[0].value, language)[0]
    text = (
        f"{winner.id}（{winner.kind}）排在最前，写明{shown}"
        if language == "zh"
        else f"{winner.id} ({winner.kind}) comes first by the rules ({why}) and states {shown}"
    )
    return Settlement(slot, "settled", left[0].value, tuple(left), text)


def _agree(facts: Sequence[Fact]) -> bool:
    return all(same(f.value, facts[0].value) for f in facts)


def _place(kind: str, order: Sequence[str]) -> int | None:
    """Rank of a kind in an order; names are compared folded, singular, and by their last words."""
    wanted = _name(kind)
    for i, name in enumerate(order):
        if _name(name) == wanted:
            return i
    return None


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
    key: Callable[[Source], str | int | None] = (
        (lambda s: s.rank) if tie == "higher rank" else (lambda s: s.date)
    )
    keys = [key(ledger.sources[f.source_id]) for f in facts]
    if any(k is None for k in keys):
        return list(facts)
    best = (min if tie == "earlier date" else max)(keys)  # type: ignore[type-var]
    return [f for f, k in zip(facts, keys, strict=True) if k == best]


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
