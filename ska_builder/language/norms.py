"""From sentences to norms: continuations, exceptions, several norms in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ska_builder.language import chinese, english
from ska_builder.language.bounds import Norm
from ska_builder.language.marked import inline, language, plain, split, unbroken
from ska_builder.language.words import ACTION_FORMS, type_of_name
from zerolayer.readings import Reading, Slot

# Longer sentences are not read: no expert writes them, and patterns must stay fast on any text.
MAX_SENTENCE = 800


@dataclass
class Sentence:
    """What one sentence said: norms of its own, or something about the norm before it."""

    text: str
    lang: Literal["en", "zh"]
    norms: list[Norm] = field(default_factory=list)
    failure: str | None = None
    ties: list[str] = field(default_factory=list)
    unresolved: str | None = None
    exceptions: list[str] = field(default_factory=list)
    marked_exceptions: list[str] = field(default_factory=list)

    @property
    def understood(self) -> bool:
        return bool(self.norms or self.failure or self.ties or self.unresolved or self.exceptions)


def read_sentence(text: str, after_norm: bool = False) -> Sentence:
    """Read one sentence of marked text.

    Args:
        after_norm: whether a norm stands before it in the rule, which "This does not apply to …"
            may then limit.
    """
    lang = cast(Literal["en", "zh"], language(text))
    grammar = english if lang == "en" else chinese
    body = unbroken(text).strip().rstrip("。.!！?？;； ").strip()
    sentence = Sentence(plain(text), lang)
    if len(body) > MAX_SENTENCE:
        return sentence
    sentence.failure = grammar.failure(body)
    if sentence.failure:
        return sentence
    if after_norm:
        limits = grammar.scope(body)
        if limits:
            sentence.exceptions = limits
            return sentence
    _clause(sentence, body, grammar)
    return sentence


def _clause(sentence: Sentence, body: str, grammar: Any) -> None:
    """Read a sentence as a whole, then piece by piece where semicolons part it."""
    pieces = [p.strip() for p in re.split(r"[;；]", body) if p.strip()]
    if "\x1e" in body or re.search(r"[:：]\s*[(（]?(?:1|a|i)[)）.、]", body):
        pieces = [body]
    whole = grammar.definition(body)
    if whole:
        sentence.norms.append(whole)
        return
    precedence = _precedence(sentence, pieces, grammar)
    if precedence is not None:
        return
    for number, piece in enumerate(pieces):
        made = _norms(sentence, piece, grammar)
        if made:
            sentence.norms += made
            continue
        if number == 0 and len(pieces) > 1:
            sentence.norms.clear()
            made = _norms(sentence, body, grammar)
            sentence.norms += made
            return
        if not sentence.norms:
            return
        limits = grammar.scope(piece)
        if limits:
            sentence.norms[-1].exceptions += limits
        else:
            # What the sentence adds beyond its norm ("…; sound companies get an offer") is kept.
            last = sentence.norms[-1]
            last.note = f"{last.note}; {plain(piece)}" if last.note else plain(piece)


def _precedence(sentence: Sentence, pieces: list[str], grammar: Any) -> bool | None:
    """An order of kinds with its tie rules, or a continuation of one; None if it is neither."""
    found: list[str] = []
    ties: list[str] = []
    left: str | None = None
    for piece in pieces:
        stated, tie_rule, rest = _one_precedence(piece, grammar, bool(ties))
        if stated:
            found += [m for m in stated if m not in found]
        elif not tie_rule and not rest:
            return None
        ties += [t for t in tie_rule if t not in ties]
        left = rest or left
    if found:
        details: dict[str, Any] = {"order": found}
        if ties:
            details["tie"] = ties[0]
        if len(ties) > 1:
            details["ties"] = ties
        if left:
            details["unresolved"] = left
        sentence.norms.append(Norm("precedence", details=details))
    elif ties or left:
        sentence.ties, sentence.unresolved = ties, left
    return True if found or ties or left else None


def _one_precedence(
    piece: str, grammar: Any, after_tie: bool
) -> tuple[list[str] | None, list[str], str | None]:
    rest = grammar.unresolved(piece, after_tie)
    if rest and not grammar.order(piece):
        # "the later one counts, failing that ask": a tie rule and the rest in one clause.
        head = re.split(
            r"[,，]\s*(?=(?:and\s+)?(?:failing|otherwise|if|否则|仍|如))", piece, maxsplit=1
        )
        tie_rule = grammar.tie(head[0]) if len(head) > 1 else None
        return None, [tie_rule] if tie_rule else [], rest
    tie_rule = grammar.tie(piece)
    stated = grammar.order(piece)
    if tie_rule and not (stated and len(stated) > 1 and not _about_dates(stated)):
        return None, [tie_rule], None
    if not stated:
        return None, [], None
    if len(stated) < 2:
        return None, [], None
    # "A before B, of two Bs the later one": the tie rule may stand behind a comma.
    ties = []
    for part in re.split(r"[,，]\s*(?:and\s+)?", piece)[1:]:
        label = grammar.tie(part)
        if label and not grammar.order(part):
            ties.append(label)
            stated = [m for m in stated if m not in plain(part).lower() or len(m) < 3] or stated
    return stated, ties, None


def _about_dates(members: Sequence[str]) -> bool:
    return any(
        re.search(r"\b(?:later|earlier|newer|older|more recent)\b|日期|较新|较早", m)
        for m in members
    )


def _norms(sentence: Sentence, piece: str, grammar: Any) -> list[Norm]:
    """Norms of a clause with its exceptions."""
    parts = grammar.clauses(piece)
    if len(parts) > 1:
        read = [_one(sentence, p, grammar) for p in parts]
        if all(read):
            return [norm for norms in read for norm in norms]
    return _one(sentence, piece, grammar)


def _one(sentence: Sentence, piece: str, grammar: Any) -> list[Norm]:
    whole = grammar.whole(piece)
    if whole:
        return [whole]
    for prohibits in (True, False):
        for main, exceptions, words in grammar.split_exceptions(piece, prohibits):
            made = _one(sentence, main, grammar)
            if not made or (
                prohibits
                and _only_prohibition(grammar, piece, main)
                and made[0].kind != "prohibition"
            ):
                continue
            if made[0].kind == "definition":
                continue
            for norm in made:
                norm.exceptions = _order(piece, norm.exceptions, exceptions)
            sentence.marked_exceptions += words
            return made
    return cast(list[Norm], grammar.main_clause(piece))


def _only_prohibition(grammar: Any, piece: str, main: str) -> bool:
    """Whether a clause was parted at a "without" or 未经, which only prohibitions take so."""
    return main not in {m for m, _, _ in grammar.split_exceptions(piece, False)}


def _order(piece: str, first: list[str], second: list[str]) -> list[str]:
    bare = plain(piece)
    return list(dict.fromkeys(sorted([*first, *second], key=lambda e: bare.find(e))))


def reading_of(norm: Norm, name: str | None, rule: str, line: int, lang: str) -> Reading:
    """The reading of a norm for one of its slots, before fields and action."""
    details = dict(norm.details)
    slot = None
    if norm.kind == "definition":
        details = {"term": details["term"], "also": list(norm.also), "meaning": details["meaning"]}
    if norm.kind in ("bound", "consistency"):
        assert name is not None
        type_ = norm.type or type_of_name(name)
        choices = tuple(details["value"]) if norm.type == "choice" else ()
        slot = Slot(name, type_, tuple(norm.also), choices)
    if norm.exceptions:
        details["unless" if norm.kind == "prohibition" else "except"] = list(norm.exceptions)
    if norm.note:
        details["note"] = norm.note
    return Reading(rule, line, cast(Any, norm.kind), cast(Any, lang), slot, None, details)


def readings_of(sentence: Sentence, rule: str, line: int) -> list[Reading]:
    """One reading for each norm and slot of a sentence."""
    made = []
    for norm in sentence.norms:
        names: list[str | None] = [*norm.names] or [None]
        for name in names:
            made.append(reading_of(norm, name, rule, line, sentence.lang))
    return made


def continue_precedence(reading: Reading, sentence: Sentence) -> None:
    """Add a continuation's tie rules and its word for the rest to a precedence reading."""
    ties = list(reading.details.get("ties") or filter(None, [reading.details.get("tie")]))
    ties += [t for t in sentence.ties if t not in ties]
    if ties:
        reading.details["tie"] = ties[0]
    if len(ties) > 1:
        reading.details["ties"] = ties
    if sentence.unresolved:
        reading.details["unresolved"] = sentence.unresolved


