"""What watching costs where nothing is decided: the engine's work per token with sessions and
without, beside the model's decode step at the same batch, taking turns in one run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.measure import Figure, Size, figure, interleaved
from benchmarks.text import reference_text
from zerolayer import _host, automaton, ops
from zerolayer.engines.hf import generate_batch
from zerolayer.errors import ZerolayerError
from zerolayer.readings import Slot
from zerolayer.runtime.session import Session, make_plans

LIMITS = {1: 1.0, 32: 0.2}  # per cent of a decode step, by batch
WATCHING = "watching"  # the engine with sessions less the engine without
MODEL = "model's decode step"
WITH, WITHOUT = "engine without a model, sessions", "engine without a model, no sessions"
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
            MODEL: step,
            WITH: partial(watched.engine, True),
            WITHOUT: partial(watched.engine, False),
            "part: session.feed of every row": watched.feeds,
            "part: scan_tokens": watched.scan,
            "part: Watcher.step of every row": watched.watchers,
            "ceiling: empty op call": watched.empty,
        }
        figures += _figures(batch, interleaved(cases, size.rounds))
    return figures


def _figures(batch: int, samples: dict[str, list[float]]) -> list[Figure]:
    """Microseconds per step of all rows, and each as a share of the model's step."""
    case = f"batch {batch}"
    model = samples[MODEL]
    ours = [a - b for a, b in zip(samples[WITH], samples[WITHOUT], strict=True)]
    samples = {WATCHING: ours, **samples}
    figures = [
        figure("watch", case, name, "µs/step", s, None if s is ours else ours)
        for name, s in samples.items()
    ]
    shares = {
        name: [100 * a / b for a, b in zip(s, model, strict=True)]
        for name, s in samples.items()
        if name not in (MODEL, WITH, WITHOUT)
    }
    return figures + [
        figure(
            "watch",
            f"{case}, share of the step",
            name,
            "%",
            share,
            limit=LIMITS.get(batch) if name == WATCHING else None,
        )
        for name, share in shares.items()
    ]


class _Stub:
    """What `generate_batch` asks of a model: logits whose largest is the next token of each row."""

    def __init__(self, steps: Sequence[Sequence[int]], width: int) -> None:
        self.steps = iter(steps)
        self.logits = torch.zeros(len(steps[0]), 1, width)
        self.said: Tensor | None = None
        self.device = torch.device("cpu")
        self.cache = SimpleNamespace(activate_past_recording=lambda: None)
        self.config = SimpleNamespace(
            get_text_config=lambda: SimpleNamespace(max_position_embeddings=1 << 20)
        )
        self.generation_config = SimpleNamespace(eos_token_id=-1)

    def __call__(self, **inputs: Any) -> Any:
        if self.said is not None:
            self.logits[:, 0].scatter_(1, self.said, 0.0)
        self.said = torch.tensor(next(self.steps)).unsqueeze(1)
        self.logits[:, 0].scatter_(1, self.said, 1.0)
        return SimpleNamespace(logits=self.logits, cache=self.cache)


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

    def _sessions(self) -> list[Session]:
        plans = make_plans([], SLOTS, [])
        return [
            Session(self.arena, range(len(SLOTS)), plans, self.vocabulary, self.tokenizer)
            for _ in range(self.rows)
        ]

    def engine(self, sessions: bool) -> float:
        """The engine over a stub that says these tokens and takes no time to think."""
        made = self._sessions() if sessions else None
        stub = _Stub(self.steps, len(self.vocabulary.token_bytes))
        prompts = ["The"] * self.rows
        began = time.perf_counter()
        generate_batch(stub, self.tokenizer, prompts, made, max_new_tokens=len(self.steps))
        return self._per_step(began)

    def feeds(self) -> float:
        """The sessions alone: the mean over an answer, as whole sentences are read in it."""
        made = self._sessions()
        began = time.perf_counter()
        for tokens in self.steps:
            for session, token in zip(made, tokens, strict=True):
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
