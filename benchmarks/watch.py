"""What watching costs where nothing is decided: the session's work per token beside the model's
decode step at the same batch, taking turns in one run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import Figure, Size, figure, interleaved
from benchmarks.text import reference_text
from zerolayer import _host, automaton, ops
from zerolayer.errors import ZerolayerError
from zerolayer.readings import Slot
from zerolayer.runtime.session import Session, make_plans

LIMITS = {1: 1.0, 32: 0.2}  # per cent of a decode step, by batch
CONTEXT = 128  # tokens in the model's cache
KINDS = ("notice", "payment", "renewal", "warranty", "delivery", "retention", "grace", "cure")
SPANS = ("period", "term", "deadline", "window", "interval", "duration", "timeframe", "horizon")
SLOTS = [Slot(f"{kind} {span}", "duration") for kind in KINDS for span in SPANS]  # 64 triggers


def run(model: Any, tokenizer: Any, size: Size) -> list[Figure]:
    """All figures of watching.

    Raises:
        ZerolayerError: the text has a trigger, so something would be decided.
    """
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
    arena = automaton.compile_triggers([[s.name] for s in SLOTS], vocabulary)
    ids = tokenizer(reference_text(), add_special_tokens=False).input_ids
    answer = min(size.tokens, 256)  # tokens of one answer
    figures: list[Figure] = []
    for batch in size.batches:
        rows = [
            list(itertools.islice(itertools.cycle(ids), i * answer, (i + 1) * answer))
            for i in range(batch)
        ]
        _check_quiet(arena, rows)
        watched = _Watched(arena, vocabulary, tokenizer, rows)
        step = _decode_step(model, rows)
        cases: dict[str, Callable[[], float]] = {
            "model's decode step": step,
            "session, every row": watched.sessions,
            "part: scan_tokens": watched.scan,
            "part: Watcher.step of every row": watched.watchers,
            "ceiling: empty op call": watched.empty,
        }
        figures += _figures(batch, interleaved(cases, size.rounds))
    return figures


def _figures(batch: int, samples: dict[str, list[float]]) -> list[Figure]:
    """Microseconds per step of all rows, and each as a share of the model's step."""
    case = f"batch {batch}"
    ours, model = samples["session, every row"], samples["model's decode step"]
    figures = [
        figure("watch", case, name, "µs/step", s, None if s is ours else ours)
        for name, s in samples.items()
    ]
    shares = {
        name: [100 * a / b for a, b in zip(s, model, strict=True)]
        for name, s in samples.items()
        if s is not model
    }
    return figures + [
        figure(
            "watch",
            f"{case}, share of the step",
            name,
            "%",
            share,
            limit=LIMITS.get(batch) if name == "session, every row" else None,
        )
        for name, share in shares.items()
    ]


class _Watched:
    """The same rows of tokens, watched in several ways; each gives µs per step of all rows."""

    def __init__(
        self,
        arena: Tensor,
        vocabulary: automaton.Vocabulary,
        tokenizer: Any,
        rows: Sequence[Sequence[int]],
    ) -> None:
        self.arena, self.vocabulary, self.tokenizer = arena, vocabulary, tokenizer
        self.steps = list(zip(*rows, strict=True))  # the tokens of each step
        self.rows = len(rows)
        self.columns = [torch.tensor(s, dtype=torch.int32).reshape(-1, 1) for s in self.steps]
        self.ones = torch.ones(self.rows, dtype=torch.int32)
        start = automaton.start_state(arena)
        self.states = torch.full((self.rows,), start, dtype=torch.int32)
        self.steppers = [
            _host.Watcher(arena.numpy(), np.zeros(1, np.int32)).step for _ in range(self.rows)
        ]

    def sessions(self) -> float:
        """What the engine does: a session per row is fed and may adjust its logits. The mean over
        an answer, so that the reading of complete sentences is in it."""
        plans = make_plans([], SLOTS, [])
        made = [
            Session(self.arena, range(len(SLOTS)), plans, self.vocabulary, self.tokenizer)
            for _ in range(self.rows)
        ]
        logits = torch.zeros(1, 1)
        began = time.perf_counter()
        for tokens in self.steps:
            for session, token in zip(made, tokens, strict=True):
                session.adjust(logits)
                session.feed(token)
        return self._per_step(began)

    def scan(self) -> float:
        """The op alone, all rows in one call."""
        began = time.perf_counter()
        for column in self.columns:
            ops.scan_tokens(column, self.ones, self.states, self.arena)
        return self._per_step(began)

    def watchers(self) -> float:
        """The host's step alone, a call per row."""
        began = time.perf_counter()
        for tokens in self.steps:
            for step, token in zip(self.steppers, tokens, strict=True):
                step(token)
        return self._per_step(began)

    def empty(self) -> float:
        """An op that does nothing, once per step."""
        began = time.perf_counter()
        for column in self.columns:
            torch.ops.aten.alias(column)
        return self._per_step(began)

    def _per_step(self, began: float) -> float:
        return (time.perf_counter() - began) * 1e6 / len(self.steps)


def _check_quiet(arena: Tensor, rows: Sequence[Sequence[int]]) -> None:
    tokens = torch.tensor(rows, dtype=torch.int32)
    lengths = torch.full((len(rows),), tokens.shape[1], dtype=torch.int32)
    states = torch.full((len(rows),), automaton.start_state(arena), dtype=torch.int32)
    if bool((ops.scan_tokens(tokens, lengths, states, arena) >= 0).any()):
        raise ZerolayerError("the text has a trigger; take slots that it does not name")


def _decode_step(model: Any, rows: Sequence[Sequence[int]]) -> Callable[[], float]:
    """One token of every row after the same context, in µs; the cache is cropped to it again."""
    ids = torch.tensor([row[:CONTEXT] for row in rows])
    with torch.inference_mode():
        cache = model(input_ids=ids, use_cache=True, logits_to_keep=1).cache

    @torch.inference_mode()
    def step() -> float:
        began = time.perf_counter()
        model(input_ids=ids[:, -1:], cache=cache, use_cache=True, logits_to_keep=1)
        took = time.perf_counter() - began
        cache.crop(-1)
        return took * 1e6

    return step
