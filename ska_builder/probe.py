"""Probes: small heads that read from a hidden state whether a statement keeps a rule.

For each reading: statements from its parsed meaning, hidden states at their ends, in every layer a
shrinkage LDA in closed form, the layer with the best validation F1, one temperature and one
threshold from the validation part. The test part and the rule's own examples are opened once; a
probe that reads them badly is not made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from wordfreq import zipf_frequency

from ska_builder.contrast.statements import PARTS, statements
from zerolayer.decisions.probe import decoder_layers
from zerolayer.readings import Reading
from zerolayer.scoring import additive, collate, encode

MIN_F1 = 0.9
SHRINK = 0.5  # of the covariance within the sides toward its diagonal
TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
COMMON = 5.3  # zipf frequency of words that begin no decision
CHUNK = 16  # statements in one row of the model


@dataclass
class MadeProbe:
    """A head [3, d + 1] in fp32 with its record, or the reason why there is none."""

    record: dict[str, Any] = field(default_factory=dict)
    head: Tensor | None = None


@dataclass(frozen=True)
class Fitted:
    """A head as it was fitted, whether it is good enough or not.

    head: fp32 [3, d + 1]; threshold: on the calibrated log odds, below it the head is unsure.
    """

    layer: int
    head: Tensor
    threshold: float
    figures: dict[str, Any]


@torch.no_grad()
def make(
    model: Any, tokenizer: Any, reading: Reading, good: Sequence[str], bad: Sequence[str]
) -> MadeProbe:
    """The probe of one reading.

    Args:
        good, bad: the rule's own examples; never learned from, only read for the check.
    """
    made = MadeProbe({"rule": reading.rule, "line": reading.line, "reason": ""})
    if not good or not bad:
        # Made-up wording alone says almost nothing about real cases (docs/probes.md).
        made.record["reason"] = "it needs an example that keeps it and one that breaks it"
        return made
    phrases = key_phrases(reading)
    fitted = fit_head(model, tokenizer, reading)
    if isinstance(fitted, str) or not phrases:
        made.record["reason"] = fitted if isinstance(fitted, str) else "no word of it is a trigger"
        return made
    made.record |= {"layer": fitted.layer, "phrases": phrases, **fitted.figures}
    reached = fitted.figures["test_f1"]
    if reached < MIN_F1:
        made.record["reason"] = f"F1 on held-out wording is {reached}, below {MIN_F1}"
        return made
    own = [("", e) for e in (*good, *bad)]
    if own:
        states = end_states(model, tokenizer, own)[fitted.layer].double()
        odds = 2 * (states @ fitted.head[0, :-1].double() + fitted.head[0, -1])
        side = torch.tensor([1.0] * len(good) + [-1.0] * len(bad))
        wrong = odds * side < -fitted.threshold
        made.record["own_examples"] = {"n": len(own), "wrong": int(wrong.sum())}
        if wrong.any():
            example = own[int(wrong.nonzero()[0])][1]
            made.record["reason"] = f"it reads the rule's own example wrongly: {example!r}"
            return made
    made.head = fitted.head
    return made


@torch.no_grad()
def fit_head(model: Any, tokenizer: Any, reading: Reading) -> Fitted | str:
    """Fit on the training statements, choose layer and calibration on validation, and open the
    test statements once; or, in one sentence, why nothing can be fitted."""
    pairs = statements(reading)
    if isinstance(pairs, str):
        return pairs
    states = {
        p: end_states(model, tokenizer, [(s.opening, s.text) for s in pairs[p]]) for p in PARTS
    }
    keeps = {p: torch.tensor([s.keeps for s in pairs[p]]) for p in PARTS}
    fits = [fit(x, keeps["train"]) for x in states["train"]]
    tuned = [scores(w, x) for w, x in zip(fits, states["validate"], strict=True)]
    curve = [f1(said, keeps["validate"]) for said in tuned]
    # Several layers often separate the few validation statements; the widest gap decides then.
    layer = max(range(len(fits)), key=lambda i: (curve[i], gap(tuned[i], keeps["validate"])))
    temperature, threshold = calibrate(tuned[layer], keeps["validate"])
    said = scores(fits[layer], states["test"][layer]) / temperature
    figures = {
        "temperature": temperature,
        "threshold": threshold,
        "validation_f1": round(curve[layer], 4),
        "test_f1": round(f1(said, keeps["test"]), 4),
        "test_n": len(said),
        "test_sure": round(float((said.abs() > threshold).double().mean()), 4),
    }
    return Fitted(layer, head(fits[layer], temperature, threshold), threshold, figures)


def key_phrases(reading: Reading) -> list[str]:
    """Phrases that begin a decision: the term, or runs of rarer words of the act or condition."""
    if reading.kind == "definition":
        return [str(reading.details["term"]), *map(str, reading.details.get("also", ()))]
    text = str(reading.details.get("act" if reading.kind == "prohibition" else "when", ""))
    if reading.language == "zh":
        runs = re.split(r"[的了和与或在对向将把被就时，、]|提及|承诺|说明|作出|进行", text)
        return list(dict.fromkeys(r for r in runs if 2 <= len(r) <= 12))[:4]
    runs, run = [], []
    for word in [*re.findall(r"[A-Za-z][A-Za-z'-]*", text), ""]:
        if word and zipf_frequency(word, "en") < COMMON:
            run.append(word)
        elif run:
            runs.append(" ".join(run))
            run = []
    return list(dict.fromkeys(runs))[:4]


def end_states(model: Any, tokenizer: Any, texts: Sequence[tuple[str, str]]) -> list[Tensor]:
    """Hidden states after each decoder layer at the last token of each (opening, text), [N, d]."""
    layers = decoder_layers(model)
    kept: list[list[Tensor]] = [[] for _ in layers]
    by_opening: dict[str, list[int]] = {}
    for n, (opening, _) in enumerate(texts):
        by_opening.setdefault(opening, []).append(n)
    order: list[int] = []
    for opening, index in by_opening.items():
        for at in range(0, len(index), CHUNK):
            part = index[at : at + CHUNK]
            start = opening or tokenizer.eos_token or " "
            batch = collate([encode(tokenizer, start, [texts[n][1] for n in part])], 0)
            lengths = batch.owner.bincount(minlength=len(part))
            ends = batch.ids.shape[1] - lengths.sum() + lengths.cumsum(0) - 1
            order += part
            handles = [
                layer.register_forward_hook(_keeper(kept[i], ends))
                for i, layer in enumerate(layers)
            ]
            try:
                model.get_decoder()(
                    input_ids=batch.ids,
                    position_ids=batch.positions,
                    attention_mask=additive(batch.mask, model.dtype),
                    use_cache=False,
                )
            finally:
                for handle in handles:
                    handle.remove()
    back = torch.tensor(order).argsort()
    return [torch.cat(parts)[back] for parts in kept]


def _keeper(kept: list[Tensor], ends: Tensor) -> Any:
    def keep(module: Any, args: Any, output: Any) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        kept.append(hidden[0, ends].float())

    return keep


def fit(x: Tensor, keeps: Tensor) -> Tensor:
    """Shrinkage LDA, fp64 [d + 1], positive where the rule is kept.

    The covariance within the sides is shrunk toward its own diagonal, as single features of a
    residual stream are hundreds of times the others. Solved in the space of the rows (Woodbury),
    as there are fewer rows than features.
    """
    x = x.double()
    up, down = x[keeps].mean(0), x[~keeps].mean(0)
    middle = (up + down) / 2
    inner = torch.where(keeps[:, None], x - up, x - down)
    spread = inner.pow(2).mean(0).sqrt().clamp(min=1e-6)
    inner = inner / spread * ((1 - SHRINK) / len(x)) ** 0.5
    apart = (up - down) / spread
    gram = SHRINK * torch.eye(len(x), dtype=x.dtype) + inner @ inner.t()
    w = (apart - inner.t() @ torch.linalg.solve(gram, inner @ apart)) / SHRINK / spread
    return torch.cat([w, -(w @ middle)[None]])


def scores(weight: Tensor, x: Tensor) -> Tensor:
    """Log odds that the rule is kept, before calibration, fp64 [N]."""
    return x.double() @ weight[:-1] + weight[-1]


def f1(said: Tensor, keeps: Tensor) -> float:
    """The mean of the F1 of both sides."""
    total = 0.0
    for side in (True, False):
        hit = int((((said > 0) == side) & (keeps == side)).sum())
        total += 2 * hit / max(1, int(((said > 0) == side).sum()) + int((keeps == side).sum()))
    return total / 2


def gap(said: Tensor, keeps: Tensor) -> float:
    """Distance of the two sides' means in standard deviations of all scores."""
    return float((said[keeps].mean() - said[~keeps].mean()) / said.std().clamp(min=1e-9))


def calibrate(said: Tensor, keeps: Tensor) -> tuple[float, float]:
    """Temperature of least log loss, relative to the mean score; then the least threshold on the
    calibrated score that leaves at most 5 % of the sure ones wrong."""
    sign = torch.where(keeps, 1.0, -1.0)
    scale = float(said.abs().mean().clamp(min=1e-6))
    loss = {t: -float((said * sign / (t * scale)).sigmoid().log().mean()) for t in TEMPERATURES}
    temperature = min(loss, key=lambda t: loss[t]) * scale
    calm = (said / temperature).abs()
    for threshold in (0.0, *sorted(calm.tolist())):
        sure = calm > threshold
        wrong = sure & (said * sign < 0)
        if int(wrong.sum()) <= 0.05 * int(sure.sum()):
            return temperature, max(threshold, 1e-3)
    return temperature, float(calm.max())


def head(weight: Tensor, temperature: float, threshold: float) -> Tensor:
    """Three logits: ± half the log odds, and a constant that wins below the threshold; [3, d+1]."""
    half = weight / temperature / 2
    unsure = torch.zeros_like(half)
    unsure[-1] = threshold / 2
    return torch.stack([half, -half, unsure]).float()
