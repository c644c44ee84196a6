"""What the ops must give, in plain torch: in fp64 the oracle, in a low precision the yardstick."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass
class Anchors:
    """The six anchor arguments, in the order of the ops."""

    keys: Tensor | None = None
    values: Tensor | None = None
    thresholds: Tensor | None = None
    gains: Tensor | None = None
    row_set: Tensor | None = None
    set_offsets: Tensor | None = None

    def __iter__(self):
        return iter(getattr(self, field.name) for field in fields(self))

    def to(self, dtype: torch.dtype) -> Anchors:
        return Anchors(
            *(t.to(dtype) if t is not None and t.is_floating_point() else t for t in self)
        )


def xhat(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def gates(x: Tensor, anchors: Anchors, eps: float) -> tuple[Tensor, Tensor]:
    """relu(s) where it is added, and whether it is: [rows, K]."""
    rows = x.reshape(-1, x.shape[-1])
    s = xhat(rows, eps) @ anchors.keys.t() / x.shape[-1] ** 0.5 - anchors.thresholds.to(x.dtype)
    live = ~(s <= 0) & (anchors.gains != 0)
    if anchors.row_set is not None:
        anchor = torch.arange(len(anchors.keys))
        begin = torch.cat([anchors.set_offsets, torch.zeros(1, dtype=torch.int32)])
        own = anchors.row_set.reshape(-1, 1).long()
        live &= (own >= 0) & (anchor >= begin[own.clamp(min=0)]) & (anchor < begin[own + 1])
    return s, live


def anchor_delta(x: Tensor, base: Tensor, anchors: Anchors, eps: float) -> Tensor:
    """base + Σ gain · relu(s) · value; what is shut adds nothing, whatever it holds."""
    if anchors.keys is None:
        return base.clone()
    s, live = gates(x, anchors, eps)
    y = base.reshape(-1, x.shape[-1])
    for k in range(len(anchors.keys)):
        added = y + (anchors.gains[k].to(x.dtype) * s[:, k : k + 1]) * anchors.values[k]
        y = torch.where(live[:, k : k + 1], added, y)
    return y.reshape(x.shape)


def rms_norm(
    x: Tensor, weight: Tensor, anchors: Anchors, eps: float, unit_offset: bool = False
) -> Tensor:
    base = xhat(x, eps) * (weight + 1 if unit_offset else weight)
    return anchor_delta(x, base, anchors, eps)


def model_norm(x: Tensor, weight: Tensor, eps: float, unit_offset: bool = False) -> Tensor:
    """The norm as transformers computes it: LlamaRMSNorm, or Gemma3RMSNorm with unit_offset."""
    normed = xhat(x.float(), eps)
    if unit_offset:
        return (normed * (1.0 + weight.float())).to(x.dtype)
    return weight * normed.to(x.dtype)


def assert_close_as_torch(actual: Tensor, exact: Tensor, yardstick: Tensor) -> None:
    """Masks of inf and NaN agree; then the error is at most twice torch's own, plus one rounding.

    Args:
        actual: the kernel's result. exact: the fp64 oracle. yardstick: torch in actual's dtype.
    """
    assert actual.dtype == yardstick.dtype and actual.shape == exact.shape
    reference = exact.to(actual.dtype).double()
    got = actual.double()
    for name, mask in (("NaN", torch.isnan), ("inf", torch.isinf)):
        wrong = mask(got) != mask(reference)
        assert not wrong.any(), f"{name} masks differ at {wrong.nonzero()[0].tolist()}"
    finite = torch.isfinite(reference)
    if not finite.any():
        return
    error = (got - exact).abs()[finite]
    allowed = (yardstick.double() - exact).abs()[finite & torch.isfinite(yardstick.double())]
    torch_error = float(allowed.max()) if allowed.numel() else 0.0
    # In a small tensor torch may hit every value by luck: one rounding is always granted.
    rounding = torch.finfo(actual.dtype).eps / 2 * float(exact.abs()[finite].max())
    assert float(error.max()) <= 2 * torch_error + rounding, (
        f"error {float(error.max()):.3g}, torch's own is {torch_error:.3g}, "
        f"worst at flat index {int(error.argmax())} of the finite values"
    )


def decision_probe(hidden: Tensor, decisions: Tensor, probe: Tensor) -> Tensor:
    """Softmax of W [x; 1] for each (row, head); zeros where padded."""
    scores = hidden.new_zeros(len(decisions), 3)
    for n, (row, head) in enumerate(decisions.tolist()):
        if row >= 0:
            scores[n] = (probe[head, :, :-1] @ hidden[row] + probe[head, :, -1]).softmax(-1)
    return scores
