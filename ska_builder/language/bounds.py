"""Comparisons in a clause: operators, values and the slot that they bind.

A value counts only with an operator directly before or behind it; a negation before the operator
turns it ("not less than", 不得低于).
"""
# ruff: noqa: E501 - a pattern stands on one line, so that it can be compared with its neighbours

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ska_builder.language.marked import MARK, marks, plain
from ska_builder.language.words import UNIT, WORDS, any_of
from zerolayer.values import (
    Duration,
    Found,
    Money,
    Number,
    Percent,
    Quantity,
    Range,
    Value,
    find_values,
)

NEGATED = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}
DATE_ONLY = re.compile(
    r"(?:by|on|from|as of|as from|until|starting(?: on)?|on or (?:after|before)|not until|past|以|起)$"
)


@dataclass
class Norm:
    """One norm of a clause, before its rule's fields and action are added."""

    kind: str
    names: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    exceptions: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    type: str | None = None
    ambiguous: list[str] = field(default_factory=list)
    note: str | None = None


@dataclass(frozen=True)
class Term:
    """A value as written at `start:end` of a clause; `low` and `high` where it is a range."""

    start: int
    end: int
    value: Value
    ambiguous: tuple[Value, ...] = ()

    @property
    def type(self) -> str:
        return self.value.type


_EXTRA = (
    (
        re.compile(
            r"\b(?P<count>one|an?|two|three)[\s-](?P<part>third|quarter|fifth|tenth)s?(?= of\b)",
            re.I,
        ),
        "fraction",
    ),
    (
        re.compile(r"(?P<part>[二两三四五六七八九十])分之(?P<count>[一二两三四五六七八九])"),
        "fraction",
    ),
    (re.compile(r"(?P<count>[一二三四五六七八九]|\d(?:\.\d)?)折"), "tenths"),
    (re.compile(r"\bhalf(?: an? (?P<unit>hour|day|year|month))?(?= (?:of|the|a)\b)", re.I), "half"),
    (re.compile(r"一半(?!以)"), "half"),
    (
        re.compile(
            r"(?<!\w)an? (?P<unit>second|minute|hour|day|week|fortnight|month|quarter|year)\b", re.I
        ),
        "one",
    ),
    (re.compile(r"\b(?:once|twice)\b", re.I), "times"),
    (re.compile(r"\bone (?:half)\b", re.I), "half"),
)
_PARTS = {
    "third": 3,
    "quarter": 4,
    "fifth": 5,
    "tenth": 10,
    "one": 1,
    "a": 1,
    "an": 1,
    "two": 2,
    "three": 3,
}
_PARTS |= {c: n for n, c in enumerate("一二三四五六七八九十", 1)} | {"两": 2}
_FREQUENCY = re.compile(r"\b(?:once|twice|times?|per|every|each)\s*$", re.I)
_PERCENT_ZH = re.compile(r"(?:百|千|万)分之$")


def terms(text: str) -> list[Term]:
    """The values of a clause outside marks, in order; halves, "a week" and quantities included."""
    inside = [m.span() for m in MARK.finditer(text)]

    def free(start: int, end: int) -> bool:
        return not any(a <= start and end <= b for a, b in inside)

    found = [
        Term(f.start, f.end, f.value, f.ambiguous)
        for f in find_values(text)
        if free(f.start, f.end) and not _word_part(text, f)
    ]
    for pattern, what in _EXTRA:
        for match in pattern.finditer(text):
            found = (
                [t for t in found if t.end <= match.start() or t.start >= match.end()]
                if what in ("half", "fraction", "tenths")
                else found
            )
            if not free(*match.span()) or any(
                t.start < match.end() and match.start() < t.end for t in found
            ):
                continue
            if what == "half":
                value: Value = Percent(Decimal(50))
            elif what == "fraction":
                share = (
                    Decimal(100 * _PARTS[match["count"].lower()]) / _PARTS[match["part"].lower()]
                )
                value = Percent(round(share, 2))
            elif what == "tenths":
                count = match["count"]
                value = Percent(10 * Decimal(_PARTS.get(count, count)))
            elif what == "times":
                value = Number(Decimal(1 if match[0].lower() == "once" else 2))
            elif _FREQUENCY.search(text[: match.start()]):
                continue
            else:
                unit = match["unit"].lower()
                value = (
                    Duration(Decimal(2), "week")
                    if unit == "fortnight"
                    else Duration(Decimal(1), unit)
                )
            found.append(Term(match.start(), match.end(), value))
    return sorted((_with_unit(text, t) for t in found), key=lambda t: t.start)


