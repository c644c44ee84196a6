"""A rules file checked: its readings, and everything in it that is wrong."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

from ska_builder.language import chinese, english
from ska_builder.language.diagnostics import Diagnostic
from ska_builder.language.document import Field, Reader, Rule
from ska_builder.language.marked import mark, marks, plain
from ska_builder.language.norms import (
    MAX_SENTENCE,
    Sentence,
    continue_precedence,
    read_sentence,
    readings_of,
)
from ska_builder.language.words import ACTION_FORMS, ACTION_WORDS, TYPE_NAMES, WORDS
from zerolayer.readings import Reading
from zerolayer.values import Range, Value, compare, find_values, same, value_from_json

# A word counts as much more common from five times the frequency (Zipf scale: log10).
MUCH_MORE_COMMON = 0.7
FEWEST_EXAMPLES = 2


@dataclass
class Checked:
    """What a rules file says and what is wrong with it."""

    readings: list[Reading]
    diagnostics: list[Diagnostic]
    text: str = ""  # as it was read
    title: str = ""
    rules: list[Rule] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "error"]


@dataclass
class _Read:
    """One sentence of a rule with its line and readings."""

    line: int
    sentence: Sentence
    text: str
    readings: list[Reading]


def check_text(text: str, path: str = "rules.md", tokenizer: Any = None) -> Checked:
    """Read a rules file.

    Args:
        text: the file's text.
        path: its name in diagnostics.
        tokenizer: the target model's tokenizer, with `encode` and `decode`; terms that it cannot
            produce are warned of.

    Raises:
        ZerolayerError: the file is larger than 1 MB, or a rule longer than 10,000 characters.
    """
    reader = Reader(text, path)
    read: list[tuple[Rule, list[_Read]]] = [(rule, _rule(reader, rule)) for rule in reader.rules]
    readings = [r for _, sentences in read for s in sentences for r in s.readings]
    _unknown_slots(reader, read, readings)
    _conflicts(reader, readings)
    _cycles(reader, readings)
    for rule, sentences in read:
        own = [r for s in sentences for r in s.readings]
        _examples(reader, rule, own)
        _triggers(reader, rule, own)
    _common_words(reader, readings)
    if tokenizer is not None:
        _untokenizable(reader, readings, tokenizer)
    diagnostics = sorted(reader.diagnostics, key=lambda d: (d.line, d.column, d.code))
    return Checked(readings, diagnostics, text, reader.title, reader.rules, reader.languages)


# --- one rule -----------------------------------------------------------------------------------


def _rule(reader: Reader, rule: Rule) -> list[_Read]:
    read: list[_Read] = []
    stated: str | None = None
    for line, text in rule.sentences:
        last = next((r for one in reversed(read) for r in reversed(one.readings)), None)
        sentence = read_sentence(text, after_norm=last is not None)
        one = _Read(line, sentence, text, readings_of(sentence, rule.heading, line))
        read.append(one)
        if not sentence.understood:
            shown = plain(text).replace("\x1e", "; ").replace("\n", " ")
            long = len(shown) > MAX_SENTENCE
            reader.report(
                line,
                "unreadable-sentence",
                f"this sentence is longer than {MAX_SENTENCE} characters: {shown[:200]}…"
                if long
                else f"this sentence states no norm that could be read: {shown}",
                "write several shorter sentences" if long else _advice(sentence.lang),
                reader.column(line, text),
            )
            continue
        if sentence.failure:
            action = ACTION_FORMS.get(sentence.failure)
            if action is None:
                _unknown_action(reader, line, sentence.failure)
            elif stated is not None and stated != action:
                reader.report(
                    line,
                    "field-disagrees",
                    f'the action here is "{action}", above it is "{stated}"',
                    "keep one of the two",
                    reader.column(line, text),
                )
            else:
                stated = action
        if sentence.exceptions and last is not None:
            key = "unless" if last.kind == "prohibition" else "except"
            last.details[key] = [*last.details.get(key, []), *sentence.exceptions]
        if sentence.ties or sentence.unresolved:
            if last is not None and last.kind == "precedence":
                continue_precedence(last, sentence)
            else:
                made = Reading(
                    rule.heading,
                    line,
                    "precedence",
                    cast(Any, sentence.lang),
                    details={"order": []},
                )
                continue_precedence(made, sentence)
                one.readings.append(made)
        for norm in sentence.norms:
            for words in norm.ambiguous:
                _ambiguous(reader, line, words, find_values(words))
        _yen(reader, line, text)
    _fields(reader, rule, read, stated)
    return read


def _advice(lang: str) -> str:
    if lang == "zh":
        return "请写成规则，例如：**X**不得超过…；**X**须与合同一致；不得…；提及…时，须…；A优先于B"
    return (
        'state a norm, such as "The **X** must not exceed …", "The **X** must match the contract", '
        '"Never …", "When …, state …", "A prevails over B"'
    )


def _unknown_action(reader: Reader, line: int, word: str) -> None:
    reader.report(
        line,
        "unknown-action",
        f'there is no action "{word}"',
        "the actions are observe, steer, enforce, repair, stop (记录, 引导, 强制, 更正, 停止)",
        reader.column(line, word),
    )


def _ambiguous(reader: Reader, line: int, words: str, found: list[Any]) -> None:
    both = [v.to_json() for f in found for v in f.ambiguous]
    shown = " or ".join(str(v) for v in both) or "two values"
    reader.report(
        line,
        "ambiguous-value",
        f'"{words}" can be read as {shown}',
        "write the month as a word, or the date as 2027-04-03",
        reader.column(line, words),
    )


def _yen(reader: Reader, line: int, text: str) -> None:
    """¥ is the sign of two currencies, which a file in two languages leaves open."""
    if len(set(reader.languages)) < 2:
        return
    for match in re.finditer(r"[¥￥]\s?[\d.,]+[万亿]?|[¥￥]", plain(text)):
        words = match[0].rstrip(".,")
        reader.report(
            line,
            "ambiguous-value",
            f'"{words}" can be read as CNY or as JPY in a file in two languages',
            'write "CNY 500" or "JPY 500"',
            reader.column(line, words),
        )


def _fields(reader: Reader, rule: Rule, read: list[_Read], stated: str | None) -> None:
    action = stated
    also: list[str] = []
    type_: str | None = None
    exceptions: list[str] = []
    readings = [r for one in read for r in one.readings]
    head = next((r for r in readings if r.slot is not None or r.kind == "definition"), None)
    for entry in rule.fields:
        value = entry.values[0] if entry.values else ""
        if entry.key == "action":
            word = ACTION_WORDS.get(value.lower())
            if word is None:
                _unknown_action(reader, entry.line, value)
            elif action is not None and action != word:
                reader.report(
                    entry.line,
                    "field-disagrees",
                    f'the field "{entry.written}" says "{value}", but the rule says "{action}"',
                    "keep one of the two",
                    3,
                )
            else:
                action = word
        elif entry.key == "type":
            type_ = _type(reader, entry, value, head, type_)
        elif entry.key == "also":
            also += entry.values
        elif entry.key == "except":
            exceptions += _exceptions(entry)
    for one in read:
        for number, reading in enumerate(one.readings):
            one.readings[number] = _with_fields(
                reading,
                action,
                also if reading is head else [],
                type_ if reading is head else None,
                exceptions,
            )


def _exceptions(entry: Field) -> list[str]:
    made: list[str] = []
    for text in entry.values:
        body = mark(text)
        quoted = marks(body)
        # A field of quoted texts only lists them; other quotation marks belong to a clause.
        if quoted and not re.sub(r"[⟦⟪][^⟧⟫]*[⟧⟫]|[,，、;；\s]|\band\b|和|及", "", body):
            made += quoted
        elif re.search(r"[\u4e00-\u9fff]", body):
            made += chinese.things(re.sub(r"^除(?:非)?|除外$", "", body))
        else:
            made += english.things(body, "")
    return made


def _type(
    reader: Reader, entry: Field, value: str, head: Reading | None, before: str | None
) -> str | None:
    type_ = TYPE_NAMES.get(value.lower())
    if type_ is None:
        reader.report(
            entry.line,
            "malformed-field",
            f'the field "{entry.written}" names no type that is known: "{value}"',
            "the types are duration, money, date, percent, number, choice, text "
            "(时长, 金额, 日期, 百分比, 数字, 选项, 文本)",
            3,
        )
        return before
    stated = (
        head.slot.type
        if head is not None and head.slot is not None and head.kind == "bound"
        else None
    )
    if (before is not None and before != type_) or (
        stated is not None
        and stated != type_
        and not (type_ == "choice" and head is not None and head.details.get("operator") == "in")
    ):
        reader.report(
            entry.line,
            "field-disagrees",
            f'the field "{entry.written}" says "{value}", but the rule binds a {before or stated}',
            "take the field out, or write the value in that type",
            3,
        )
        return before
    return type_


def _with_fields(
    reading: Reading, action: str | None, also: list[str], type_: str | None, exceptions: list[str]
) -> Reading:
    details = dict(reading.details)
    slot = reading.slot
    if slot is not None:
        slot = replace(
            slot, also=tuple(dict.fromkeys((*slot.also, *also))), type=type_ or slot.type
        )
    elif reading.kind == "definition":
        details["also"] = list(dict.fromkeys((*details["also"], *also)))
    if exceptions and reading.kind not in ("definition", "precedence"):
        key = "unless" if reading.kind == "prohibition" else "except"
        listed = list(details.get(key, []))
        known = {_bare(e) for e in listed}
        details[key] = listed + [e for e in dict.fromkeys(exceptions) if _bare(e) not in known]
    return replace(reading, slot=slot, action=cast(Any, action), details=details)


def _bare(text: str) -> str:
    text = re.sub(r"^(?:the|an?)\s+", "", text.lower().strip())
    return re.sub(r"[^\w]", "", re.sub(r"的$", "", text))


# --- across rules -------------------------------------------------------------------------------


def _names(readings: list[Reading]) -> set[str]:
    names: set[str] = set()
    for reading in readings:
        if reading.slot is not None:
            names |= {reading.slot.name, *reading.slot.also}
        if reading.kind == "definition":
            names |= {reading.details["term"], *reading.details["also"]}
        names |= set(reading.details.get("order", ()))
    return {english.name(n) for n in names}


def _unknown_slots(
    reader: Reader, read: list[tuple[Rule, list[_Read]]], readings: list[Reading]
) -> None:
    known = _names(readings)
    for rule, sentences in read:
        places = [(s.line, w) for s in sentences for w in s.sentence.marked_exceptions]
        for entry in rule.fields:
            if entry.key == "except":
                for text in entry.values:
                    body = mark(text)
                    if re.sub(r"[⟦⟪][^⟧⟫]*[⟧⟫]|[,，、;；\s]|\band\b|和|及", "", body):
                        places += [(entry.line, w) for w in marks(body)]
                    else:
                        places += [(entry.line, w) for w in re.findall(r"\*\*([^*]+)\*\*", text)]
        for line, words in places:
            if english.name(words) not in known:
                reader.report(
                    line,
                    "unknown-slot",
                    f'"{words}" in the exception names no slot or term of this file',
                    f'add a rule for "{words}", or write it without bold and quotation marks',
                    reader.column(line, words),
                )


_LOWER, _UPPER = (">", ">="), ("<", "<=")


def _ends(reading: Reading) -> Iterator[tuple[str, Value]]:
    """The comparisons of a bound, `between` as two."""
    assert reading.slot is not None
    operator, value = reading.details["operator"], reading.details["value"]
    if operator == "in":
        return
    values = value if operator == "between" else [value]
    operators = [">=", "<="] if operator == "between" else [operator]
    for op, data in zip(operators, values, strict=True):
        yield op, value_from_json(_type_of(data, reading.slot.type), data)


def _type_of(data: Any, declared: str) -> str:
    """The type of a JSON value, which a field's type does not change."""
    if isinstance(data, dict):
        if "count" in data:
            return "duration"
        if "percent" in data:
            return "percent"
        return "money" if "currency" in data else "quantity"
    if isinstance(data, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", data):
        return "date"
    return "number" if isinstance(data, str) and re.fullmatch(r"-?[\d.]+", data) else declared


def _contradict(op: str, value: Value, other: str, second: Value) -> str | None:
    order = compare(value, second)
    if (op in _LOWER and other in _LOWER) or (op in _UPPER and other in _UPPER):
        if value.type != second.type or getattr(value, "of", None) != getattr(second, "of", None):
            return None
        return "another limit" if not same(value, second) else None
    if op == "=" or other == "=":
        if op == other:
            return (
                "another value" if value.type == second.type and not same(value, second) else None
            )
        exact, limit, sign = (value, second, other) if op == "=" else (second, value, op)
        place = compare(exact, limit)
        return "a limit that excludes it" if place is not None and not _holds(place, sign) else None
    if order is None:
        return None
    low, high = (order, op + other) if op in _LOWER else (-order, other + op)
    return "limits that no value meets" if low > 0 or (low == 0 and high != ">=<=") else None


def _holds(order: int, sign: str) -> bool:
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "=": order == 0}[
        sign
    ]


