"""The report's three plots: who takes how long per token, the share of a step, the tail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from benchmarks.decision import LIMITS, Samples
from benchmarks.measure import Figure

matplotlib.use("Agg")
from matplotlib import pyplot as plt

OURS, OTHERS, CEILING = "#1f6f8b", "#b0b0b0", "#e0c068"


def draw(figures: Sequence[Figure], samples: dict[str, Samples], folder: Path) -> list[Path]:
    """Draw what the figures allow into `folder`; the paths of the PNG files."""
    made = []
    scan = [f for f in figures if f.benchmark == "scan" and f.unit == "ns/token"]
    if scan:
        made.append(_bars(scan, "nanoseconds per token", "Finding triggers", folder / "scan.png"))
    build = [f for f in figures if f.benchmark == "scan" and f.unit == "s"]
    if build:
        made.append(_bars(build, "seconds", "Building from patterns", folder / "build.png"))
    watch = [f for f in figures if f.benchmark == "watch" and f.unit == "%"]
    if watch:
        title = "Watching, no decision"
        made.append(_bars(watch, "per cent of a decode step", title, folder / "watch.png"))
    if samples:
        made.append(_tail(samples, folder / "decision.png"))
    return made


def _bars(figures: Sequence[Figure], axis: str, title: str, path: Path) -> Path:
    """A panel per case, a bar per figure with its p20 and p80, a line at its limit."""
    cases = list(dict.fromkeys(f.case for f in figures))
    heights = [sum(f.case == case for f in figures) for case in cases]
    fig, panels = plt.subplots(
        len(cases),
        1,
        figsize=(9, 0.34 * sum(heights) + 0.62 * len(cases) + 0.6),
        sharex=True,
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
        layout="constrained",
    )
    for panel, case in zip(panels[:, 0], cases, strict=True):
        rows = [f for f in figures if f.case == case][::-1]
        middle = np.array([f.p50 for f in rows])
        spread = np.abs([[f.p50 - f.p20 for f in rows], [f.p80 - f.p50 for f in rows]])
        panel.barh(
            [f.what for f in rows],
            middle,
            xerr=spread,
            color=[_colour(f) for f in rows],
            ecolor="#555",
        )
        for place, f in enumerate(rows):
            label = f"{f.p50:,.0f}" if f.p50 >= 100 else f"{f.p50:.3g}"
            panel.text(f.p80 * 1.08, place, label, va="center", fontsize=8)
            if f.limit is not None:
                panel.plot([f.limit] * 2, [place - 0.45, place + 0.45], color="#b03030", lw=2)
        panel.set_xscale("log")
        panel.set_title(case, fontsize=9, loc="left")
        panel.tick_params(labelsize=8)
        panel.margins(x=0.12)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1, 0].set_xlabel(axis, fontsize=9)
    fig.suptitle(title, fontsize=11)
    fig.savefig(path, dpi=130)
    plt.close(fig)
    return path


def _colour(figure: Figure) -> str:
    if figure.what.startswith("ceiling"):
        return CEILING
    ours = figure.what.startswith(("zerolayer", "watching", "part"))
    return OURS if ours else OTHERS


def _tail(samples: dict[str, Samples], path: Path) -> Path:
    """How many decisions take longer than x, both on logarithmic axes, with the limits."""
    fig, panel = plt.subplots(figsize=(8, 4.5), layout="constrained")
    count = max(len(s) for s in samples.values())
    for name, values in samples.items():
        share = 1 - np.arange(len(values)) / len(values)
        panel.step(values, share, where="post", label=name)
    places = {"p50": 0.5, "p99": 0.01, "worst": 1 / count}
    for which, limit in LIMITS.items():
        panel.plot(limit, places[which], "v", color="#b03030")
        label = f"{which} ≤ {limit:g} µs"
        panel.annotate(
            label, (limit, places[which]), xytext=(6, 4), textcoords="offset points", fontsize=8
        )
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="µs of thread CPU time",
        ylabel="share of decisions that take longer",
        title=f"A decision, {count:,} repeats: a curve left of a mark keeps its limit",
    )
    panel.legend()
    panel.grid(alpha=0.3)
    fig.savefig(path, dpi=130)
    plt.close(fig)
    return path