def _word_part(text: str, found: Found) -> bool:
    """一 of 一致, 一律, 同一; "one" of "one of", "the one": numerals that count nothing."""
    if found.value.type != "number":
        return False
    after, before = text[found.end :], text[: found.start]
    if (
        re.match(r"\s*(?:of\b|another\b|kind\b|that\b|given\b|in\b)|[致律般次性致旦直些]", after)
        and found.end - found.start < 4
    ):
        return text[found.start : found.end].lower() in ("one", "一")
    return bool(
        re.search(
            r"(?:\b(?:the|this|that|later|earlier|newer|older|recent)\s|[同唯统逐任某之])$",
            before,
            re.I,
        )
    ) and (text[found.start : found.end].lower() in ("one", "一"))


def _with_unit(text: str, term: Term) -> Term:
    value = term.value
    if not (
        isinstance(value, Number) or (isinstance(value, Range) and isinstance(value.low, Number))
    ):
        return term
    unit = UNIT.match(text, term.end + (1 if text[term.end : term.end + 1] == " " else 0))
    if unit is None:
        return term
    after = text[unit.end() : unit.end() + 1]
    if unit[0][-1].isascii() and unit[0][-1].isalpha() and after.isascii() and (after.isalnum()):
        return term
    if isinstance(value, Range):
        assert isinstance(value.low, Number) and isinstance(value.high, Number)
        made: Value = Range(
            Quantity(value.low.number, unit[0]), Quantity(value.high.number, unit[0])
        )
    else:
        assert isinstance(value, Number)
        made = Quantity(value.number, unit[0])
    return Term(term.start, unit.end(), made)


def _compiled(table: dict[str, list[str]], template: str) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (op, re.compile(template.replace("WORD", any_of(words)), re.IGNORECASE))
        for op, words in table.items()
    ]


_FILL_EN = (
    r"(?:\s+(?:the|an?|any|only|about|approximately|(?:a |the )?(?:total|sum|amount|period|value|rate|level|fee|term|maximum|minimum)(?: of)?|"
    r"no|then|either))*"
)
_BEFORE_EN = _compiled(
    WORDS["operators_en"], r"(?:^|(?<=[\s⟧⟫(,]))(?P<op>WORD)" + _FILL_EN + r"\s*$"
)
_AFTER_EN = _compiled(
    WORDS["after_en"],
    r"^(?:\s+(?:(?:per|an?|each|every)\s+)?[a-z]+|\s+of\s[^,.;]{1,40}?)?,?\s*(?:WORD)\b",
)
_NEGATION_EN = re.compile(
    r"\b(?:not|no|never|nor|neither|cannot|can't|mustn't|nobody|none|under no circumstances)\b",
    re.I,
)
_GAP_ZH = r"(?:为|是|于|在|至|到|约|人民币|共|计|不含税|每[^，。；\d]{1,3})*"
_OF_ZH = r"(?P<of>(?:(?![，。；、]|不得|至少|至多|最).){0,24}?的)?(?P<loose>[^，。；\d]{0,24}?)"
_BEFORE_ZH = _compiled(
    {k: v for k, v in WORDS["operators_zh"].items()},
    r"(?P<op>WORD)" + _GAP_ZH + _OF_ZH + _GAP_ZH + r"$",
)
_AFTER_ZH = _compiled(
    WORDS["after_zh"],
    r"^(?:周岁|[个种次人件张份条名位款类项台期片粒套分岁](?:[^，。；]{0,6}?))?（?(?:含本数|含)?）?(?:的)?(?:WORD)",
)
_COPULA_ZH = re.compile(
    r"(?:应当|必须|应|须|需|只能|统一|一律|固定|均|仅|可|可以|能)?(?:为|是|等于|定为|设为|达|日起|起算|起)"
    r"(?P<of>[^，。；为是]{0,24}的)?(?P<loose>[^，。；为是]{0,16}?)$"
)
_NEGATION_ZH = re.compile(r"不得|不能|不可|不应|不会|不许|不准|严禁|禁止|不宜|勿|绝不")


