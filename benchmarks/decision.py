"""What one decision costs: snapshot, switch to the overlay, bias on the logits, compare.

Each repeat is timed by the thread's CPU clock and by the wall clock beside it. Between repeats the
session is put back, outside the timed part.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Figure, Size, figure, interleaved, seconds
from benchmarks.watch import SLOTS
from zerolayer import _host, automaton, ops
from zerolayer.decisions.judge import judge
from zerolayer.decisions.ledger import Source
from zerolayer.decisions.statements import read_statements
from zerolayer.errors import ZerolayerError
from zerolayer.readings import Slot
from zerolayer.runtime.session import Plan, Session, make_plans

SOURCE = Source("S", "contract", None, None, "The notice period is five years.")
SENTENCE = "The notice period is five years."
TRIGGER, FOLLOWS = "The notice period", " is"
CHUNK = 1_000  # repeats of one way before it is the other's turn
PARTS = 2_000  # repeats of a part
# µs of thread CPU time
LIMITS = {"p50": 20.0, "p99": 200.0, "worst": 1_000.0}
VALUES = {
    "duration": "The notice period is five (5) years.",
    "money": "The rent is USD 1,250,000.",
    "date": "The effective date is 15 June 2027.",
    "percent": "The interest rate is 7.5%.",
}

Samples = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class Result:
    """Figures, and the sorted samples that a plot needs: µs of thread CPU time by name."""

    figures: list[Figure]
    samples: dict[str, Samples]


def run(tokenizer: Any, width: int, size: Size) -> Result:
    """All figures of a decision.

    Args:
        width: of the logits.

    Raises:
        ZerolayerError: the example does not come to a decision with this tokenizer.
    """
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, width)
    rig = _Rig(vocabulary, tokenizer, width)
    ways = {"session": rig.by_session, "host steps": rig.by_watchers}
    with _quiet_heap():
        samples = _repeat(ways, rig.put_back, size.decisions)
        parts = _parts(rig, size)
    figures: list[Figure] = []
    for name, (cpu, wall) in samples.items():
        figures += _tail(name, "thread CPU", cpu, LIMITS)
        figures += _tail(name, "wall clock", wall, {})
    figures += parts + _overlays(vocabulary, size)
    return Result(figures, {name: np.sort(cpu) for name, (cpu, _) in samples.items()})


class _Rig:
    """A session one token before a decision, and the same decision by hand over host steps."""

    def __init__(self, vocabulary: automaton.Vocabulary, tokenizer: Any, width: int) -> None:
        arena = automaton.compile_triggers([[s.name] for s in SLOTS], vocabulary)
        # Repair, the second time: then a decision takes a snapshot and lays an overlay.
        plans = make_plans([], SLOTS, [SOURCE], action="repair")
        self.session = Session(arena, range(len(SLOTS)), plans, vocabulary, tokenizer)
        self.plan: Plan = plans[0]
        self.session.repaired.add(self.plan.slot.name)
        for token in tokenizer(TRIGGER, add_special_tokens=False).input_ids:
            self.session.feed(token)
        # The token that has the first byte behind the trigger: the event comes with it.
        self.token = int(tokenizer(FOLLOWS, add_special_tokens=False).input_ids[0])
        self.logits = torch.zeros(1, width)
        self.before = self.session.stream.state.clone()
        self.length = len(self.session.tokens)

        self.arena = arena
        self.state = self.before.clone()
        self.watcher = _host.Watcher(arena.numpy(), self.state.numpy())
        self.sets = automaton.event_sets(arena)
        self.by_session()
        if self.plan.overlay is None or self.session.overlay is None:
            raise ZerolayerError(f"{TRIGGER + FOLLOWS!r} comes to no decision with this tokenizer")
        self.overlay_state = torch.zeros(1, dtype=torch.int32)
        self.overlay = _host.Watcher(self.plan.overlay.numpy(), self.overlay_state.numpy())
        self.overlay_start = self.overlay.state
        self.put_back()

    def put_back(self) -> None:
        """As it was one token before the decision."""
        s = self.session
        del s.tokens[self.length :]
        s.stream.place = int(self.before)
        s.overlay, s.ending, s.doubtful = None, None, False
        s.marks.clear()
        self.watcher.state = int(self.before)

    def compare(self) -> None:
        """The value that was stated, against the one that is settled and the rules' bounds."""
        value = self.plan.settlement.value
        assert value is not None
        judge(value, self.plan.settlement, self.plan.readings, SENTENCE)

    def feed(self) -> None:
        """The step itself, the snapshot, and the overlay in force."""
        self.session.feed(self.token)

    def by_session(self) -> None:
        """What an engine calls."""
        self.feed()
        self.session.adjust(self.logits)
        self.compare()

    def switch(self) -> tuple[int, int]:
        """Step, snapshot and overlay through the host's steps, without an op call."""
        event = self.watcher.step(self.token)
        mark = (self.length, self.watcher.state)
        if self.sets[event]:
            self.overlay.state = self.overlay_start
            self.overlay.step(self.token)
        return mark

    def bias(self) -> None:
        """The overlay's bias in the state after the trigger and its " is"."""
        ops.apply_decisions(self.logits, self.overlay_state, self.arena, self.plan.overlay)

    def by_watchers(self) -> None:
        """The same decision, each part by the cheapest means that the project has."""
        self.switch()
        self.bias()
        self.compare()


