"""Log-probabilities of continuations, several of one prompt in a single pass.

A prompt and its continuations lie in one row; each continuation sees the prompt and itself only.
That halves the work against one row per continuation, and every figure of `contrast` uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Row:
    """Token ids of a prompt and of the continuations that are compared after it."""

    prompt: list[int]
    continuations: list[list[int]]

    def __len__(self) -> int:
        return len(self.prompt) + sum(map(len, self.continuations))


@dataclass(frozen=True)
class Batch:
    """Padded rows as tensors.

    ids, positions: int64 [B, T]; mask: bool [B, 1, T, T], True where attention is allowed;
    source, target: int64 [N], flat positions whose logits predict, and the tokens predicted;
    owner: int64 [N], the index (row * C + continuation) that each predicted token belongs to.
    """

    ids: Tensor
    positions: Tensor
    mask: Tensor
    source: Tensor
    target: Tensor
    owner: Tensor
    shape: tuple[int, int]


def encode(tokenizer: Any, prompt: str, continuations: Sequence[str]) -> Row:
    """Tokenize; each continuation begins with a space, so the cut is also the tokenizer's cut."""
    start = tokenizer(prompt).input_ids
    return Row(start, [tokenizer(c, add_special_tokens=False).input_ids for c in continuations])


def collate(rows: Sequence[Row], pad: int) -> Batch:
    """Pad rows to one length, to the right."""
    width = max(map(len, rows))
    count = max(len(r.continuations) for r in rows)
    ids = torch.full((len(rows), width), pad)
    positions = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.eye(width, dtype=torch.bool).repeat(len(rows), 1, 1)
    causal = torch.ones(width, width, dtype=torch.bool).tril()
    source: list[int] = []
    target: list[int] = []
    owner: list[int] = []
    for b, row in enumerate(rows):
        n = len(row.prompt)
        ids[b, :n] = torch.tensor(row.prompt)
        positions[b, :n] = torch.arange(n)
        mask[b, :n, :n] = causal[:n, :n]
        at = n
        for c, tokens in enumerate(row.continuations):
            end = at + len(tokens)
            ids[b, at:end] = torch.tensor(tokens)
            positions[b, at:end] = torch.arange(n, n + len(tokens))
            mask[b, at:end, :n] = True
            mask[b, at:end, at:end] = causal[: end - at, : end - at]
            source += [b * width + n - 1, *range(b * width + at, b * width + end - 1)]
            target += tokens
            owner += [b * count + c] * len(tokens)
            at = end
    return Batch(
        ids,
        positions,
        mask[:, None],
        torch.tensor(source),
        torch.tensor(target),
        torch.tensor(owner),
        (len(rows), count),
    )


def log_probs(model: Any, batch: Batch) -> Tensor:
    """Summed log-probability of each continuation, fp32 [B, C]; differentiable.

    The output head runs on the predicting positions alone: at a vocabulary of 49k it would
    otherwise cost as much as a quarter of the model.
    """
    hidden = model.get_decoder()(
        input_ids=batch.ids,
        position_ids=batch.positions,
        attention_mask=additive(batch.mask, model.dtype),
        use_cache=False,
    ).last_hidden_state
    rows = hidden.reshape(-1, hidden.shape[-1])[batch.source]
    logits = model.get_output_embeddings()(rows).float()
    chosen = logits.log_softmax(-1).gather(1, batch.target[:, None])[:, 0]
    total = torch.zeros(batch.shape[0] * batch.shape[1])
    return total.index_add(0, batch.owner, chosen).view(batch.shape)


def hidden_states(model: Any, ids: Tensor) -> Tensor:
    """Final hidden states of one text that predict a next token of it, [T - 1, d].

    Args:
        ids: int64 [1, T].
    """
    hidden: Tensor = model.get_decoder()(ids, use_cache=False).last_hidden_state[0, :-1]
    return hidden


def next_log_probs(model: Any, hidden: Tensor) -> Tensor:
    """Log-probabilities of the next token after each hidden state, fp32 [T - 1, V]."""
    logits: Tensor = model.get_output_embeddings()(hidden).float()
    return logits.log_softmax(-1)


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask as 0 / lowest finite value, which transformers passes on as it is."""
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


def score(
    model: Any,
    tokenizer: Any,
    items: Sequence[tuple[str, Sequence[str]]],
    tokens_per_batch: int = 2048,
    advance: Callable[[int], None] | None = None,
) -> Tensor:
    """Log-probabilities of the continuations of each (prompt, continuations), fp32 [N, C].

    Args:
        items: prompts, each with the same number C of continuations.
        tokens_per_batch: rows of similar length share a batch of about this many tokens.
        advance: called with the number of items done since the last call (a progress bar).
    """
    rows = [encode(tokenizer, prompt, continuations) for prompt, continuations in items]
    pad = tokenizer.pad_token_id or 0
    result = torch.zeros(len(rows), max((len(r.continuations) for r in rows), default=0))
    with torch.inference_mode():
        for index in batches([len(r) for r in rows], tokens_per_batch):
            result[index] = log_probs(model, collate([rows[i] for i in index], pad))
            if advance:
                advance(len(index))
    return result


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices grouped by length so that a padded batch holds about `tokens` tokens."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    group: list[int] = []
    for i in order:
        if group and lengths[i] * (len(group) + 1) > tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
