"""Modules over the ops, for models that are built with anchors from the start."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zerolayer import ops
from zerolayer.errors import ZerolayerError

MAX_ANCHORS = 64  # per layer and set


class SkaRMSNorm(nn.Module):
    """RMSNorm with Static Knowledge Anchors.

    Parameters: `weight` [d] and, where `anchors` > 0, `ska_keys` and `ska_values` [K, d] in the
    module's dtype, `ska_thresholds` and `ska_gains` [K]. Gains start at 0, so a new module is the
    plain norm bit for bit. Keys start small and random, so that the anchors differ.

    Args:
        width: d, the size of the last dimension of x.
        anchors: K, 0 to 64.
        eps: added to the mean of squares.
        unit_offset: the weight is stored as γ − 1 (Gemma) and starts at 0.

    Raises:
        ZerolayerError: a width below 1, or anchors outside 0 to 64.
    """

    ska_keys: nn.Parameter | None
    ska_values: nn.Parameter | None
    ska_thresholds: nn.Parameter | None
    ska_gains: nn.Parameter | None

    def __init__(
        self,
        width: int,
        anchors: int = 0,
        eps: float = 1e-6,
        unit_offset: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if width < 1:
            raise ZerolayerError(f"width must be at least 1, it is {width}")
        if not 0 <= anchors <= MAX_ANCHORS:
            raise ZerolayerError(f"anchors must be 0 to {MAX_ANCHORS}, it is {anchors}")
        self.width, self.eps, self.unit_offset = width, eps, unit_offset
        start = torch.zeros if unit_offset else torch.ones
        self.weight = nn.Parameter(start(width, device=device, dtype=dtype))
        if anchors == 0:
            for name in ("ska_keys", "ska_values", "ska_thresholds", "ska_gains"):
                self.register_parameter(name, None)
            return
        keys = torch.randn(anchors, width, device=device, dtype=dtype) * width**-0.5
        self.ska_keys = nn.Parameter(keys)
        self.ska_values = nn.Parameter(torch.zeros_like(keys))
        self.ska_thresholds = nn.Parameter(torch.zeros(anchors, device=device))
        self.ska_gains = nn.Parameter(torch.zeros(anchors, device=device))

    def forward(
        self, x: Tensor, row_set: Tensor | None = None, set_offsets: Tensor | None = None
    ) -> Tensor:
        """The norm of x [..., d].

        Args:
            row_set: int32, one entry for each row of x: its anchor set, −1 for none.
            set_offsets: int32 [sets + 1]; given together with row_set.
        """
        y: Tensor = ops.ska_rms_norm(
            x,
            self.weight,
            self.ska_keys,
            self.ska_values,
            self._scalars(self.ska_thresholds),
            self._scalars(self.ska_gains),
            row_set,
            set_offsets,
            self.eps,
            self.unit_offset,
        )
        return y

    def _scalars(self, parameter: nn.Parameter | None) -> Tensor | None:
        # module.to(bfloat16) casts every parameter; the op keeps thresholds and gains in fp32.
        if parameter is None:
            return None
        return parameter.to(torch.float64 if self.weight.dtype == torch.float64 else torch.float32)

    def extra_repr(self) -> str:
        count = 0 if self.ska_keys is None else self.ska_keys.shape[0]
        return f"{self.width}, anchors={count}, eps={self.eps}, unit_offset={self.unit_offset}"