@dataclass
class Compared:
    """An operator with its value; `between` has two values."""

    operator: str
    terms: list[Term]
    at: int
    of: str | None = None


def compared(text: str, lang: str) -> list[Compared]:
    """The comparisons of a clause, in the order of the text."""
    found: list[Compared] = []
    all_terms = terms(text)
    previous, negated_before, at = 0, False, 0
    while at < len(all_terms):
        term = all_terms[at]
        before, after = text[previous : term.start], text[term.end :]
        pair = _pair(text, all_terms, at, lang)
        if pair:
            found.append(Compared("between", pair, len(text[: term.start].rstrip()), None))
            previous, negated_before = pair[-1].end, False
            at += len(pair) if not isinstance(pair[0].value, Range) else 1
            continue
        reading = (
            _english(before, after, term, negated_before)
            if lang == "en"
            else _chinese(before, after, term)
        )
        if reading is not None:
            operator, position, negated, of = reading
            found.append(Compared(operator, [term], previous + position, of))
            negated_before = negated
            previous = term.end
        at += 1
    return found


def _pair(text: str, all_terms: list[Term], at: int, lang: str) -> list[Term] | None:
    term = all_terms[at]
    before = plain(text[: term.start]).rstrip()
    if isinstance(term.value, Range):
        return [term]
    if at + 1 >= len(all_terms):
        return None
    other = all_terms[at + 1]
    joint = plain(text[term.end : other.start]).strip()
    types = {term.type, other.type}
    if len(types) > 1 and "number" not in types:
        return None
    if lang == "en":
        opened = re.search(
            r"\b(?:between|from|in the range of|range of|anywhere from)$", before, re.I
        )
        return (
            [term, other] if opened and joint in ("and", "to", "up to", "until", "–", "-") else None
        )
    opened = re.search(r"(?:介于|在|为|从|自|应|须|是)[^，。；]{0,20}$", before)
    closed = re.match(r"[^，。；]{0,6}?(?:之间|范围|的区间|间)", text[other.end :])
    if joint in ("至", "到", "—", "～", "~", "-") and (opened or closed):
        return [term, other]
    return [term, other] if joint in ("和", "与", "及") and closed else None


def _english(
    before: str, after: str, term: Term, negated_before: bool
) -> tuple[str, int, bool, str | None] | None:
    stripped = before.rstrip()
    best: tuple[int, str] | None = None
    for operator, pattern in _BEFORE_EN:
        match = pattern.search(stripped)
        if match and (best is None or match.start() < best[0]):
            if DATE_ONLY.match(match["op"].lower()) and term.type != "date":
                continue
            if operator == "=" and match["op"].lower() == "on" and term.type != "date":
                continue
            best = (match.start(), operator)
    for operator, pattern in _AFTER_EN:
        if pattern.match(plain(after)) and (best is None or best[1] == "="):
            position = best[0] if best else len(stripped)
            if _NEGATION_EN.search(MARK.sub("X", stripped)):
                return None
            return operator, position, False, None
    if best is None:
        beside = re.search(r"⟧(?:\s+of)?$", stripped)
        return ("=", beside.start(), False, None) if beside and term.type != "number" else None
    start, operator = best
    lead = MARK.sub("X", stripped[:start])
    negated = bool(_NEGATION_EN.search(lead)) or (
        negated_before and bool(re.fullmatch(r"[^,;]*\b(?:or|nor)\b\s*(?:be\s*)?", lead))
    )
    if negated:
        if operator == "=":
            return None
        operator = NEGATED[operator]
    return operator, start, negated, None


