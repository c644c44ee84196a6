"""What a run leaves behind: a table on the terminal, and rows in a CSV file that only grows."""

from __future__ import annotations

import csv
import importlib.metadata
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.table import Table

from benchmarks.measure import Figure

PACKAGES = ("torch", "transformers", "xgrammar", "llguidance", "ahocorasick-rs")
COLUMNS = (
    "commit",
    "device",
    "versions",
    "benchmark",
    "case",
    "what",
    "unit",
    "p20",
    "p50",
    "p80",
    "count",
    "ours_per_this",
    "limit",
    "note",
)


def table(figures: Sequence[Figure], title: str, caption: str = "") -> Table:
    """One row per figure; a line between cases."""
    made = Table(title=title, caption=caption or None, caption_justify="left")
    for name in ("case", "what", "p20", "p50", "p80", "unit", "ours / this", "limit", "note"):
        made.add_column(
            name, justify="left" if name in ("case", "what", "unit", "note") else "right"
        )
    for before, one in zip([None, *figures], figures, strict=False):
        if before is not None and before.case != one.case:
            made.add_section()
        made.add_row(
            one.case,
            one.what,
            *(f"{v:,.4g}" if v < 1e4 else f"{v:,.0f}" for v in (one.p20, one.p50, one.p80)),
            one.unit,
            "" if one.ratio is None else f"{one.ratio:.3g}",
            _limit(one),
            one.note,
        )
    return made


def _limit(one: Figure) -> str:
    if one.limit is None:
        return ""
    return f"≤ {one.limit:g} {'kept' if one.reached else 'exceeded'}"


def append_csv(figures: Sequence[Figure], path: Path) -> None:
    """Add the figures to a CSV file; it gets its titles when it is made."""
    fresh = not path.exists()
    run = (_commit(), device(), versions())
    with path.open("a", newline="") as file:
        rows = csv.writer(file)
        if fresh:
            rows.writerow(COLUMNS)
        for f in figures:
            rows.writerow(
                [
                    *run,
                    f.benchmark,
                    f.case,
                    f.what,
                    f.unit,
                    *(f"{v:.6g}" for v in (f.p20, f.p50, f.p80)),
                    f.count,
                    "" if f.ratio is None else f"{f.ratio:.4g}",
                    "" if f.limit is None else f.limit,
                    f.note,
                ]
            )


def device() -> str:
    """The processor and how many threads torch uses."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else name
    return f"{name}, {torch.get_num_threads()} thread(s)"


def versions() -> str:
    """Python's and the packages' versions, those that are installed."""
    found = [f"python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "; ".join(found)


def _commit() -> str:
    """The commit that was measured, with a + where files were changed since."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()
