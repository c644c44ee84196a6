"""What an attached pack must not change, seen on the default model with its shipped anchors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from ska_builder.packs import shipped_heed
from zerolayer.attach import attach
from zerolayer.models import load_model
from zerolayer.pack import Pack

PROMPTS = (
    "Rule: The amendment prevails over the contract.\nThe payment period is",
    "Either party may end the lease at the end of a month. The tenant has to give notice in",
)


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    return load_model("smollm2")


@pytest.fixture(scope="module")
def heed(loaded: tuple[Any, Any]) -> Pack:
    pack = shipped_heed("smollm2", loaded[0])
    assert pack is not None  # made for just these weights
    return pack


def test_zero_gains_and_detaching_keep_every_bit(loaded: tuple[Any, Any], heed: Pack) -> None:
    """Gains of 0 on the gated anchors; a static part is a changed weight and has no gain."""
    model, tokenizer = loaded
    ids = tokenizer(PROMPTS[0], return_tensors="pt").input_ids
    silent = replace(
        heed,
        anchors={
            path: replace(a, gains=torch.zeros_like(a.gains), delta_weight=None)
            for path, a in heed.anchors.items()
        },
    )
    with torch.inference_mode():
        plain = model(ids).logits
        with attach(model, silent):
            assert torch.equal(model(ids).logits, plain)
        with attach(model, heed):
            assert not torch.equal(model(ids).logits, plain)
        assert torch.equal(model(ids).logits, plain)


def test_cache_and_left_padding_give_the_same_tokens(loaded: tuple[Any, Any], heed: Pack) -> None:
    model, tokenizer = loaded
    ids = [tokenizer(p).input_ids for p in PROMPTS]
    longest = max(map(len, ids))
    padded = torch.tensor([[0] * (longest - len(i)) + i for i in ids])
    mask = torch.tensor([[0] * (longest - len(i)) + [1] * len(i) for i in ids])
    kwargs = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    with attach(model, heed):
        alone = [model.generate(torch.tensor([i]), **kwargs)[0, len(i) :] for i in ids]
        bare = [
            model.generate(torch.tensor([i]), use_cache=False, **kwargs)[0, len(i) :] for i in ids
        ]
        batch = model.generate(padded, attention_mask=mask, **kwargs)[:, longest:]
    for i in range(len(ids)):
        assert torch.equal(alone[i], bare[i])
        assert torch.equal(alone[i], batch[i, : len(alone[i])])