def _conflicts(reader: Reader, readings: list[Reading]) -> None:
    earlier: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.kind != "bound" or reading.slot is None:
            continue
        names = {english.name(n) for n in (reading.slot.name, *reading.slot.also)}
        others = [r for n in names for r in earlier.get(n, ())]
        for other in dict.fromkeys(map(id, others)):
            first = next(r for r in others if id(r) == other)
            if first.details.get("when") != reading.details.get("when"):
                continue
            why = _conflict(first, reading)
            if why:
                reader.report(
                    reading.line,
                    "conflicting-bounds",
                    f'"{reading.slot.name}" is bound here and in line {first.line} to {why}',
                    "keep one of the two, or name the case that each is for",
                    reader.column(reading.line, reading.slot.name),
                )
                break
        else:
            low_high = list(_ends(reading))
            if len(low_high) == 2 and compare(low_high[0][1], low_high[1][1]) == 1:
                reader.report(
                    reading.line,
                    "conflicting-bounds",
                    f'no value of "{reading.slot.name}" lies between these limits',
                    "write the lower limit first",
                    reader.column(reading.line, reading.slot.name),
                )
        for n in names:
            earlier.setdefault(n, []).append(reading)


def _conflict(first: Reading, second: Reading) -> str | None:
    assert first.slot is not None and second.slot is not None
    lists = [r for r in (first, second) if r.details["operator"] == "in"]
    if len(lists) == 2:
        a, b = ([str(v) for v in r.details["value"]] for r in lists)
        return None if set(a) & set(b) else "lists that have no member in common"
    if len(lists) == 1:
        listed, limit = lists[0], second if lists[0] is first else first
        values = [value_from_json(_type_of(v, "choice"), v) for v in listed.details["value"]]
        for op, end in _ends(limit):
            places = [compare(v, end) for v in values]
            if all(p is not None and not _holds(p, op) for p in places):
                return "a limit that no member of the list meets"
        return None
    for op, value in _ends(first):
        for other, end in _ends(second):
            why = _contradict(op, value, other, end)
            if why:
                return why
    return None


