"""Intervals and comparisons for evaluation items, which are not independent within a template."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerolayer.errors import ZerolayerError


def read_items(folder: Path, name: str, limit_bytes: int = 64 << 20) -> list[dict[str, Any]]:
    """The items of one set.

    Raises:
        ZerolayerError: no such file, too large, not UTF-8, or a line that is no JSON object.
    """
    path = folder / f"{name}.jsonl"
    if not path.is_file():
        raise ZerolayerError(f"no {path}; --data names the folder with {name}.jsonl")
    if path.stat().st_size > limit_bytes:
        raise ZerolayerError(f"{path} is larger than {limit_bytes >> 20} MiB")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ZerolayerError(f"{path} is not UTF-8 (byte {error.start})") from error
    items = []
    for number, line in enumerate(lines, 1):
        try:
            item = json.loads(line)
        except ValueError as error:
            raise ZerolayerError(f"{path}:{number} is no JSON object: {error}") from error
        if not isinstance(item, dict):
            raise ZerolayerError(f"{path}:{number} is no JSON object but {type(item).__name__}")
        items.append(item)
    return items


def cluster_interval(
    scores: Sequence[float], clusters: Sequence[str], draws: int = 2000, seed: int = 0
) -> list[float]:
    """95 % interval of the mean by resampling whole clusters (templates), [low, high]."""
    values = np.asarray(scores, dtype=np.float64)
    names, index = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(index, weights=values, minlength=len(names))
    counts = np.bincount(index, minlength=len(names))
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(names), (draws, len(names)))
    means = sums[picks].sum(1) / counts[picks].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return [round(float(low), 4), round(float(high), 4)]


def mcnemar(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Paired comparison of two systems: items fixed, items broken, exact two-sided p."""
    from math import comb

    fixed = sum(1 for a, b in zip(first, second, strict=True) if b > a)
    broken = sum(1 for a, b in zip(first, second, strict=True) if b < a)
    n = fixed + broken
    tail = sum(comb(n, k) for k in range(min(fixed, broken) + 1)) / 2**n if n else 1.0
    return {"fixed": fixed, "broken": broken, "p": min(1.0, 2 * tail)}