@contextmanager
def _quiet_heap() -> Iterator[None]:
    """What was made before is left alone by the garbage collector, as in a server that froze it
    after loading; it stays on for what the decisions themselves make."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _repeat(
    ways: dict[str, Callable[[], None]], put_back: Callable[[], None], repeats: int
) -> dict[str, tuple[Samples, Samples]]:
    """µs of thread CPU time and of wall clock for each way, in chunks that take turns."""
    made = {name: (np.empty(repeats), np.empty(repeats)) for name in ways}
    for begin in range(0, repeats, CHUNK):
        for name, work in ways.items():
            cpu, wall = made[name]
            for i in range(begin, min(begin + CHUNK, repeats)):
                put_back()
                wall_0 = time.perf_counter_ns()
                cpu_0 = time.thread_time_ns()
                work()
                cpu_1 = time.thread_time_ns()
                wall_1 = time.perf_counter_ns()
                cpu[i], wall[i] = (cpu_1 - cpu_0) / 1e3, (wall_1 - wall_0) / 1e3
    return made


def _tail(name: str, clock: str, samples: Samples, limits: dict[str, float]) -> list[Figure]:
    """p50, p99 and worst, each a figure of its own; the first has the percentiles around it."""
    case = f"a decision, {clock}"
    p99, worst = float(np.percentile(samples, 99)), float(samples.max())
    first = figure("decision", case, f"{name}: p50", "µs", list(samples), limit=limits.get("p50"))
    return [
        first,
        *(
            replace(
                first,
                what=f"{name}: {which}",
                p20=value,
                p50=value,
                p80=value,
                limit=limits.get(which),
            )
            for which, value in (("p99", p99), ("worst", worst))
        ),
    ]


def _parts(rig: _Rig, size: Size) -> list[Figure]:
    """Medians of the parts, by wall clock, with the ceilings: an op call, a read of the logits."""
    place = torch.empty_like(rig.logits)
    parts: dict[str, Callable[[], object]] = {
        "session: step, snapshot, overlay": rig.feed,
        "host steps: step, snapshot, overlay": rig.switch,
        "bias": rig.bias,
        "compare": rig.compare,
        "ceiling: empty op call": lambda: torch.ops.aten.alias(rig.logits),
        "ceiling: copy of the logits": lambda: place.copy_(rig.logits),
        "not counted: reading the sentence": lambda: read_statements(SENTENCE, SLOTS),
    }
    repeats = max(10, min(PARTS, size.decisions) // size.rounds)

    def timed(work: Callable[[], object]) -> float:
        taken = []
        for _ in range(repeats):
            rig.put_back()
            taken.append(seconds(work))
        return float(np.median(taken)) * 1e6

    samples = interleaved({name: partial(timed, w) for name, w in parts.items()}, size.rounds)
    return [figure("decision", "parts", name, "µs", s) for name, s in samples.items()]


def _overlays(vocabulary: automaton.Vocabulary, size: Size) -> list[Figure]:
    """Time and bytes of the overlay of one settled value: once per request, before its answer."""
    figures = []
    for kind, sentence in VALUES.items():
        slot = sentence.removeprefix("The ").split(" is ")[0]
        source = replace(SOURCE, text=sentence)
        plan = make_plans([], [Slot(slot, kind)], [source], action="enforce")[0]
        took, sizes = [], []
        for _ in range(size.rounds):
            began = time.perf_counter()
            overlay = automaton.compile_overlay(plan.texts, vocabulary)
            took.append((time.perf_counter() - began) * 1e3)
            sizes.append(float(overlay.numel()))
        note = f"{len(plan.texts)} renderings"
        case = "overlay of a settled value"
        figures.append(figure("decision", case, f"{kind}: compile", "ms", took, note=note))
        figures.append(figure("decision", case, f"{kind}: size", "bytes", sizes, note=note))
    return figures