def _chinese(before: str, after: str, term: Term) -> tuple[str, int, bool, str | None] | None:
    after = plain(after)
    lead_all = before
    best: tuple[int, str, str | None] | None = None
    for operator, pattern in _BEFORE_ZH:
        for match in pattern.finditer(before):
            if DATE_ONLY.match(match["op"]) and not re.match(r"[^，。；]{0,8}?为限", after):
                continue
            if "⟦" in before[match.end("op") :] or "⟪" in before[match.end("op") :]:
                continue
            if best is None or match.start() > best[0] or (match.start() == best[0]):
                best = (match.start(), operator.rstrip("!"), _base(before[match.end("op") :]))
    for operator, pattern in _AFTER_ZH:
        found = pattern.match(after)
        if found is None:
            continue
        if operator in "<>" and term.type not in ("date", "duration"):
            continue
        if best is not None and best[1] != "=":
            break
        if (
            operator == "<"
            and term.type == "duration"
            and not re.search(r"提前|之前|以前", after[:4] + before[-12:])
        ):
            continue
        of = best[2] if best else _of_before(before)
        position = best[0] if best else len(_head(before))
        negated = bool(_NEGATION_ZH.search(MARK.sub("", before)))
        return (NEGATED[operator] if negated else operator), position, negated, of
    if best is None:
        copula = _COPULA_ZH.search(before)
        if copula and not _NEGATION_ZH.search(before[copula.start() :]):
            if copula["loose"] and not copula["of"] and term.type == "number":
                return None
            return "=", copula.start(), False, (copula["of"] or "")[:-1] or None
        if re.search(r"[⟧⟫](?:应当|必须|应|须)?$", before):
            return "=", len(before), False, None
        return None
    start, operator, of = best
    lead = MARK.sub("", lead_all[:start])
    direct = re.search(r"(?:不|未|没有|无)(?:得|能|可|应|会|许|准)?(?:再|被)?$", lead)
    negated = bool(direct or _NEGATION_ZH.search(lead))
    if negated and operator in NEGATED:
        operator = NEGATED[operator]
    return operator, start, negated, of


def _head(before: str) -> str:
    """What stands before the verb of a clause whose operator follows the value."""
    verb = re.search(
        r"(?:必须|应当|须|应|需|得|为|是|要|可|于|在)(?=[^⟧⟫]*$)",
        MARK.sub(lambda m: "X" * len(m[0]), before),
    )
    return before[: verb.start()] if verb else before


def _base(gap: str) -> str | None:
    """The base of a percentage between an operator and its value: 房屋总价 of 至少为房屋总价的三成."""
    base = re.sub(rf"^{_GAP_ZH}", "", plain(gap))
    base = re.sub(r"(?:的|之)$", "", base)
    return base if base and not re.search(r"[，。；]", base) else None


def _of_before(before: str) -> str | None:
    match = re.search(r"(?:为|是|在|于)(?P<of>[^，。；为是在于]{1,24})的$", plain(before))
    return match["of"] if match else None


_OF_EN = re.compile(
    r"^\s*of\s+(?:the\s+|an?\s+|its\s+|their\s+|his\s+|her\s+)?(.+?)"
    r"(?=\s*(?:[,;.()]|\b(?:and|or|per|when|if|within|after|unless|except|during|from|which|that|where|before|by|in any)\b|$))",
    re.IGNORECASE,
)


def percent_base(text: str, found: Compared, lang: str) -> str | None:
    """The `of` of a percentage, without article and marks."""
    if found.terms[0].type != "percent":
        return None
    if lang == "en":
        match = _OF_EN.match(text[found.terms[-1].end :])
        half = re.match(
            r"\s+the\s+([\w\s-]+?)(?=[,;.]|\b(?:and|or|per|if|when)\b|$)",
            text[found.terms[-1].end :],
        )
        if (
            match is None
            and half is not None
            and "half" in text[found.terms[0].start : found.terms[0].end].lower()
        ):
            match = half
        return plain(match[1]).strip().lower() if match else None
    if found.of:
        return re.sub(r"^(?:其|该|本)", "", plain(found.of)) or None
    before = plain(text[: found.terms[0].start])
    match = re.search(r"(?:介于|在|为|是|于)(?P<of>[^，。；为是在于\d%]{1,24}?)的?$", before)
    return match["of"] if match else None


