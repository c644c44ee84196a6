"""The probe at run time: at a decision point, a verdict from the model's hidden state.

    with Probe.attach(model, pack) as probe:
        probe.want()                       # the next forward pass ends a sentence with a decision
        model(...)                         # whose input ends with the sentence's last token
        [reading] = probe.read([(row, head)])

Without `want()` a forward pass keeps nothing and costs an empty call per layer that has heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

import torch
from torch import Tensor, nn

from zerolayer import ops
from zerolayer.decisions.events import DecisionEvent
from zerolayer.errors import ZerolayerError
from zerolayer.values import Text

VERDICTS: Final = ("consistent", "contradiction", "unsure")


@dataclass(frozen=True)
class ProbeReading:
    """What a head says of one statement; scores are calibrated and in the order of VERDICTS."""

    rule: str
    verdict: str
    score: float
    scores: tuple[float, float, float]

    def event(self, text: str, start: int, end: int) -> DecisionEvent:
        """The decision event of the statement `text[start:end]`."""
        return DecisionEvent(
            rule=self.rule,
            slot="",
            start=start,
            end=end,
            stated=Text(text[start:end]),
            settled=None,
            verdict=self.verdict,
            action="observe",
            sources=(),
            reason=f"read by the rule's probe, score {self.score:.2f}",
        )


@dataclass
class Probe:
    """A pack's heads on a model. Leaving the `with` block, or `detach()`, takes the hooks out."""

    heads: Tensor  # fp32 [H, 3, d + 1]
    records: list[dict[str, Any]]  # of the heads, in their order
    triggered: list[int]  # for each trigger of the pack, its head, or −1
    _wanted: bool = False
    _hidden: dict[int, Tensor] = field(default_factory=dict)  # by layer, [rows, d]
    _hooks: list[Any] = field(default_factory=list)

    @classmethod
    def attach(cls, model: Any, pack: Any) -> Probe | None:
        """Hooks on the layers that the pack's heads read; None where it has no head."""
        if pack.probe is None:
            return None
        records = [r for r in pack.probes if not r["reason"]]
        layers = decoder_layers(model)
        place = {(r["rule"], r["line"]): i for i, r in enumerate(records)}
        triggered = [place.get((t.get("rule"), t.get("line")), -1) for t in pack.triggers]
        probe = cls(pack.probe, records, triggered)
        for layer in sorted({int(r["layer"]) for r in records}):
            probe._hooks.append(layers[layer].register_forward_hook(probe._keeper(layer)))
        return probe

    def _keeper(self, layer: int) -> Any:
        def keep(module: nn.Module, args: Any, output: Any) -> None:
            if self._wanted:
                hidden = output[0] if isinstance(output, tuple) else output
                self._hidden[layer] = hidden.detach().reshape(-1, hidden.shape[-1])

        return keep

    def want(self) -> None:
        """Keep the hidden states of the next forward pass, until they are read."""
        self._wanted = True
        self._hidden.clear()

    @torch.no_grad()
    def read(self, decisions: Sequence[tuple[int, int]]) -> list[ProbeReading]:
        """Verdicts of the heads for (row, head).

        Args:
            decisions: row counts the tokens of the pass, b * T + t; with one token a sequence it
                is the sequence's number.

        Raises:
            ZerolayerError: no forward pass since `want()`.
        """
        if not self._hidden:
            raise ZerolayerError(
                "the probe has seen no hidden state; call want() before the forward pass"
            )
        scores = torch.zeros(len(decisions), 3)
        for layer, hidden in self._hidden.items():
            own = [
                n for n, (_, h) in enumerate(decisions) if int(self.records[h]["layer"]) == layer
            ]
            if own:
                chosen = torch.tensor([decisions[n] for n in own], dtype=torch.int32)
                scores[own] = ops.decision_probe(hidden.cpu(), chosen, self.heads)
        self._wanted = False
        self._hidden.clear()
        return [self._reading(row, head) for row, (_, head) in zip(scores, decisions, strict=True)]

    def _reading(self, scores: Tensor, head: int) -> ProbeReading:
        # A hidden state that is not finite supports no verdict.
        best = int(scores.argmax()) if bool(scores.isfinite().all()) else 2
        a, b, c = (float(s) for s in scores.nan_to_num())
        return ProbeReading(
            str(self.records[head]["rule"]), VERDICTS[best], (a, b, c)[best], (a, b, c)
        )

    def detach(self) -> None:
        """Take the hooks out; a second call does nothing."""
        while self._hooks:
            self._hooks.pop().remove()

    def __enter__(self) -> Probe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()


def decoder_layers(model: Any) -> Sequence[nn.Module]:
    """The decoder's layers in order of depth."""
    layers = getattr(model.get_decoder(), "layers", None)
    if layers is None:
        raise ZerolayerError(
            f"{type(model).__name__} has no list of decoder layers, so probes cannot read it"
        )
    return list(layers)
