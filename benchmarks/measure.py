"""How things are measured: sizes of a run, interleaved repeats, percentiles, figures.

Machines are shared, so everything that is compared takes turns within each round, and a ratio is
the median of the rounds' ratios.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Size:
    """How much a run measures."""

    tokens: int  # of one stream
    streams: int  # side by side
    steps: int  # of each of them
    rounds: int
    literals: tuple[int, ...]  # patterns in the automata
    stop_strings: tuple[int, ...]  # patterns for the slowest builder
    batches: tuple[int, ...]  # rows of a decode step
    decisions: int


SIZES = {
    "tiny": Size(400, 4, 20, 2, (3,), (1,), (1, 2), 200),  # shows that all runs, measures nothing
    "quick": Size(10_000, 256, 64, 5, (50,), (1, 4), (1, 32), 20_000),
    "full": Size(50_000, 256, 128, 11, (50, 1_000, 10_000), (1, 4, 16, 64), (1, 32), 1_000_000),
}


@dataclass(frozen=True)
class Figure:
    """One row of a table: percentiles of what was measured, and its ratio to ours."""

    benchmark: str
    case: str  # what is compared: "50 literals, one stream"
    what: str  # who was measured
    unit: str
    p20: float
    p50: float
    p80: float
    count: int
    ratio: float | None = None  # ours / this, the median over rounds
    limit: float | None = None  # the figure must not be above it
    note: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        return None if self.limit is None else self.p50 <= self.limit


def percentiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """The 20th, 50th and 80th percentile."""
    low, middle, high = np.percentile(np.asarray(samples, dtype=np.float64), [20, 50, 80])
    return float(low), float(middle), float(high)


def figure(
    benchmark: str,
    case: str,
    what: str,
    unit: str,
    samples: Sequence[float],
    ours: Sequence[float] | None = None,
    limit: float | None = None,
    note: str = "",
) -> Figure:
    """A figure of samples; `ours` are the samples of the same rounds that they are compared to."""
    ratio = None
    if ours is not None and len(ours) == len(samples) and all(s > 0 for s in samples):
        ratio = float(np.median(np.asarray(ours) / np.asarray(samples)))
    low, middle, high = percentiles(samples)
    return Figure(benchmark, case, what, unit, low, middle, high, len(samples), ratio, limit, note)


def interleaved(
    cases: Mapping[str, Callable[[], float]], rounds: int, seed: int = 0
) -> dict[str, list[float]]:
    """Each case once per round, in a new order each time, after one round that does not count.

    Args:
        cases: each runs its own piece of work and returns what it measured.
    """
    rng = random.Random(seed)
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        order = list(cases)
        rng.shuffle(order)
        for name in order:
            value = cases[name]()
            if number > 0:
                samples[name].append(value)
    return samples


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