def _cycles(reader: Reader, readings: list[Reading]) -> None:
    above: dict[str, list[str]] = {}
    for reading in readings:
        order = reading.details.get("order", []) if reading.kind == "precedence" else []
        for high, low in itertools.pairwise(order):
            path = [high] if high == low else _path(above, low, high)
            if path:
                circle = [high, *path] if high != low else [high, low]
                reader.report(
                    reading.line,
                    "precedence-cycle",
                    f"the order turns in a circle: {' > '.join(circle)}",
                    "take out one of these steps",
                    reader.column(reading.line, high),
                )
                break
            above.setdefault(high, []).append(low)


def _path(above: dict[str, list[str]], start: str, goal: str) -> list[str] | None:
    """A way from one member down to another."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop()
        if way[-1] == goal:
            return way
        for low in above.get(way[-1], ()):
            if low not in seen:
                seen.add(low)
                ways.append([*way, low])
    return None


# --- examples and triggers ----------------------------------------------------------------------


def _examples(reader: Reader, rule: Rule, readings: list[Reading]) -> None:
    learned = next((r for r in readings if r.kind in ("definition", "prohibition")), None)
    count = len(rule.good) + len(rule.bad)
    if learned is not None and count < FEWEST_EXAMPLES:
        reader.report(
            learned.line,
            "too-few-examples",
            f'the rule "{rule.heading}" has {count} example{"" if count == 1 else "s"}; '
            f"a {learned.kind} learns from two or more",
            "add a field good and a field bad with one sentence each",
        )
    bounds = [r for r in readings if r.kind == "bound" and r.slot is not None]
    for line, example in rule.entries("good"):
        for reading in bounds:
            if _violates(example, reading, bounds):
                assert reading.slot is not None
                reader.report(
                    line,
                    "example-violates-bound",
                    f'this good example breaks the bound on "{reading.slot.name}" '
                    f"in line {reading.line}",
                    "mend the example, or move it to the field bad",
                    reader.column(line, example),
                )
                break


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _violates(example: str, reading: Reading, bounds: list[Reading]) -> bool:
    slot = reading.slot
    assert slot is not None
    bare = unicodedata.normalize("NFKC", plain(mark(example)))
    named = [
        (m.start(), m.end())
        for n in (slot.name, *slot.also)
        for m in re.finditer(re.escape(_fold(n)), bare, re.I)
    ]
    data = reading.details["value"]
    type_ = _type_of(data[0] if isinstance(data, list) else data, slot.type)
    if type_ in ("choice", "text"):
        return _other_choice(bare, named, data)
    if type_ == "quantity":
        from ska_builder.language.bounds import terms

        found = [(t.start, t.value) for t in terms(bare) if t.type == "quantity"]
    else:
        found = [(f.start, f.value) for f in find_values(bare, {type_}) if not f.ambiguous]
    others = [
        m.start()
        for r in bounds
        if r.slot is not None and r.slot.name != slot.name
        for n in (r.slot.name, *r.slot.also)
        for m in re.finditer(re.escape(_fold(n)), bare, re.I)
    ]
    if named:
        start, end = named[0]
        stop = min([o for o in others if o >= end] + [len(bare)])
        values = [v for at, v in found if end <= at < stop] or [v for at, v in found if at < start]
    elif (
        len({r.slot.name for r in bounds if r.slot and r.slot.type == slot.type}) == 1
        and not others
    ):
        values = [v for _, v in found]
    else:
        return False
    return bool(values) and all(_breaks(v, reading) for v in values)


def _other_choice(bare: str, named: list[tuple[int, int]], choices: list[Any]) -> bool:
    if not named or any(_fold(str(c)) in _fold(bare) for c in choices):
        return False
    return bool(re.match(r"\s*(?:is|are|was|will be|=|:|为|是|：)\s*\S", bare[named[0][1] :]))


def _breaks(value: Value, reading: Reading) -> bool:
    data = reading.details["value"]
    if reading.details["operator"] == "in":
        allowed = [value_from_json(_type_of(v, ""), v) for v in data]
        return all(value.type == a.type and not same(value, a) for a in allowed)
    ends = [value.low, value.high] if isinstance(value, Range) else [value]
    for op, limit in _ends(reading):
        for end in ends:
            place = compare(end, limit)
            if place is not None and not _holds(place, op):
                return True
    return False


def _content(text: str) -> bool:
    """Whether a phrase has a word that a trigger can be made of."""
    stripped = text
    for word in sorted(WORDS["stop_words_zh"], key=len, reverse=True):
        stripped = stripped.replace(word, "")
    if (
        re.search(r"[\u3400-\u9fff]{1}", stripped)
        and len(re.findall(r"[\u3400-\u9fff]", stripped)) > 1
    ):
        return True
    words = re.findall(r"[a-z][a-z'-]+|\d+", stripped.lower())
    return any(w not in WORDS["stop_words"] for w in words)


def _triggers(reader: Reader, rule: Rule, readings: list[Reading]) -> None:
    if not readings:
        return
    for reading in readings:
        if reading.kind == "precedence" or (
            reading.kind == "requirement" and "when" not in reading.details
        ):
            return
        phrases = [reading.details.get(k, "") for k in ("term", "act", "when")]
        phrases += list(reading.details.get("also", ()))
        if reading.slot is not None:
            phrases += [reading.slot.name, *reading.slot.also]
        if any(_content(str(p)) for p in phrases):
            return
    reader.report(
        readings[0].line,
        "no-trigger",
        f'no trigger of the rule "{rule.heading}" can fire',
        "name in bold what the rule is about, or add a field also",
    )


@lru_cache(maxsize=2)
def _frequent(lang: str) -> dict[str, float]:
    """Common words with their Zipf frequency."""
    import math

    from wordfreq import get_frequency_dict

    table = get_frequency_dict(lang, wordlist="large" if lang == "en" else "best")
    return {word: math.log10(f) + 9 for word, f in table.items() if f > 1e-6}


def _common_words(reader: Reader, readings: list[Reading]) -> None:
    seen: set[str] = set()
    for reading in readings:
        term = reading.slot.name if reading.slot is not None else reading.details.get("term")
        if not term or term in seen or " " in term or len(term) > 12:
            continue
        seen.add(term)
        word = _host(term)
        if word:
            reader.report(
                reading.line,
                "trigger-in-common-word",
                f'"{term}" is part of the much more common word "{word}"',
                f'name it with more words than "{term}"',
                reader.column(reading.line, term),
            )


def _host(term: str) -> str | None:
    """The most common word that holds a term and is much more common than it; its own forms
    (rents, rented) are none."""
    chinese_term = bool(re.search(r"[\u3400-\u9fff]", term))
    if not chinese_term and not re.fullmatch(r"[a-z'-]+", term):
        return None
    table = _frequent("zh" if chinese_term else "en")
    own = table.get(term, 3.0)
    stem = re.escape(term)
    forms = re.compile(
        rf"{stem}(?:s|es|d|ed|ing|er|ers|'s|s'|ly)?|{re.escape(term.rstrip('ey'))}(?:ies|ied|ing|ed|ion|ions)"
    )
    hosts = [
        (zipf, word)
        for word, zipf in table.items()
        if zipf >= own + MUCH_MORE_COMMON
        and term in word
        and len(word) > len(term)
        and not forms.fullmatch(word)
    ]
    return max(hosts)[1] if hosts else None


def _untokenizable(reader: Reader, readings: list[Reading], tokenizer: Any) -> None:
    seen: set[str] = set()
    for reading in readings:
        names = [reading.slot.name, *reading.slot.also] if reading.slot is not None else []
        if reading.kind == "definition":
            names = [reading.details["term"], *reading.details["also"]]
        for term in names:
            if term in seen:
                continue
            seen.add(term)
            if not _producible(term, tokenizer):
                reader.report(
                    reading.line,
                    "untokenizable-term",
                    f'the model\'s tokenizer cannot produce "{term}"',
                    "add another name in the field also, or choose another model",
                    reader.column(reading.line, term),
                )


def _producible(term: str, tokenizer: Any) -> bool:
    ids = tokenizer.encode(term, add_special_tokens=False)
    unknown = getattr(tokenizer, "unk_token_id", None)
    if not ids or (unknown is not None and unknown in ids):
        return False
    back = tokenizer.decode(ids)
    return _fold(term).replace(" ", "") in _fold(back).replace(" ", "")