def read_norms(sentences: Sequence[str]) -> list[Reading]:
    """Readings of bare rule sentences, without headings and fields.

    Tie rules go to the first reading about precedence; a sentence that states no norm gives none.
    `rule` is the sentence, `line` its place in the list from 1.
    """
    readings: list[Reading] = []
    precedence: Reading | None = None
    action: str | None = None
    for number, text in enumerate(sentences, 1):
        for _, one in split(inline(text)):
            sentence = read_sentence(one, after_norm=bool(readings))
            if sentence.failure:
                action = ACTION_FORMS.get(sentence.failure, action)
            if sentence.exceptions and readings:
                last = readings[-1]
                key = "unless" if last.kind == "prohibition" else "except"
                last.details[key] = [*last.details.get(key, []), *sentence.exceptions]
            if sentence.ties or sentence.unresolved:
                if precedence is None:
                    precedence = Reading(
                        plain(one), number, "precedence", sentence.lang, details={"order": []}
                    )
                    readings.append(precedence)
                continue_precedence(precedence, sentence)
            for reading in readings_of(sentence, plain(one), number):
                if reading.kind != "precedence":
                    readings.append(reading)
                else:
                    precedence = precedence or reading
                    readings.append(reading)
    if action:
        readings = [
            Reading(r.rule, r.line, r.kind, r.language, r.slot, cast(Any, action), r.details)
            for r in readings
        ]
    return readings
