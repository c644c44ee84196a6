"""Trigger patterns as programs for the automaton compiler: literals, and a bounded subset of
regular expressions.
"""

from __future__ import annotations

# Python's own parser: no other is as well kept, and it alone reads every pattern exactly as `re`
# does. Hypothesis builds on the same module.
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from zerolayer.errors import ZerolayerError

Ranges = list[tuple[int, int]]
Program = list[int]

SET, CAT, ALT, REPEAT = range(4)  # operations of csrc/host/automaton.h
MAX_LENGTH = 2_000  # characters of a regular expression
MAX_POSITIONS = 2_000  # characters that it may match, repeats written out
_LAST = 0x10FFFF
_ADVICE = {
    sre.GROUPREF: ("a back-reference", "write the repeated text out"),
    sre.GROUPREF_EXISTS: ("a conditional group", "write the alternatives out with |"),
    sre.ASSERT: ("a lookahead or lookbehind", "write the text itself as part of the pattern"),
    sre.ASSERT_NOT: ("a negative lookaround", "list what may come, for example [a-z]"),
    sre.AT: ("an anchor", "leave it out, a pattern is found anywhere in the text"),
    sre.MIN_REPEAT: ("a lazy repeat", "write it without the ?, every end is found"),
    sre.POSSESSIVE_REPEAT: ("a possessive repeat", "write it without the last +"),
    sre.ATOMIC_GROUP: ("an atomic group", "write it as an ordinary group"),
}


@dataclass(frozen=True)
class Regex:
    """A trigger given as a regular expression: literals, groups, `|`, classes, `.`, `\\d`, `\\w`,
    `\\s`, `?` and `{n,m}`, over Unicode. Case and width are folded; it is found anywhere, also
    within words, and at every place where a match ends.
    """

    pattern: str


def program_of(regex: Regex, where: str) -> Program:
    """The program of a regular expression.

    Args:
        where: names the trigger in errors.

    Raises:
        ZerolayerError: a syntax error, a construct outside the subset, or a pattern too large.
    """
    named = f"regular expression {regex.pattern[:80]!r} of {where}"
    if len(regex.pattern) > MAX_LENGTH:
        raise ZerolayerError(f"{named} has more than {MAX_LENGTH} characters; split it up")
    try:
        parsed = sre_parser.parse(regex.pattern)
    except (re.error, OverflowError) as error:
        raise ZerolayerError(f"{named} cannot be read: {error}; correct it there") from error
    except RecursionError as error:
        raise ZerolayerError(f"{named} is nested too deeply; write it with fewer groups") from error
    if parsed.state.flags & ~(re.UNICODE | re.IGNORECASE):
        raise ZerolayerError(f"{named} has flags; leave them out, case is always folded")
    size = _size(parsed, named)
    if size > MAX_POSITIONS:
        raise ZerolayerError(
            f"{named} stands for {size} characters with its repeats written out, more than "
            f"{MAX_POSITIONS}; shorten the repeats"
        )
    if parsed.getwidth()[0] == 0:
        raise ZerolayerError(f"{named} matches the empty text; make one of its parts required")
    return _program(parsed, named)


def _size(parsed: Any, named: str) -> int:
    """Characters of the pattern with its repeats written out; refuses what is outside."""
    total = 0
    for op, value in parsed:
        if op in _ADVICE:
            what, instead = _ADVICE[op]
            raise ZerolayerError(f"{named} has {what}; {instead}")
        if op is sre.MAX_REPEAT:
            low, high, part = value
            if high is sre.MAXREPEAT:
                raise ZerolayerError(
                    f"{named} has a repeat without an end; give one, for example "
                    f"{{{max(low, 1)},20}}"
                )
            total += int(high) * max(1, _size(part, named))
        elif op is sre.SUBPATTERN:
            if value[1] or value[2]:
                raise ZerolayerError(f"{named} has flags; leave them out, case is always folded")
            total += _size(value[3], named)
        elif op is sre.BRANCH:
            total += sum(_size(part, named) for part in value[1])
        else:
            total += 1
    return total


