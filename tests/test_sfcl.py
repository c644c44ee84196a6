"""The every-token check: its op against plain torch, and its hooks on a tiny model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.test_attach import pack_for
from zerolayer import ops
from zerolayer.anchors import norm_modules, normalizer
from zerolayer.attach import attach
from zerolayer.errors import ZerolayerError
from zerolayer.sfcl import FIRST_ROWS, SemanticCheck

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def oracle(
    hidden: Tensor, history: Tensor, lengths: Tensor, anchors: Tensor, window: int
) -> Tensor:
    """fp64, one row after the other."""
    out = []
    for h, rows, n in zip(hidden.double(), history.double(), lengths.tolist(), strict=True):
        first = max(0, n - window) if window >= 0 else 0
        found = []
        for begin, group in ((first, rows[first:n]), (0, anchors.double())):
            scores = group @ h
            scores = torch.where(scores.isnan(), -torch.inf, scores)
            best = int(scores.argmax()) if len(scores) and scores.max() > -torch.inf else -1
            found += [float(scores[best]) if best >= 0 else 0.0, best + begin if best >= 0 else -1]
        out.append(found)
    return torch.tensor(out, dtype=torch.float64)


def unit(*shape: int, seed: int = 0) -> Tensor:
    rows = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=-1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 7, 16, 111, 576])
@pytest.mark.parametrize("window", [-1, 0, 3, 300])
def test_op_equals_the_formula(dtype: torch.dtype, width: int, window: int) -> None:
    hidden, history = unit(3, width).to(dtype), unit(3, 700, width, seed=1).to(dtype)
    history[1, 5:] = torch.nan  # beyond its length
    history[2, 2] = torch.nan
    lengths = torch.tensor([700, 5, 513], dtype=torch.int32)
    for anchors in (unit(4, width, seed=2).to(dtype), torch.empty(0, width, dtype=dtype)):
        got = ops.semantic_check(hidden, history, lengths, anchors, window)
        want = oracle(hidden, history, lengths, anchors, window)
        torch.testing.assert_close(got[:, ::2].double(), want[:, ::2], atol=2e-6, rtol=1e-5)
        # NaN times anything is NaN: only named rows are looked at.
        scores = torch.einsum("btd,bd->bt", history.double(), hidden.double())
        for b, t in enumerate(got[:, 1].long().tolist()):
            # Where two are equally near, either may be named.
            assert (t == -1) == (want[b, 1] == -1)
            assert t == -1 or abs(float(scores[b, t]) - float(want[b, 0])) < 1e-5


def test_op_with_nothing_to_compare() -> None:
    none = torch.empty(0, 8)
    got = ops.semantic_check(unit(1, 8), unit(1, 4, 8), torch.zeros(1, dtype=torch.int32), none)
    assert got.tolist() == [[0, -1, 0, -1]]
    empty = torch.empty(0, dtype=torch.int32)
    assert ops.semantic_check(torch.empty(0, 8), torch.empty(0, 4, 8), empty, none).shape == (0, 4)


def test_op_passes_opcheck_and_says_what_is_wrong() -> None:
    lengths = torch.tensor([2, 4], dtype=torch.int32)
    given = (unit(2, 8), unit(2, 4, 8), lengths, unit(3, 8), -1)
    torch.library.opcheck(torch.ops.zerolayer.semantic_check.default, given)
    for place, wrong, said in [
        (0, unit(2, 9), "history must be"),
        (1, unit(2, 4, 8).double(), "one dtype"),
        (2, torch.tensor([2, 5], dtype=torch.int32), "lengths holds 5"),
        (3, unit(3, 9), "anchors must be"),
        (4, -2, "window must be"),
    ]:
        arguments = [*given[:place], wrong, *given[place + 1 :]]
        with pytest.raises(RuntimeError, match=said):
            ops.semantic_check(*arguments)


def test_check_follows_the_definition(llama: Any) -> None:
    """Margins of every token and layer against plain torch; the model's logits do not change."""
    pack = pack_for(llama)
    ids = torch.randint(1, 512, (1, 12))
    with torch.inference_mode(), attach(llama, pack):
        plain = llama.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
        with SemanticCheck(llama, pack, threshold=2.0, dtype=torch.float32) as check:
            checked = llama.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
        assert torch.equal(plain, checked)
        norms, seen = norm_modules(llama), {}
        handles = [
            norm.register_forward_hook(lambda m, a, o, path=path: seen.update({path: a[0][0]}))
            for path, norm in norms.items()
        ]
        llama(checked[:, :-1])
        for handle in handles:
            handle.remove()
    generated = checked.shape[1] - 12 - 1  # the last token has not been fed
    assert check.calls * len(norms) == generated * len(norms) == len(check.events)
    assert check.history_bytes == (12 + generated) * 48 * 4 * len(norms)
    for event in check.events:
        x = seen[event.module]
        rows = torch.nn.functional.normalize(normalizer(norms[event.module])(x), dim=-1)
        keys = torch.nn.functional.normalize(pack.anchors[event.module].keys, dim=-1)
        near = (rows[: event.position] @ rows[event.position]).max()
        margin = float(near - (keys @ rows[event.position]).max())
        assert abs(margin - event.margin) < 1e-4


def test_history_grows_and_is_cropped(llama: Any) -> None:
    pack = pack_for(llama)
    llama.config.max_position_embeddings = 2 * FIRST_ROWS
    ids = torch.randint(1, 512, (1, FIRST_ROWS - 2))
    with torch.inference_mode(), SemanticCheck(llama, pack, window=4) as check:
        llama(ids)
        for _ in range(5):
            llama(ids[:, :1])
        assert {layer.length for layer in check.layers} == {FIRST_ROWS + 3}
        check.crop(7)
        assert {layer.length for layer in check.layers} == {7}


def test_wrong_use_is_said(llama: Any) -> None:
    pack = pack_for(llama)
    with (
        pytest.raises(ZerolayerError, match="batch of 2"),
        SemanticCheck(llama, pack),
    ):
        llama(torch.ones(2, 3, dtype=torch.long))
    assert not any(m._forward_hooks for m in llama.modules())
    pack.anchors.clear()
    with pytest.raises(ZerolayerError, match="no gated anchors"):
        SemanticCheck(llama, pack)
