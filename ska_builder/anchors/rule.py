"""Rule anchors: what one rule leaves in the norms when it does not stand in the prompt.

Closed form (DESIGN: steps 2 to 5): the key is a shrinkage LDA direction between text on the rule's
subject and general text; the value is the mean difference that the rule in the prompt makes to the
norm's output on the same tokens; the threshold and the gain come from neutral text. Each choice is
recorded, and a rule whose key does not separate gets no anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import torch
import torch.nn.functional as F
import yaml
from torch import Tensor, nn

from ska_builder.anchors.heed import with_rule
from zerolayer.anchors import AnchorSet, Normalizer, gated_part, join, norm_modules, normalizer
from zerolayer.readings import Reading

MIN_F1 = 0.9  # of the key on held-out wording
OPEN_ROWS = 0.01  # of neutral rows that may open an anchor of a layer, over all rules
KL_BUDGET = 0.005  # nats per token on neutral text
GAINS = (4.0, 2.0, 1.0, 0.5, 0.25)
LAYERS = 3  # anchors per rule
SHRINK = 0.1  # of the covariance toward its mean diagonal


@dataclass
class Made:
    """What was made of one reading: anchors by module path, or why none."""

    rule: str
    line: int
    anchors: dict[str, AnchorSet] = field(default_factory=dict)
    reason: str = ""
    record: dict[str, Any] = field(default_factory=dict)


@dataclass
class Neutral:
    """General text, captured once per model: x̂ of every layer, and plain log-probabilities."""

    ids: Tensor  # int64 [B, T]
    xhat: list[Tensor]  # per layer [B * T, d]
    whitening: list[Tensor]  # per layer [d, d], (Σ + λI)⁻¹
    log_probs: Tensor  # [B, T, V]


def carriers(language: str) -> dict[str, list[str]]:
    """Carrier sentences by part (train, validate, test)."""
    text = resources.files("ska_builder.contrast").joinpath("carriers.yaml").read_text("utf-8")
    data: dict[str, dict[str, list[str]]] = yaml.safe_load(text)
    return data[language]


def subject(reading: Reading) -> str:
    """The words that the rule is about: slot, term, condition or act."""
    if reading.slot is not None:
        return reading.slot.name
    for key in ("term", "when", "act"):
        if key in reading.details:
            return str(reading.details[key])
    return ""


@torch.no_grad()
def capture(model: Any, ids: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """x̂ and outputs of every norm, [B, T, d] each and fp32, and the last hidden state."""
    xhat: list[Tensor] = []
    outputs: list[Tensor] = []
    handles = []
    for norm in norm_modules(model).values():
        own = normalizer(norm)

        def keep(
            module: nn.Module,
            args: tuple[Tensor],
            output: Tensor,
            normalize: Normalizer = own,
        ) -> None:
            xhat.append(normalize(args[0]))
            outputs.append(output.float())

        handles.append(norm.register_forward_hook(keep))
    try:
        last = model.get_decoder()(ids, use_cache=False).last_hidden_state
    finally:
        for handle in handles:
            handle.remove()
    return xhat, outputs, last


@torch.no_grad()
def neutral(model: Any, ids: Tensor) -> Neutral:
    """Capture general text; ids int64 [B, T]."""
    xhat, _, last = capture(model, ids)
    flat = [x.reshape(-1, x.shape[-1]) for x in xhat]
    whitening = []
    for rows in flat:
        centered = rows - rows.mean(0)
        sigma = centered.t() @ centered / len(rows)
        ridge = SHRINK * sigma.diagonal().mean()
        whitening.append(torch.linalg.inv(sigma + ridge * torch.eye(len(sigma))))
    head = model.get_output_embeddings()
    return Neutral(ids, flat, whitening, head(last).float().log_softmax(-1))


@torch.no_grad()
def make(
    model: Any, tokenizer: Any, reading: Reading, prose: str, plain: Neutral, index: int
) -> Made:
    """Anchors of one reading.

    Args:
        prose: the rule's text, as it would stand in a prompt.
        index: number of the rule in the pack.
    """
    made = Made(reading.rule, reading.line)
    name = subject(reading)
    if not name or reading.kind == "precedence":
        made.reason = "settled by arbitration; nothing for anchors to learn"
        return made
    rows = _rows(model, tokenizer, carriers(reading.language), name, prose)
    layers = list(norm_modules(model))
    found: list[tuple[float, int, AnchorSet]] = []
    for i in range(len(layers)):
        anchor, f1 = _fit(i, rows, plain, index)
        if f1 >= MIN_F1:
            found.append((f1 * float(anchor.values.norm()), i, anchor))
    if not found:
        made.reason = f"no key separates the subject from general text (F1 < {MIN_F1})"
        return made
    found.sort(key=lambda entry: -entry[0])
    chosen = {layers[i]: anchor for _, i, anchor in found[:LAYERS]}
    made.record = {"layers": list(chosen), "candidates": len(found), "curve": []}
    for gain in GAINS:
        kl = neutral_kl(model, chosen, plain, gain)
        made.record["curve"].append({"gain": gain, "kl": round(kl, 6)})
        if kl <= KL_BUDGET:
            for anchor in chosen.values():
                anchor.gains *= gain
            made.anchors = chosen
            made.record |= {"gain": gain, "kl": round(kl, 6)}
            return made
    made.reason = f"no gain keeps the neutral KL under {KL_BUDGET}"
    return made


Rows = dict[str, list[tuple[list[Tensor], list[Tensor]]]]


def _rows(model: Any, tokenizer: Any, parts: dict[str, list[str]], name: str, prose: str) -> Rows:
    """At the end of the subject in each carrier: x̂ without the rule, and what the rule changes.

    All carriers go through the model at once, padded to the right: a causal model's tokens do not
    see what comes after them.
    """
    listed = [(part, carrier) for part in parts for carrier in parts[part]]
    texts = [carrier.format(name=name) for _, carrier in listed]
    plain = [tokenizer(text).input_ids for text in texts]
    ruled = [tokenizer(with_rule(prose, text)).input_ids for text in texts]
    xhat, without, _ = capture(model, _padded(plain))
    _, under, _ = capture(model, _padded(ruled))
    rows: Rows = {part: [] for part in parts}
    for i, (part, carrier) in enumerate(listed):
        upto = carrier[: carrier.index("{name}")] + name
        at = len(tokenizer(upto).input_ids) - 1
        end, ruled_end = len(plain[i]), len(ruled[i])
        back = end - at  # counted from the end, where both texts are the same
        change = [
            (u[i, ruled_end - back : ruled_end] - w[i, at:end]).mean(0)
            for u, w in zip(under, without, strict=True)
        ]
        rows[part].append(([x[i, at] for x in xhat], change))
    return rows


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])


def _fit(
    i: int,
    rows: Rows,
    plain: Neutral,
    index: int,
) -> tuple[AnchorSet, float]:
    """Key, threshold and value of one layer, and the key's F1 on the validation wording."""
    train = torch.stack([r[0][i] for r in rows["train"]])
    direction = plain.whitening[i] @ (train.mean(0) - plain.xhat[i].mean(0))
    key = F.normalize(direction, dim=0) * 4.0
    root = len(key) ** 0.5
    background = plain.xhat[i] @ key / root
    inside = train @ key / root
    # Halfway between the subject and general text, but never where more than 1 % would open.
    tau = torch.maximum(
        background.quantile(1 - OPEN_ROWS / 2), (inside.min() + background.max()) / 2
    )
    held = torch.stack([r[0][i] for r in rows["validate"]]) @ key / root
    hits, false = float((held > tau).sum()), float((background > tau).sum())
    f1 = 2 * hits / max(1.0, len(held) + hits + false * len(held) / len(background))
    value = torch.stack([r[1][i] for r in rows["train"]]).mean(0)
    scale = (inside - tau).relu().mean().clamp_min(1e-3)
    anchor = AnchorSet(
        key[None],
        (value / scale)[None],
        tau[None],
        torch.ones(1),
        torch.tensor([index], dtype=torch.int32),
    )
    return anchor, f1


