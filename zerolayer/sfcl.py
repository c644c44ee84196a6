"""SFCL, the Semantic Fidelity Check Loop: the full check on every generated token.

The baseline that the decision machine is measured against, and a mode to debug anchors with. At
each generated token, in every norm with gated anchors, the current hidden state is compared with
every earlier one and with every anchor. Time and memory grow with the context.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from zerolayer import ops
from zerolayer.anchors import Normalizer, norm_modules, normalizer
from zerolayer.errors import ZerolayerError
from zerolayer.pack import Pack

FIRST_ROWS = 256  # of history; it doubles when it is full


@dataclass(frozen=True)
class SemanticEvent:
    """A margin below its threshold: the state at `position` is nearer to an anchor than to the text
    that it continues.

    margin = (largest cosine with an earlier state) − (largest cosine with an anchor's key).
    """

    position: int  # tokens before it in the sequence
    module: str
    margin: float
    nearest: int  # position of the nearest earlier state, −1 for none
    anchor: int


class SemanticCheck:
    """Checks every generated token of one sequence while it is in force (`with`).

    It works by hooks around whatever generates; the model's own results do not change. A call of
    the model with several tokens is a prompt and fills the history; a call with one token is a
    generated token and is checked.
    """

    def __init__(
        self,
        model: Any,
        pack: Pack,
        window: int = -1,
        threshold: float = 0.0,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        """
        Args:
            window: so many earlier states are compared; −1 for the whole context.
            threshold: a margin below it raises an event.
            dtype: of the history, fp32, bf16 or fp16.

        Raises:
            ZerolayerError: the pack has no gated anchors.
        """
        self.window, self.threshold = window, threshold
        norms = norm_modules(model)
        self.layers = [
            _Layer(path, norms[path], anchors.keys, dtype)
            for path, anchors in pack.anchors.items()
            if anchors.count and path in norms
        ]
        if not self.layers:
            raise ZerolayerError("the pack has no gated anchors in this model; SFCL has no check")
        self.events: list[SemanticEvent] = []
        self.calls = 0  # generated tokens that were checked, each in all layers
        self.seconds = 0.0
        self.active = True  # False: the hooks do nothing
        self.checking = True  # False: states are kept, and nothing is compared
        self._handles: list[Any] = []

    def __enter__(self) -> SemanticCheck:
        for layer in self.layers:
            self._handles.append(layer.norm.register_forward_hook(self._hook(layer)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    @property
    def history_bytes(self) -> int:
        """Bytes of the states that are kept, over all layers."""
        return sum(layer.length * layer.history[0, 0].nbytes for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """What was checked, what it cost, and the events."""
        return {
            "calls": self.calls,
            "layers": len(self.layers),
            "seconds": round(self.seconds, 6),
            "history_bytes": self.history_bytes,
            "events": [asdict(event) for event in self.events],
        }

    def crop(self, length: int) -> None:
        """Forget all but the first `length` tokens, as the KV cache does."""
        for layer in self.layers:
            layer.length = min(layer.length, length)

    def _hook(self, layer: _Layer) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def check(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            if not self.active:
                return
            began = time.perf_counter()
            states = args[0]
            if states.ndim != 3 or states.shape[0] != 1:
                raise ZerolayerError(
                    f"SFCL checks one sequence at a time, not a batch of {states.shape[0]}"
                )
            rows = layer.unit(states.detach()[0])
            if len(rows) == 1 and self.checking:
                self._check(layer, rows)
            layer.keep(rows)
            self.seconds += time.perf_counter() - began

        return check

    def _check(self, layer: _Layer, row: Tensor) -> None:
        lengths = torch.tensor([layer.length], dtype=torch.int32)
        found = ops.semantic_check(row, layer.history, lengths, layer.anchors, self.window)
        context, nearest, subject, anchor = found[0].tolist()
        self.calls += layer is self.layers[0]
        margin = context - subject
        if min(nearest, anchor) >= 0 and margin < self.threshold:
            self.events.append(
                SemanticEvent(layer.length, layer.path, margin, int(nearest), int(anchor))
            )


class _Layer:
    """A norm with anchors, and the unit rows of all states that have passed it."""

    def __init__(self, path: str, norm: nn.Module, keys: Tensor, dtype: torch.dtype) -> None:
        self.path, self.norm = path, norm
        self.normalize: Normalizer = normalizer(norm)
        self.anchors = nn.functional.normalize(keys.float(), dim=-1).to(dtype)
        self.history = torch.empty(1, FIRST_ROWS, keys.shape[1], dtype=dtype)
        self.length = 0

    def unit(self, states: Tensor) -> Tensor:
        """States [T, d] as unit rows, without their mean where the norm takes it away."""
        rows = nn.functional.normalize(self.normalize(states), dim=-1)
        return rows.to(self.history.dtype)

    def keep(self, rows: Tensor) -> None:
        """Append rows [T, d]."""
        end = self.length + len(rows)
        if end > self.history.shape[1]:
            size = max(end, 2 * self.history.shape[1])
            grown = torch.empty(1, size, self.history.shape[2], dtype=self.history.dtype)
            grown[:, : self.length] = self.history[:, : self.length]
            self.history = grown
        self.history[0, self.length : end] = rows
        self.length = end
