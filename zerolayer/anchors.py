"""Anchors in normalization layers: what they are, where they sit, and their plain formula.

For a row x of width d with x̂ = x / rms(x):

    y = base + Σ_k gain_k · relu(<x̂, key_k> / sqrt(d) − τ_k) · value_k

where `base` is what the model's own norm gives (with γ + Δγ where the set has a static part).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from zerolayer.errors import ZerolayerError

MAX_ANCHORS = 64  # per layer and set
# q/k norms edit the attention's geometry, not the stream; they are left alone.
LEFT_ALONE = re.compile(r"(^|\.)(q|k|q_a|kv_a)_(layer)?norm$")


@dataclass
class AnchorSet:
    """The anchors of one normalization layer.

    keys, values: [K, d] in the model's dtype or fp32; thresholds, gains: fp32 [K];
    rule: int32 [K], which rule each anchor serves, −1 for heed anchors;
    delta_weight: [d] or None, the static part Δγ.
    """

    keys: Tensor
    values: Tensor
    thresholds: Tensor
    gains: Tensor
    rule: Tensor
    delta_weight: Tensor | None = None

    @property
    def count(self) -> int:
        """Number K of gated anchors."""
        return int(self.keys.shape[0])

    @property
    def width(self) -> int:
        """Width d of the layer."""
        return int(self.keys.shape[1])

    def scaled(self, factor: float) -> AnchorSet:
        """The same gates with what they add, and the static part, multiplied."""
        delta = self.delta_weight
        return replace(
            self,
            values=self.values * factor,
            delta_weight=None if delta is None else delta * factor,
        )

    def without_gates(self) -> AnchorSet:
        """The static part alone."""
        none = slice(0, 0)
        return AnchorSet(
            self.keys[none],
            self.values[none],
            self.thresholds[none],
            self.gains[none],
            self.rule[none],
            self.delta_weight,
        )

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> AnchorSet:
        """The same anchors with keys and values in the dtype that the op takes."""
        # The ops take thresholds and gains in fp32, and in fp64 where all is fp64.
        fine = torch.float64 if dtype == torch.float64 else torch.float32
        return AnchorSet(
            self.keys.to(device, dtype),
            self.values.to(device, dtype),
            self.thresholds.to(device, fine),
            self.gains.to(device, fine),
            self.rule.to(device),
            None if self.delta_weight is None else self.delta_weight.to(device),
        )


def join(first: AnchorSet | None, second: AnchorSet | None) -> AnchorSet | None:
    """Anchors of both sets; static parts add up."""
    if first is None or second is None:
        return first or second
    deltas = [s.delta_weight for s in (first, second) if s.delta_weight is not None]
    joined = AnchorSet(
        keys=torch.cat([first.keys, second.keys]),
        values=torch.cat([first.values, second.values]),
        thresholds=torch.cat([first.thresholds, second.thresholds]),
        gains=torch.cat([first.gains, second.gains]),
        rule=torch.cat([first.rule, second.rule]),
        delta_weight=sum(deltas[1:], deltas[0]) if deltas else None,
    )
    if joined.count > MAX_ANCHORS:
        raise ZerolayerError(
            f"{joined.count} anchors in one layer, at most {MAX_ANCHORS} are possible; "
            "build the pack with fewer rules or fewer anchors per rule"
        )
    return joined


def norm_modules(model: Any) -> dict[str, nn.Module]:
    """The normalization layers that may carry anchors, by module path, in order of depth.

    Found by structure: modules whose class name ends in Norm, with one weight vector, inside the
    decoder's layers. The final norm and q/k norms are left alone.

    Raises:
        ZerolayerError: no such layer; the sentence lists the norm-like modules that were seen.
    """
    found = dict(_norms(model))
    if not found:
        seen = sorted({type(m).__name__ for _, m in model.named_modules() if "norm" in _kind(m)})
        raise ZerolayerError(
            f"no normalization layer of {type(model).__name__} can carry anchors; "
            f"norm-like modules seen: {', '.join(seen) or 'none'}"
        )
    return found


def _norms(model: Any) -> Iterator[tuple[str, nn.Module]]:
    for path, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if (
            _kind(module).endswith(("rmsnorm", "layernorm"))
            and re.search(r"\.\d+\.", path)
            and not LEFT_ALONE.search(path)
            and isinstance(weight, Tensor)
            and weight.ndim == 1
        ):
            yield path, module


def _kind(module: nn.Module) -> str:
    return type(module).__name__.lower()


@dataclass(frozen=True)
class Normalizer:
    """How a norm makes x̂ of x: RMSNorm divides by the root mean square, LayerNorm takes the mean
    away first."""

    eps: float
    centred: bool

    def rows(self, x: Tensor) -> Tensor:
        """What `ska_anchor_delta` takes for x: its x̂ of a row without a mean is LayerNorm's."""
        return x - x.mean(-1, keepdim=True) if self.centred else x

    def __call__(self, x: Tensor) -> Tensor:
        """x̂ in fp32, [..., d]."""
        x = self.rows(x.float())
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


@torch.no_grad()
def normalizer(norm: nn.Module) -> Normalizer:
    """The normalizer of a norm module, whatever the architecture calls it.

    Whether it takes the mean away is seen from what it does, as names mislead (T5's LayerNorm is an
    RMSNorm).

    Raises:
        ZerolayerError: it has no epsilon under a known name.
    """
    named = (getattr(norm, name, None) for name in ("variance_epsilon", "eps", "epsilon"))
    eps = next((value for value in named if isinstance(value, float)), None)
    if eps is None:
        raise ZerolayerError(f"norm {type(norm).__name__} has no epsilon that zerolayer knows")
    weight = norm.weight
    assert isinstance(weight, Tensor)
    x = torch.linspace(-2, 2, weight.shape[0]).to(weight)
    # forward, not a call: hooks on the norm are none of its own doing
    plain, moved = norm.forward(x[None]).float(), norm.forward(x[None] + 3).float()
    return Normalizer(eps, bool((moved - plain).norm() < 0.3 * plain.norm()))


def gated_part(xhat: Tensor, keys: Tensor, values: Tensor, tau: Tensor, gains: Tensor) -> Tensor:
    """Σ_k gain_k · relu(s_k) · value_k in plain torch, for fitting; [..., d]."""
    scores: Tensor = xhat @ keys.t() / float(keys.shape[1] ** 0.5) - tau
    return (scores.relu() * gains) @ values
