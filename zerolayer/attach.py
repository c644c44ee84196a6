"""Put a pack's anchors into a model, and take them out again bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from zerolayer import ops
from zerolayer.anchors import AnchorSet, Normalizer, norm_modules, normalizer
from zerolayer.errors import ZerolayerError
from zerolayer.models import fingerprint
from zerolayer.pack import Pack


@dataclass
class Attachment:
    """A pack in a model. Leaving the `with` block, or `detach()`, restores the model."""

    model: Any
    pack: Pack
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def detach(self) -> None:
        """Restore the model bit for bit; a second call does nothing."""
        while self._undo:
            self._undo.pop()()
        if getattr(self.model, "_zerolayer", None) is self:
            del self.model._zerolayer

    def __enter__(self) -> Attachment:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()


def attach(model: Any, pack: Pack) -> Attachment:
    """Attach a pack's anchors to a model; permanent until `detach()`, or use it in a `with`.

    Gated anchors run after the model's own norm, so rows where no gate opens keep the model's
    bits. The static part replaces the norm's weight by γ + Δγ.

    Raises:
        ZerolayerError: the pack was built for another model, or the model carries a pack already
            (two packs that add up in silence are a known fault of steering libraries).
    """
    if getattr(model, "_zerolayer", None) is not None:
        raise ZerolayerError("this model carries a pack already; detach() it first")
    check_model(model, pack)
    norms = norm_modules(model)
    attachment = Attachment(model, pack)
    try:
        for path, anchors in pack.anchors.items():
            if path not in norms:
                raise ZerolayerError(
                    f"pack has anchors for {path}, which is no norm of {type(model).__name__}; "
                    "build the pack again for this model"
                )
            _attach_one(attachment, norms[path], anchors)
    except BaseException:
        attachment.detach()
        raise
    model._zerolayer = attachment
    return attachment


def check_model(model: Any, pack: Pack) -> None:
    """Raise one sentence that says how the model differs from the one the pack was built for."""
    actual = fingerprint(model)
    built = pack.model
    for what, name in (
        ("hidden size", "hidden_size"),
        ("number of layers", "layers"),
        ("vocabulary", "vocabulary"),
        ("architecture", "architecture"),
        ("weights' hash", "weights"),
    ):
        if getattr(actual, name) != getattr(built, name):
            raise ZerolayerError(
                f"pack was built for {what} {getattr(built, name)} ({built.architecture}); "
                f"this model has {getattr(actual, name)}; build the pack again for this model"
            )


def static_part(pack: Pack) -> Pack:
    """The pack with its static anchors alone: what folds into a checkpoint."""
    return replace(
        pack,
        anchors={
            path: anchors.without_gates()
            for path, anchors in pack.anchors.items()
            if anchors.delta_weight is not None and bool(anchors.delta_weight.any())
        },
    )


def _attach_one(attachment: Attachment, norm: nn.Module, anchors: AnchorSet) -> None:
    weight = norm.weight
    assert isinstance(weight, Tensor)
    delta = anchors.delta_weight
    if delta is not None and bool(delta.any()):
        original = weight.data
        weight.data = (original.double() + delta.to(original.device).double()).to(original.dtype)

        def restore(weight: Tensor = weight, original: Tensor = original) -> None:
            weight.data = original

        attachment._undo.append(restore)
    if anchors.count:
        placed = anchors.to(weight.dtype, weight.device)
        handle = norm.register_forward_hook(_hook(placed, normalizer(norm)))
        attachment._undo.append(handle.remove)


def _hook(
    anchors: AnchorSet, normalize: Normalizer
) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    keys, values = anchors.keys, anchors.values
    thresholds, gains = anchors.thresholds, anchors.gains

    def add(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        x = args[0]
        if x.device != keys.device:
            raise ZerolayerError(
                f"anchors are on {keys.device}, the hidden states on {x.device}; "
                "attach the pack after the model has been moved"
            )
        result: Tensor = ops.ska_anchor_delta(
            normalize.rows(x), output, keys, values, thresholds, gains, None, None, normalize.eps
        )
        return result

    return add


@torch.no_grad()
def gate_rate(model: Any, attachment: Attachment, ids: Tensor) -> float:
    """Share of rows on which any gate opens, the mean over layers with anchors.

    Args:
        ids: int64 [B, T] token ids without padding.
    """
    open_rows: list[float] = []
    handles = []
    norms = norm_modules(model)
    for path, anchors in attachment.pack.anchors.items():
        norm = norms[path]
        own = normalizer(norm)

        def count(
            module: nn.Module,
            args: tuple[Tensor, ...],
            output: Tensor,
            anchors: AnchorSet = anchors,
            normalize: Normalizer = own,
        ) -> None:
            xhat = normalize(args[0])
            scores = xhat @ anchors.keys.float().t() / anchors.width**0.5 - anchors.thresholds
            live = (scores > 0) & (anchors.gains != 0)
            open_rows.append(float(live.any(-1).float().mean()))

        handles.append(norm.register_forward_hook(count))
    try:
        model.get_decoder()(ids, use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    return sum(open_rows) / max(1, len(open_rows))