@torch.no_grad()
def neutral_kl(
    model: Any, anchors: dict[str, AnchorSet], plain: Neutral, gain: float = 1.0
) -> float:
    """KL(plain ‖ with anchors) per token on the neutral text, nats."""
    norms = norm_modules(model)
    handles = [
        norms[path].register_forward_hook(_add(anchor, gain, normalizer(norms[path])))
        for path, anchor in anchors.items()
    ]
    try:
        last = model.get_decoder()(plain.ids, use_cache=False).last_hidden_state
    finally:
        for handle in handles:
            handle.remove()
    attached = model.get_output_embeddings()(last).float().log_softmax(-1)
    width = attached.shape[-1]
    return float(
        F.kl_div(
            attached.view(-1, width),
            plain.log_probs.view(-1, width),
            reduction="batchmean",
            log_target=True,
        )
    )


def _add(
    anchor: AnchorSet, gain: float, normalize: Normalizer
) -> Callable[[nn.Module, tuple[Tensor], Tensor], Tensor]:
    def hook(module: nn.Module, args: tuple[Tensor], output: Tensor) -> Tensor:
        delta = gated_part(
            normalize(args[0]),
            anchor.keys.float(),
            anchor.values.float(),
            anchor.thresholds,
            anchor.gains * gain,
        )
        return output + delta.to(output.dtype)

    return hook


def fuse(parts: Sequence[Made]) -> dict[str, AnchorSet]:
    """Anchors of all rules by module path."""
    fused: dict[str, AnchorSet] = {}
    for made in parts:
        for path, anchor in made.anchors.items():
            joined = join(fused.get(path), anchor)
            assert joined is not None
            fused[path] = joined
    return fused
