"""Finding triggers in a token stream: ours beside peers, on the same tokens and patterns.

Four ways to be called: the whole stream at once, one call per token, many streams at once, one
call per step of many streams. A scanner says where patterns end; a mask generator also knows
which tokens may follow. Their figures stand in one table because both are paid at every token.
"""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import peers
from benchmarks.measure import Figure, Size, figure, interleaved, seconds
from benchmarks.text import cut_literals, reference_text
from zerolayer import _host, automaton, ops
from zerolayer.errors import ZerolayerError

LONGEST_BUILD = 300.0  # seconds a build may be expected to take; a longer one is left out
FAST_BUILD, FAST_BUILD_FROM = 20, 64  # times faster than stop strings, from so many patterns on
CALLS = 200  # of a peer that takes a tenth of a millisecond and more
COPY = "ceiling: copy of the tokens"
EMPTY = "ceiling: empty op call"
CAPTION = (
    "A scanner says where patterns end. A mask generator also knows which tokens may follow, which "
    "is more than is asked of it here; its mask is not timed. Only zerolayer folds case and white "
    "space, finds whole words alone and takes plurals."
)
SCAN = "zerolayer scan_tokens"
STEP = "zerolayer Watcher.step"


def run(tokenizer: Any, width: int, size: Size) -> list[Figure]:
    """All figures of the scanner.

    Args:
        width: of the model's logits.

    Raises:
        ZerolayerError: our matches are not those of the Aho-Corasick oracle.
    """
    text = reference_text()
    stream = _Stream(tokenizer, text, size)
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, width)
    figures: list[Figure] = []
    builders = _Builders(tokenizer, width, stream.one[:1000])
    for count in size.literals:
        literals = cut_literals(text, count)
        scanner = _Scanner(literals, vocabulary)
        figures += _check(literals, scanner, stream, vocabulary)
        built = [b for b in (builders.build(n, literals) for n in ("xgrammar", "llguidance")) if b]
        figures += _build_figures(count, scanner, built, builders.left_out)
        figures += _whole(count, literals, scanner, stream, size)
        figures += _per_token(count, scanner, built, stream, size)
        figures += _many(count, scanner, built, stream, size)
    for count in size.stop_strings:
        literals = cut_literals(text, count)
        scanner = _Scanner(literals, vocabulary)
        criteria = builders.build("stop_strings", literals)
        made = [criteria] if criteria else []
        figures += _build_figures(count, scanner, made, builders.left_out)
        if count == max(size.stop_strings):
            figures += _per_token(count, scanner, made, stream, size, CALLS)
            figures += _many(count, scanner, made, stream, size, CALLS // 10)
    return figures


class _Stream:
    """One stream of tokens, and the same tokens as many streams side by side."""

    def __init__(self, tokenizer: Any, text: str, size: Size) -> None:
        wanted = max(size.tokens, size.streams * size.steps)
        ids = tokenizer(text, add_special_tokens=False).input_ids
        tokens = list(itertools.islice(itertools.cycle(ids), wanted))
        self.tokenizer = tokenizer
        self.one = tokens[: size.tokens]
        self.many = torch.tensor(tokens[: size.streams * size.steps], dtype=torch.int32)
        self.many = self.many.reshape(size.streams, size.steps)


class _Scanner:
    """Our automaton for some literals."""

    def __init__(self, literals: Sequence[str], vocabulary: automaton.Vocabulary) -> None:
        began = time.perf_counter()
        self.arena = automaton.compile_triggers([[x] for x in literals], vocabulary)
        self.seconds = time.perf_counter() - began
        self.start = automaton.start_state(self.arena)

    def states(self, rows: int) -> Tensor:
        return torch.full((rows,), self.start, dtype=torch.int32)

    def scan(self, tokens: Tensor, lengths: Tensor, states: Tensor) -> Tensor:
        return ops.scan_tokens(tokens, lengths, states, self.arena)  # type: ignore[no-any-return]

    def watcher(self) -> Any:
        return _host.Watcher(self.arena.numpy(), np.zeros(1, np.int32))


class _Builders:
    """Builds peers; leaves out what is not installed, or would take too long to build."""

    def __init__(self, tokenizer: Any, width: int, sample: Sequence[int]) -> None:
        self.tokenizer, self.width = tokenizer, width
        self.sample = sample  # tokens that every peer must take
        self.took: dict[str, tuple[int, float]] = {}  # the last build: patterns, seconds
        self.left_out: dict[str, str] = {}

    def build(self, name: str, literals: Sequence[str]) -> peers.Built | None:
        self.left_out.pop(name, None)
        if not peers.importable("transformers" if name == "stop_strings" else name):
            return None
        if name in self.took:
            count, took = self.took[name]
            if took * len(literals) / count > LONGEST_BUILD:
                self.left_out[name] = f"{name} left out: {count:,} patterns took {took:.0f} s"
                return None
        try:
            built: peers.Built = getattr(peers, name)(self.tokenizer, self.width, literals)
        except (ValueError, RuntimeError) as error:
            said = str(error).strip().splitlines()[0][:80]
            self.left_out[name] = f"{name} left out: it refuses {len(literals):,} patterns ({said})"
            return None
        self.took[name] = len(literals), built.seconds
        if name != "stop_strings" and not all(map(built.stream(), self.sample)):
            self.left_out[name] = f"{name} left out: it refuses a token of the text"
            return None
        return built


def _check(
    literals: Sequence[str],
    scanner: _Scanner,
    stream: _Stream,
    vocabulary: automaton.Vocabulary,
) -> list[Figure]:
    """Compare all matches with the oracle's: whole words, at the token that has the byte after.

    Ours also takes plurals and possessives ("rents"): an event of ours at whose place the oracle
    has none must be such a form.
    """
    if not peers.importable("ahocorasick_rs"):
        return []
    ends = list(itertools.accumulate(len(vocabulary.token_bytes[t] or b"") for t in stream.one))
    data = b"".join(vocabulary.token_bytes[t] or b"" for t in stream.one).lower()
    wanted = set()
    for pattern, begin, end in peers.AhoCorasick(literals).find(data):
        whole = not _word(data[begin - 1 : begin]) and not _word(data[end : end + 1])
        if whole and end < len(data):  # the stream may go on behind its last byte
            wanted.add((bisect.bisect_right(ends, end), pattern))
    tokens = torch.tensor([stream.one], dtype=torch.int32)
    length = torch.tensor([len(stream.one)], dtype=torch.int32)
    events = scanner.scan(tokens, length, scanner.states(1))[0]
    sets = automaton.event_sets(scanner.arena)
    found = {
        (int(at), trigger) for at in (events >= 0).nonzero() for trigger in sets[int(events[at])]
    }
    missed = wanted - found
    strange = [
        (at, trigger)
        for at, trigger in found - wanted
        if not _inflected(data[: ends[at]], literals[trigger].lower().encode())
    ]
    if missed or strange:
        at, trigger = next(iter([*missed, *strange]))
        raise ZerolayerError(
            f"scan_tokens differs from Aho-Corasick in {len(missed) + len(strange)} of "
            f"{len(wanted)} matches, first at token {at}, pattern {literals[trigger]!r}; "
            "its figures would mean nothing"
        )
    case = f"{len(literals):,} literals, matches"
    return [
        figure("scan", case, "same as Aho-Corasick", "count", [len(wanted)]),
        figure("scan", case, "inflected forms besides", "count", [len(found) - len(wanted)]),
    ]


def _word(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_"


def _inflected(before: bytes, literal: bytes) -> bool:
    """Whether the text before an event ends in the literal with an ending ("es", "'s", "ies")."""
    begin = before.rfind(literal[:-1], max(0, len(before) - len(literal) - 90))
    if begin < 0 or _word(before[begin - 1 : begin] if begin else b""):
        return False
    rest = before[begin + len(literal) - 1 :].replace(b"'", b"")
    ending = rest[: next((i for i in range(len(rest)) if not _word(rest[i : i + 1])), len(rest))]
    return len(ending) <= 4 and ending.isalpha() and ending != literal[-1:]


def _build_figures(
    count: int, scanner: _Scanner, built: Sequence[peers.Built], left_out: dict[str, str]
) -> list[Figure]:
    ours = [scanner.seconds]
    case = f"{count:,} literals, build"
    note = "; ".join(left_out.values())
    figures = [figure("scan", case, "zerolayer compile_triggers", "s", ours, note=note)]
    for b in built:
        figures.append(figure("scan", case, b.name, "s", [b.seconds], ours))
        if b.name == peers.STOP_STRINGS and count >= FAST_BUILD_FROM:
            figures.append(_against(case, b.name, ours, [b.seconds], 1 / FAST_BUILD))
    size = [float(scanner.arena.numel())]
    case = f"{count:,} literals, tables"
    figures += [figure("scan", case, "zerolayer compile_triggers", "bytes", size)]
    return figures + [
        figure("scan", case, b.name, "bytes", [float(b.size)], size) for b in built if b.size
    ]


def _whole(
    count: int, literals: Sequence[str], scanner: _Scanner, stream: _Stream, size: Size
) -> list[Figure]:
    """The whole stream in one call, as a finished text is read; Aho-Corasick needs its text."""
    tokens = torch.tensor([stream.one], dtype=torch.int32)
    length = torch.tensor([len(stream.one)], dtype=torch.int32)
    place = torch.empty_like(tokens)
    cases: dict[str, Callable[[], object]] = {
        SCAN: lambda: scanner.scan(tokens, length, scanner.states(1)),
        COPY: lambda: place.copy_(tokens),
    }
    if peers.importable("ahocorasick_rs"):
        oracle = peers.AhoCorasick(literals)
        text = stream.tokenizer.decode(stream.one)
        cases["ahocorasick-rs on the text"] = lambda: oracle.find(text.encode())
        cases["ahocorasick-rs, text made of tokens"] = lambda: oracle.find(
            stream.tokenizer.decode(stream.one).encode()
        )
    return _timed(f"{count:,} literals, whole stream", cases, len(stream.one), size.rounds)


def _per_token(
    count: int,
    scanner: _Scanner,
    built: Sequence[peers.Built],
    stream: _Stream,
    size: Size,
    calls: int | None = None,
) -> list[Figure]:
    """One call per token, as a decode step of one request does."""
    tokens = stream.one[:calls]
    ones = [torch.tensor([[t]], dtype=torch.int32) for t in tokens]
    length = torch.ones(1, dtype=torch.int32)

    states = scanner.states(1)

    def scan() -> None:
        for one in ones:
            scanner.scan(one, length, states)

    step = scanner.watcher().step
    cases: dict[str, Callable[[], object]] = {
        STEP: lambda: _feed(step, tokens),
        f"{SCAN} [1, 1]": scan,
        EMPTY: lambda: _feed(torch.ops.aten.alias, ones),
    }
    for one in built:
        cases[one.name] = partial(_feed, one.stream(), tokens)
    return _timed(f"{count:,} literals, a call per token", cases, len(tokens), size.rounds)


def _feed(take: Callable[[Any], object], items: Sequence[Any]) -> None:
    for item in items:
        take(item)


def _many(
    count: int,
    scanner: _Scanner,
    built: Sequence[peers.Built],
    stream: _Stream,
    size: Size,
    calls: int | None = None,
) -> list[Figure]:
    """Many streams side by side: all of it in one call, then a step of all of them at a time."""
    rows = stream.many.shape[0]
    many = stream.many[:, :calls].contiguous()
    steps = many.shape[1]
    columns = [many[:, t : t + 1].contiguous() for t in range(steps)]
    lists = many.T.tolist()
    lengths = torch.full((rows,), steps, dtype=torch.int32)
    ones = torch.ones(rows, dtype=torch.int32)
    place = torch.empty_like(many)
    states = scanner.states(rows)

    def by_step() -> None:
        for column in columns:
            scanner.scan(column, ones, states)

    def in_turn(takes: Sequence[peers.Take]) -> None:
        for column in lists:
            for take, token in zip(takes, column, strict=True):
                take(token)

    whole = _timed(
        f"{count:,} literals, {rows} streams at once",
        {
            SCAN: lambda: scanner.scan(many, lengths, scanner.states(rows)),
            COPY: lambda: place.copy_(many),
        },
        rows * steps,
        size.rounds,
    )
    watchers = [scanner.watcher().step for _ in range(rows)]
    cases: dict[str, Callable[[], object]] = {
        f"{SCAN} [{rows}, 1]": by_step,
        STEP: lambda: in_turn(watchers),
    }
    for one in built:
        if one.batch is not None:
            cases[one.name] = partial(_feed, one.batch(rows), lists)
        else:
            takes = [one.stream() for _ in range(rows)]
            cases[one.name] = partial(in_turn, takes)
    case = f"{count:,} literals, a step of {rows} streams"
    return whole + _timed(case, cases, rows * steps, size.rounds)


def _timed(
    case: str, cases: dict[str, Callable[[], object]], tokens: int, rounds: int
) -> list[Figure]:
    """Nanoseconds per token of each case; the first is ours."""
    taken = interleaved({name: partial(seconds, work) for name, work in cases.items()}, rounds)
    samples = {name: [s * 1e9 / tokens for s in each] for name, each in taken.items()}
    ours = samples[next(iter(cases))]
    figures = [
        figure("scan", case, name, "ns/token", s, None if s is ours else ours)
        for name, s in samples.items()
    ]
    return figures + [
        _against(case, name, ours, samples[name], 1.0)
        for name in cases
        if name in peers.FASTER_THAN
    ]


def _against(
    case: str, name: str, ours: Sequence[float], theirs: Sequence[float], limit: float
) -> Figure:
    """The ratio itself as a figure, with the limit that it must keep."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return figure("scan", case, f"ours / {name}", "ratio", ratios, limit=limit)