def _program(parsed: Any, named: str) -> Program:
    parts: list[Program] = []
    for op, value in parsed:
        if op is sre.LITERAL:
            parts.append(one_of([(value, value)]))
        elif op is sre.NOT_LITERAL:
            parts.append(_set(_complement(folded([(value, value)]))))
        elif op is sre.ANY:
            parts.append(_set(_complement([(10, 10)])))
        elif op is sre.IN:
            parts.append(_class(value))
        elif op is sre.MAX_REPEAT:
            low, high, part = value
            parts.append([*_program(part, named), REPEAT, int(low), int(high)])
        elif op is sre.SUBPATTERN:
            parts.append(_program(value[3], named))
        elif op is sre.BRANCH:
            parts.append(either([_program(part, named) for part in value[1]]))
        else:
            raise ZerolayerError(f"{named} has {op}, which is unknown; leave it out")
    return sequence(parts)


def _class(items: Any) -> Program:
    ranges: Ranges = []
    negated = False
    for op, value in items:
        if op is sre.NEGATE:
            negated = True
        elif op is sre.LITERAL:
            ranges += folded([(value, value)])
        elif op is sre.RANGE:
            ranges += folded([value])
        else:
            ranges += _category(value)
    return _set(_complement(ranges) if negated else _merged(ranges))


def sequence(parts: Sequence[Program]) -> Program:
    """One program after the other."""
    return [*(x for part in parts for x in part), CAT, len(parts)]


def either(parts: Sequence[Program]) -> Program:
    """One of the programs."""
    return [*(x for part in parts for x in part), ALT, len(parts)]


def one_of(ranges: Ranges) -> Program:
    """One character of the ranges, in any case and width."""
    return _set(folded(ranges))


def literal_set(characters: Iterable[str]) -> Program:
    """One of the characters, as they are."""
    return _set(_merged([(ord(c), ord(c)) for c in characters]))


def _set(ranges: Ranges) -> Program:
    return [SET, len(ranges), *(x for pair in ranges for x in pair)]


def _merged(ranges: Ranges) -> Ranges:
    out: Ranges = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def _complement(ranges: Ranges) -> Ranges:
    out, at = [], 0
    for low, high in _merged(ranges):
        if low > at:
            out.append((at, low - 1))
        at = high + 1
    if at <= _LAST:
        out.append((at, _LAST))
    return out


def folded(ranges: Ranges) -> Ranges:
    """The ranges with every other case and width of their characters."""
    out: Ranges = []
    for low, high in ranges:
        out.append((low, high))
        if high - low > 0x3000:  # a range over whole scripts holds both cases of nearly all
            continue
        for c in range(low, high + 1):
            out += [(o, o) for o in _others(c)]
    return _merged(out)


@cache
def _others(c: int) -> tuple[int, ...]:
    half = c - 0xFEE0 if 0xFF01 <= c <= 0xFF5E else c
    found = {half}
    for _ in range(2):
        for x in list(found):
            found |= {ord(v) for v in (chr(x).lower(), chr(x).upper()) if len(v) == 1}
    found |= {x + 0xFEE0 for x in found if 0x21 <= x <= 0x7E}
    return tuple(sorted(found - {c}))


@cache
def _table(kind: str) -> tuple[tuple[int, int], ...]:
    tests: dict[str, Callable[[str], bool]] = {
        "digit": str.isdecimal,
        "space": str.isspace,
        "word": lambda c: c.isalnum() or c == "_",
    }
    test = tests[kind]
    return tuple(_merged([(c, c) for c in range(_LAST + 1) if test(chr(c))]))


def _category(category: Any) -> Ranges:
    name = str(category).lower()
    kind = next(k for k in ("digit", "space", "word") if k in name)
    ranges = list(_table(kind))
    return _complement(ranges) if "not" in name else ranges