def value_json(value: Value, of: str | None) -> Any:
    """The JSON form of a value in a reading."""
    if isinstance(value, Percent) and of and value.of is None:
        value = Percent(value.percent, of)
    return value.to_json()


def norms_of(
    text: str, found: list[Compared], lang: str
) -> list[tuple[int, str, Any, str, list[str]]]:
    """(position, operator, JSON value, type, words that can be read in two ways) of comparisons;
    an inclusive lower and upper bound in a row become `between`."""
    made: list[tuple[int, str, Any, str, list[str]]] = []
    for item in found:
        of = percent_base(text, item, lang)
        if of is None and item.terms[0].type == "percent" and len(found) > 1:
            of = next((b for b in (percent_base(text, f, lang) for f in found) if b), None)
        first, doubtful = item.terms[0], [text[t.start : t.end] for t in item.terms if t.ambiguous]
        if item.operator == "between":
            if isinstance(first.value, Range):
                low, high = first.value.low, first.value.high
            else:
                low, high = item.terms[0].value, item.terms[1].value
                if isinstance(low, Number) and not isinstance(high, Number):
                    low = _like(high, low)
            made.append(
                (
                    item.at,
                    "between",
                    [value_json(low, of), value_json(high, of)],
                    high.type,
                    doubtful,
                )
            )
            continue
        made.append((item.at, item.operator, value_json(first.value, of), first.type, doubtful))
    merged: list[tuple[int, str, Any, str, list[str]]] = []
    for one in made:
        if (
            merged
            and {merged[-1][1], one[1]} == {">=", "<="}
            and merged[-1][3] in (one[3], "number")
        ):
            last = merged[-1]
            if not marks(text[last[0] : one[0]]):
                ends = [last[2], one[2]] if last[1] == ">=" else [one[2], last[2]]
                merged[-1] = (last[0], "between", ends, one[3], last[4] + one[4])
                continue
        merged.append(one)
    return merged


def _like(other: Value, number: Number) -> Value:
    if isinstance(other, Duration):
        return Duration(number.number, other.unit)
    if isinstance(other, Percent):
        return Percent(number.number, other.of)
    if isinstance(other, Quantity):
        return Quantity(number.number, other.unit)
    if isinstance(other, Money):
        return Money(number.number, other.currency)
    return number


_SEPARATOR = re.compile(
    r"\s*(?:,\s*(?:or|and)\b|,|;|\bor\b|\band\b|/|、|，?(?:或者是|或者|或是|或|以及|及|和))\s*",
    re.IGNORECASE,
)


def listed(text: str) -> tuple[list[Any], str, list[str]] | None:
    """(members, type, doubtful words) of "12, 24 or 36 months", A、B或C: typed where all are."""
    pieces = [plain(p).strip() for p in _SEPARATOR.split(_guard(text)) if p and plain(p).strip()]
    pieces = [p.replace("\ue00c", ",").strip(" .。") for p in pieces]
    if not pieces:
        return None
    read: list[Term | None] = []
    for piece in pieces:
        found = [t for t in terms(piece) if t.start <= 1]
        whole = next((t for t in found if _covers(piece, t)), None)
        read.append(whole)
    if all(r is not None and not isinstance(r.value, Range) for r in read):
        known = [r for r in read if r is not None]
        last = next((r.value for r in reversed(known) if r.type != "number"), known[-1].value)
        values = [_like(last, r.value) if isinstance(r.value, Number) else r.value for r in known]
        if len({v.type for v in values}) == 1:
            doubtful = [piece for piece, r in zip(pieces, known, strict=True) if r.ambiguous]
            return [v.to_json() for v in values], values[0].type, doubtful
    members = [
        re.sub(r"^(?:the|an?|either)\s+", "", p, flags=re.I) if not p[:1].isupper() else p
        for p in pieces
    ]
    return members, "choice", []


def _guard(text: str) -> str:
    """Commas within numbers are no separators."""
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\ue00c", text)


def _covers(piece: str, term: Term) -> bool:
    rest = (piece[: term.start] + piece[term.end :]).strip()
    if not rest:
        return True
    return term.type == "number" and bool(
        re.fullmatch(r"[a-z]+|[个种次人件张份条名位款类项台期片粒套]", rest)
    )
