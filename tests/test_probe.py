"""The probe: its op against the oracle, its training on toy cases, its place in pack and model."""

from __future__ import annotations

from typing import Any

import oracle
import pytest
import torch
from torch import Tensor

from zerolayer import ops

# ---- the op


def made(rows: int, width: int, heads: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(rows + width)
    hidden = torch.randn(rows, width, generator=g, dtype=torch.float64)
    probe = torch.randn(heads, 3, width + 1, generator=g) / width**0.5
    decisions = torch.stack(
        [
            torch.randint(0, rows, (count,), generator=g),
            torch.randint(0, heads, (count,), generator=g),
        ],
        1,
    ).int()
    decisions[1::3] = -1
    return hidden, decisions, probe


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [1, 7, 500, 576])
@pytest.mark.parametrize("count", [0, 1, 19])
def test_scores_are_those_of_the_oracle(count: int, width: int, dtype: torch.dtype) -> None:
    hidden, decisions, probe = made(5, width, 4, count)
    low = hidden.to(dtype)
    got = ops.decision_probe(low, decisions, probe)
    exact = oracle.decision_probe(low.double(), decisions, probe.double())
    assert got.dtype == torch.float32 and got.shape == (count, 3)
    torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-6)
    assert not got[1::3].any()


def test_strided_rows_and_decisions() -> None:
    hidden, decisions, probe = made(6, 7, 2, 9)
    wide = torch.cat([hidden, hidden + 1], 1).float()
    double = torch.cat([decisions, decisions], 1)
    got = ops.decision_probe(wide[::2, :7], double[:, :2].clamp(max=1), probe)
    want = ops.decision_probe(
        wide[::2, :7].contiguous(), decisions.clamp(max=1).contiguous(), probe
    )
    assert torch.equal(got, want)
    torch.testing.assert_close(
        ops.decision_probe(wide[:, :7].t().contiguous().t(), decisions, probe),
        ops.decision_probe(hidden.float(), decisions, probe),
    )


def test_far_logits_do_not_overflow_and_nan_is_kept() -> None:
    probe = torch.tensor([[[1e4, 0.0], [-1e4, 0.0], [0.0, 0.0]]])
    decisions = torch.tensor([[0, 0], [1, 0]], dtype=torch.int32)
    scores = ops.decision_probe(torch.tensor([[50.0], [float("nan")]]), decisions, probe)
    assert scores[0].tolist() == [1.0, 0.0, 0.0]
    assert scores[1].isnan().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, d, p: (h[0], d, p), "hidden must be"),
        (lambda h, d, p: (h.double(), d, p), "hidden must be float32"),
        (lambda h, d, p: (h, d.long(), p), "decisions must be int32"),
        (lambda h, d, p: (h, d + 10, p), "names row"),
        (lambda h, d, p: (h, d, p[:, :, :-1]), "probe must be float32"),
        (lambda h, d, p: (h, d, p.double()), "probe must be float32"),
    ],
)
def test_wrong_arguments_are_named(change: Any, message: str) -> None:
    hidden, decisions, probe = made(3, 7, 2, 2)
    with pytest.raises(RuntimeError, match=message):
        ops.decision_probe(*change(hidden.float(), decisions, probe))


def test_opcheck() -> None:
    hidden, decisions, probe = made(5, 7, 2, 4)
    torch.library.opcheck(torch.ops.zerolayer.decision_probe, (hidden.float(), decisions, probe))
