"""The every-token check against the decision machine, on the same contracts and the same model.

Each contract is fed as it stands to grid points of its length; at each, the model takes the next
tokens of the contract one at a time, plainly, under SFCL and under the decision machine in turn,
from the same cache. What is compared is the time of a step and what each way keeps in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table

from benchmarks.measure import Figure, figure
from zerolayer.attach import attach
from zerolayer.errors import ZerolayerError
from zerolayer.pack import Pack
from zerolayer.runtime.session import Runtime, Session
from zerolayer.sfcl import SemanticCheck

WAYS = ("plain", "SFCL", "decision machine")
CHUNK = 256  # tokens of a prompt that the model takes at once


@dataclass
class Point:
    """Step times at one length of context, in ms, over all contracts."""

    context: int
    steps: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    check: list[float] = field(default_factory=list)  # of SFCL, inside its steps
    decide: list[float] = field(default_factory=list)  # of the decision machine
    history: int = 0  # bytes that SFCL keeps for a sequence


@dataclass
class Counts:
    """What was looked at over whole contracts."""

    tokens: int = 0
    decisions: int = 0


def contracts(folder: Path) -> list[Path]:
    """The contracts of the data folder.

    Raises:
        ZerolayerError: there are none.
    """
    found = sorted((folder / "real" / "cuad" / "contracts").glob("*.txt"))
    if not found:
        raise ZerolayerError(f"{folder} has no contracts under real/cuad/contracts; give --data")
    return found


@torch.inference_mode()
def run(
    model: Any,
    tokenizer: Any,
    pack: Pack,
    texts: Sequence[str],
    contexts: Sequence[int],
    steps: int,
    advance: Callable[[int], None] = lambda n: None,
) -> tuple[list[Point], Counts]:
    """Measure all contracts.

    Args:
        contexts: lengths in tokens, ascending; a contract takes part as far as it is long enough.
        steps: tokens per contract, way and length.
    """
    runtime = Runtime(pack, model, tokenizer)
    points = [Point(c) for c in contexts]
    counts = Counts()
    with attach(model, pack):
        for number, text in enumerate(texts):
            ids = tokenizer(text).input_ids
            counts.tokens += len(ids)
            counts.decisions += _decisions(runtime.session([]), ids)
            _one(model, runtime, pack, ids, points, steps, number)
            advance(1)
    return points, counts


def _decisions(session: Session, ids: Sequence[int]) -> int:
    """Decision points of a text: triggers of the pack's slots."""
    found = 0
    for token in ids:
        event = session.stream.step(token)
        found += event >= 0 and any(session.phrases[t] >= 0 for t in session.sets[event])
    return found


def _one(
    model: Any,
    runtime: Runtime,
    pack: Pack,
    ids: list[int],
    points: Sequence[Point],
    steps: int,
    number: int,
) -> None:
    session = runtime.session([])
    with SemanticCheck(model, pack) as check:
        check.checking = False
        cache: Any = None
        at = 0
        for point in points:
            if point.context + steps >= len(ids):
                return
            while at < point.context:
                end = min(at + CHUNK, point.context)
                out = model(
                    input_ids=torch.tensor([ids[at:end]]),
                    cache=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
                cache = out.cache
                for token in ids[at:end]:
                    session.feed(token)
                at = end
            point.history = check.history_bytes
            _steps(model, cache, check, session, ids[at : at + steps], point, number)
            check.crop(at)


def _steps(
    model: Any,
    cache: Any,
    check: SemanticCheck,
    session: Session,
    tokens: Sequence[int],
    point: Point,
    number: int,
) -> None:
    """All ways on the same tokens; who comes first rotates."""
    for i, token in enumerate(tokens):
        row = torch.tensor([[token]])
        for turn in range(len(WAYS)):
            way = WAYS[(number + i + turn) % len(WAYS)]
            checked, decided = check.seconds, session.seconds
            check.active = check.checking = way == "SFCL"
            began = time.perf_counter()
            model(input_ids=row, cache=cache, use_cache=True, logits_to_keep=1)
            if way == "decision machine":
                session.feed(token)
            point.steps[way].append((time.perf_counter() - began) * 1e3)
            if way == "SFCL":
                point.check.append((check.seconds - checked) * 1e3)
            if way == "decision machine":
                point.decide.append((session.seconds - decided) * 1e3)
            cache.crop(-1)
        # The token stays, so that the contexts grow as in an answer.
        check.active, check.checking = False, False
        model(input_ids=row, cache=cache, use_cache=True, logits_to_keep=1)
    cache.crop(-len(tokens))
    check.active = True


def summary(points: Sequence[Point]) -> Table:
    """One row per length and way."""
    made = Table(title="every-token check and decision machine, per generated token")
    for name in ("context", "way", "step ms", "std", "p99 / p50", "check ms", "share %", "kept"):
        made.add_column(name, justify="left" if name == "way" else "right")
    for point in points:
        for way in WAYS:
            times = np.asarray(point.steps[way])
            if not len(times):
                continue
            extra = {"SFCL": point.check, "decision machine": point.decide}.get(way, [])
            # The mean: most tokens cost the decision machine nothing, a few do.
            mean = float(np.mean(extra)) if extra else 0.0
            kept = f"{point.history / 1e6:.1f} MB" if way == "SFCL" else "4 B" * bool(extra)
            made.add_row(
                f"{point.context:,}",
                way,
                f"{np.median(times):.1f}",
                f"{times.std():.1f}",
                f"{np.percentile(times, 99) / np.median(times):.2f}",
                f"{mean:.3f}" if extra else "",
                f"{100 * mean / times.mean():.2f}" if extra else "",
                kept,
            )
        made.add_section()
    return made


def exponent(points: Sequence[Point]) -> float:
    """How the check's time grows: its slope over the context, both logarithmic."""
    measured = [p for p in points if p.check]
    if len(measured) < 2:
        return float("nan")
    x = np.log([p.context for p in measured])
    return float(np.polyfit(x, np.log([np.median(p.check) for p in measured]), 1)[0])


def figures(points: Sequence[Point]) -> list[Figure]:
    """The samples as figures for the CSV."""
    return [
        figure("sfcl", f"context {point.context}", way, "ms/step", point.steps[way])
        for point in points
        for way in WAYS
        if point.steps[way]
    ]


def draw(points: Sequence[Point], path: Path) -> None:
    """Time of the check over the context, beside that of the decision machine."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(7, 4.5), layout="constrained")
    axes = canvas.subplots()
    measured = [p for p in points if p.check]
    x = [p.context for p in measured]
    axes.loglog(x, [np.mean(p.check) for p in measured], "o-", label="SFCL: every token")
    axes.loglog(x, [np.mean(p.decide) for p in measured], "s-", label="decision machine")
    axes.set_xlabel("tokens of context")
    axes.set_ylabel("ms per generated token, mean")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    canvas.savefig(path, dpi=120)
