"""`torch.ops.zerolayer.*`: loads the extension, adds fake kernels and autograd.

The norm ops take six anchor arguments, all None for a plain norm:
    keys, values: [K, d] in the dtype of x;
    thresholds, gains: [K] fp32 (fp64 where x is fp64);
    row_set: int32, one entry for each row of x: its anchor set, −1 for none; None: one set for all;
    set_offsets: int32 [sets + 1], set i owns anchors set_offsets[i] .. set_offsets[i + 1].
x is [..., d] in fp32, bf16, fp16 or fp64. A wrong argument raises RuntimeError with one sentence.

ska_rms_norm(x, weight, *anchors, eps, unit_offset=False)
    y = γ x̂ + Σ gain · relu(<x̂, key> / √d − τ) · value. Rows where no gate opens have the bits of
    transformers' LlamaRMSNorm (with unit_offset: of Gemma3RMSNorm): the sum of squares runs in the
    order of torch's CPU sum. That order is torch's own business and may change with its version; a
    test watches it.
ska_anchor_delta(x, base, *anchors, eps)
    base + the same gates, rounded once, where base is what the model's own norm gave for x. Rows
    where no gate opens keep the bits of base, whatever norm that was: an attached model uses this.
fused_add_ska_rms_norm(x, residual, weight, *anchors, eps, unit_offset=False)
    residual += x, then ska_rms_norm(residual). Inference only, it writes residual.
scan_tokens(tokens, lengths, states, automaton, overlay=None), apply_decisions(logits, states,
automaton, overlay=None)
    The decision machine's steps over token automata.
decision_probe(hidden, decisions, probe)
    Softmax of the heads' three logits (consistent, contradictory, unsure), fp32 [N, 3]; hidden
    [rows, d] in fp32, bf16 or fp16, decisions int32 [N, 2] (row, head; −1, −1 gives zeros), probe
    fp32 [heads, 3, d + 1] with the bias last.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zerolayer.errors import ZerolayerError


def _load() -> None:
    found = sorted(Path(__file__).parent.glob("_C*.so"))
    if not found:
        raise ZerolayerError(
            "the extension zerolayer._C is not built; run: pip install --no-build-isolation -e ."
        )
    try:
        torch.ops.load_library(str(found[0]))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ZerolayerError(
            f"the extension {found[0].name} does not load under torch {torch.__version__} "
            f"(2.11 or later is needed): {error}"
        ) from error


_load()
_ops = torch.ops.zerolayer
ska_rms_norm = _ops.ska_rms_norm
ska_anchor_delta = _ops.ska_anchor_delta
fused_add_ska_rms_norm = _ops.fused_add_ska_rms_norm
scan_tokens = _ops.scan_tokens
apply_decisions = _ops.apply_decisions
decision_probe = _ops.decision_probe


def _norm_fake(x: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.new_empty(x.shape)


def _delta_fake(x: Tensor, base: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.new_empty(x.shape)


def _fused_fake(x: Tensor, residual: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.new_empty(x.shape)


def _backward_fake(
    grad: Tensor, x: Tensor, weight: Tensor | None, keys: Tensor | None, *args: Any
) -> tuple[Tensor, ...]:
    width = x.shape[-1]
    count = 0 if keys is None else keys.shape[0]
    acc = torch.float64 if x.dtype == torch.float64 else torch.float32
    return (
        x.new_empty(x.shape),
        x.new_empty((0 if weight is None else width,), dtype=acc),
        x.new_empty((count, width), dtype=acc),
        x.new_empty((count, width), dtype=acc),
        x.new_empty((count,), dtype=acc),
        x.new_empty((count,), dtype=acc),
    )


def _scan_fake(
    tokens: Tensor,
    lengths: Tensor,
    states: Tensor,
    automaton: Tensor,
    overlay: Tensor | None = None,
) -> Tensor:
    return tokens.new_empty(tokens.shape, dtype=torch.int32)


def _apply_fake(
    logits: Tensor, states: Tensor, automaton: Tensor, overlay: Tensor | None = None
) -> None:
    return None


def _probe_fake(hidden: Tensor, decisions: Tensor, probe: Tensor) -> Tensor:
    return hidden.new_empty((decisions.shape[0], 3), dtype=torch.float32)


_FAKES: dict[str, Callable[..., Any]] = {
    "ska_rms_norm": _norm_fake,
    "ska_anchor_delta": _delta_fake,
    "fused_add_ska_rms_norm": _fused_fake,
    "ska_rms_norm_backward": _backward_fake,
    "scan_tokens": _scan_fake,
    "apply_decisions": _apply_fake,
    "decision_probe": _probe_fake,
}
for _name, _fake in _FAKES.items():
    torch.library.register_fake(f"zerolayer::{_name}", _fake)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, second, keys, values, thresholds, gains, row_set, set_offsets, eps, *rest = inputs
    # The gradients need the weight, but not the base of ska_anchor_delta.
    weight = second if rest else None
    ctx.save_for_backward(x, weight, keys, values, thresholds, gains, row_set, set_offsets)
    ctx.eps = eps
    ctx.unit_offset = bool(rest[0]) if rest else False


def _backward(ctx: Any, grad: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]:
    """Gradients of (x, weight) and of the six anchor arguments in their own dtypes."""
    x, weight, keys, *others = ctx.saved_tensors
    dx, dw, dk, dv, dt, dg = _ops.ska_rms_norm_backward(
        grad, x, weight, keys, *others, ctx.eps, ctx.unit_offset
    )
    if keys is None:
        return (dx, dw), (None,) * 6
    return (dx, dw), (dk.to(keys.dtype), dv.to(keys.dtype), dt, dg, None, None)


def _norm_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (dx, dw), anchors = _backward(ctx, grad)
    return (dx, dw.to(dx.dtype), *anchors, None, None)


def _delta_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (dx, _), anchors = _backward(ctx, grad)
    return (dx, grad, *anchors, None)


torch.library.register_autograd("zerolayer::ska_rms_norm", _norm_backward, setup_context=_setup)
torch.library.register_autograd(
    "zerolayer::ska_anchor_delta", _delta_backward, setup_context=_setup
)
