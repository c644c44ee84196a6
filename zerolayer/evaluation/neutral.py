"""neutral: what a pack does to text that no rule is about.

Perplexity of the plain and of the attached model on the same windows, with an interval over
documents, and the mean KL divergence; a pack that pays for its effect here shows it here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from zerolayer.attach import attach, gate_rate
from zerolayer.errors import ZerolayerError
from zerolayer.pack import Pack
from zerolayer.scoring import hidden_states, next_log_probs

WINDOW = 1024  # tokens
SUFFIXES = (".md", ".txt")
MAX_FILE_BYTES = 16 << 20


@dataclass(frozen=True)
class Window:
    """Token ids int64 [1, T] and the document that they come from."""

    document: str
    ids: Tensor


def windows(folder: Path, tokenizer: Any, per_document: int, length: int = WINDOW) -> list[Window]:
    """The first windows of each text file (.md, .txt) below a folder, in order of path.

    A document shorter than a window gives one short window; below 64 tokens it gives none.

    Raises:
        ZerolayerError: no text file, or one that is too large or not UTF-8.
    """
    if not folder.is_dir():
        raise ZerolayerError(f"no folder {folder}; --data names a folder with text files")
    found: list[Window] = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ZerolayerError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ZerolayerError(f"{path} is not UTF-8 (byte {error.start})") from error
        ids = torch.tensor(tokenizer(text).input_ids)
        for start in range(0, min(ids.numel(), per_document * length), length):
            piece = ids[start : start + length]
            if piece.numel() >= 64:
                found.append(Window(str(path.relative_to(folder)), piece[None]))
    if not found:
        raise ZerolayerError(f"{folder} holds no text of 64 tokens or more ({', '.join(SUFFIXES)})")
    return found


@torch.inference_mode()
def evaluate(
    model: Any, pack: Pack, chosen: Sequence[Window], advance: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Perplexity without and with the pack, their ratio with its 95 % interval, KL and gates.

    The interval resamples documents; losses are summed over tokens before the mean is taken.
    """
    # Hidden states are kept, not log-probabilities: those of one window take 200 MB.
    before = []
    for window in chosen:
        before.append(hidden_states(model, window.ids))
        if advance:
            advance(1)
    rows = []
    with attach(model, pack) as attachment:
        for window, hidden in zip(chosen, before, strict=True):
            attached = next_log_probs(model, hidden_states(model, window.ids))
            plain = next_log_probs(model, hidden)
            target = window.ids[0, 1:, None]
            rows.append(
                (
                    target.numel(),
                    float(-plain.gather(1, target).sum()),
                    float(-attached.gather(1, target).sum()),
                    float(F.kl_div(attached, plain, reduction="sum", log_target=True)),
                    gate_rate(model, attachment, window.ids) * target.numel(),
                )
            )
            if advance:
                advance(1)
    names = sorted({w.document for w in chosen})
    table = np.zeros((len(names), 5))
    for window, row in zip(chosen, rows, strict=True):
        table[names.index(window.document)] += row
    tokens, before, after, divergence, opened = table.sum(0)
    picks = np.random.default_rng(0).integers(0, len(names), (2000, len(names)))
    drawn = table[picks].sum(1)
    low, high = np.quantile(np.exp((drawn[:, 2] - drawn[:, 1]) / drawn[:, 0]) - 1, [0.025, 0.975])
    return {
        "documents": len(names),
        "tokens": int(tokens),
        "perplexity_plain": round(math.exp(before / tokens), 4),
        "perplexity_attached": round(math.exp(after / tokens), 4),
        "change": round(math.exp((after - before) / tokens) - 1, 5),
        "change_ci95": [round(float(low), 5), round(float(high), 5)],
        "kl": round(float(divergence / tokens), 5),
        "gate_rate": round(float(opened / tokens), 4),
    }
