"""Heed anchors: one set per model that makes it follow rules standing in its prompt.

Trained on contrast pairs over many rules of all kinds with the rule in the prompt, the backbone
frozen: a logistic loss on the margin log p(good) − log p(bad), and a KL term to the plain model on
neutral text, which is what keeps the model's other behaviour where it was. Keys start as the
direction that tells text under a rule from the same text without one; thresholds start at the
median of neutral scores, so that these gates are at work everywhere.
"""

from __future__ import annotations

import hashlib
import logging
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ska_builder.contrast.pairs import Pair
from zerolayer.anchors import AnchorSet, Normalizer, gated_part, norm_modules, normalizer
from zerolayer.attach import attach, gate_rate
from zerolayer.errors import ZerolayerError
from zerolayer.models import fingerprint
from zerolayer.pack import Pack
from zerolayer.scoring import Batch, collate, encode, hidden_states, log_probs, next_log_probs

log = logging.getLogger(__name__)

# How often a kind is drawn: those that a small model can learn to generalise come more often.
WEIGHTS = {
    "consistency": 4,
    "bound": 1,
    "precedence": 8,
    "prohibition": 3,
    "requirement": 2,
    "definition": 2,
}
SAVE_EVERY = 40  # steps
# Factors that limit_strength tries.
STRENGTHS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
MAX_NEUTRAL_BYTES = 200_000  # larger files are word lists and the like


def with_rule(rule: str, context: str) -> str:
    """The prompt with the rule before the context; the same wording in training and evaluation."""
    return f"Rule: {rule}\n{context}"


@dataclass(frozen=True)
class Settings:
    """What a training run is told; each is recorded in the pack."""

    anchors: int = 4  # gated anchors per norm
    steps: int = 260
    pairs: int = 8  # per step
    learning_rate: float = 1e-3
    warmup: int = 20
    kl_weight: float = 3.0
    neutral_rows: int = 1
    neutral_tokens: int = 128
    gate_quantile: float = 0.5  # of neutral rows that stay below each threshold at the start
    seed: int = 0


class Trainable(nn.Module):
    """The parameters of all layers, fp32, and the hooks that add their effect to the model."""

    def __init__(self, model: Any, settings: Settings) -> None:
        super().__init__()
        self.norms = norm_modules(model)
        width = model.config.get_text_config().hidden_size
        shape = (len(self.norms), settings.anchors, width)
        self.ska_keys = nn.Parameter(torch.zeros(shape))
        self.ska_values = nn.Parameter(torch.zeros(shape))
        self.ska_thresholds = nn.Parameter(torch.zeros(shape[:2]))
        self.ska_delta_weight = nn.Parameter(torch.zeros(shape[0], width))
        self.enabled = True
        self.watch: Callable[[int, Tensor], None] | None = None
        self.handles = [
            norm.register_forward_hook(self._hook(i, normalizer(norm)))
            for i, norm in enumerate(self.norms.values())
        ]

    def _hook(
        self, i: int, normalize: Normalizer
    ) -> Callable[[nn.Module, tuple[Tensor], Tensor], Tensor]:
        def add(module: nn.Module, args: tuple[Tensor], output: Tensor) -> Tensor:
            if self.watch is not None:
                self.watch(i, normalize(args[0]))
            if not self.enabled:
                return output
            xhat = normalize(args[0])
            ones = torch.ones(self.ska_thresholds.shape[1])
            delta = gated_part(
                xhat, self.ska_keys[i], self.ska_values[i], self.ska_thresholds[i], ones
            )
            return output + (delta + xhat * self.ska_delta_weight[i]).to(output.dtype)

        return add

    def remove(self) -> None:
        """Take the hooks off the model."""
        for handle in self.handles:
            handle.remove()

    def anchor_sets(self) -> dict[str, AnchorSet]:
        """What was learned, by module path; gains are 1, their size lies in the values."""
        count = self.ska_thresholds.shape[1]
        return {
            path: AnchorSet(
                self.ska_keys[i].detach().clone(),
                self.ska_values[i].detach().clone(),
                self.ska_thresholds[i].detach().clone(),
                torch.ones(count),
                torch.full((count,), -1, dtype=torch.int32),
                self.ska_delta_weight[i].detach().clone(),
            )
            for i, path in enumerate(self.norms)
        }


def neutral_windows(tokenizer: Any, text: str, length: int) -> Tensor:
    """Neutral text cut into windows, int64 [N, length]."""
    ids = torch.tensor(tokenizer(text).input_ids)
    count = ids.numel() // length
    return ids[: count * length].view(count, length)


def folder_windows(tokenizer: Any, folder: Path, length: int) -> Tensor:
    """One window of each text file below a folder, behind its head, int64 [N, length].

    Read are .md, .rst, .txt, and the METADATA of installed Python packages, which is where a
    machine without a network has varied prose.

    Raises:
        ZerolayerError: no such folder, or no window of text in it.
    """
    if not folder.is_dir():
        raise ZerolayerError(f"no folder {folder}; --neutral names a folder with text files")
    found = []
    for path in sorted(folder.rglob("*")):
        named = path.suffix in (".md", ".rst", ".txt") or path.name == "METADATA"
        if named and path.is_file() and path.stat().st_size <= MAX_NEUTRAL_BYTES:
            text = path.read_text(encoding="utf-8", errors="ignore")
            found.append(neutral_windows(tokenizer, text[: 40 * length], length)[4:5])
    windows = torch.cat(found) if found else torch.zeros(0, length, dtype=torch.long)
    if not windows.shape[0]:
        raise ZerolayerError(f"{folder} holds no text file of {5 * length} tokens")
    return windows


@torch.no_grad()
def start_keys(
    model: Any,
    tokenizer: Any,
    heed: Trainable,
    pairs: Sequence[Pair],
    neutral: Tensor,
    settings: Settings,
) -> None:
    """Set the first keys and thresholds from hidden states.

    The first key of a layer is the difference of means between tokens of a context under its rule
    and the same tokens without it; the others are centred hidden states at decision points, so
    that they open on different texts. Thresholds are a quantile of the neutral text's scores.
    """
    heed.enabled = False
    layers, count = heed.ska_thresholds.shape
    store: list[list[Tensor]] = [[] for _ in range(layers)]
    heed.watch = lambda i, xhat: store[i].append(xhat)
    tails: list[tuple[Tensor, Tensor]] = []
    means: list[Tensor] = []
    for pair in pairs:
        for text in (with_rule(pair.rule, pair.context), pair.context):
            model.get_decoder()(torch.tensor([tokenizer(text).input_ids]), use_cache=False)
        n = len(tokenizer(pair.context).input_ids) // 2
        taken = torch.stack(
            [torch.stack([s[0][0, -n:].mean(0), s[1][0, -n:].mean(0)]) for s in store]
        )
        means.append(taken)
        tails.append((torch.stack([s[0][0, -1] for s in store]), taken[:, 1]))
        for s in store:
            s.clear()
    model.get_decoder()(neutral, use_cache=False)
    plain = torch.stack([s[0].reshape(-1, s[0].shape[-1]) for s in store])  # [layers, rows, d]
    heed.watch = None
    heed.enabled = True

    mean = torch.stack(means)  # [pairs, layers, 2, d]
    first = F.normalize((mean[:, :, 0] - mean[:, :, 1]).mean(0), dim=-1)
    generator = torch.Generator().manual_seed(settings.seed)
    others = torch.randint(len(tails), (layers, count - 1), generator=generator)
    center = plain.mean(1)
    for i in range(layers):
        rows = [F.normalize(tails[int(j)][0][i] - center[i], dim=-1) for j in others[i]]
        heed.ska_keys[i] = torch.stack([first[i], *rows])
        # Keys of length sqrt(d) make <x̂, key> / sqrt(d) move by about one over the text.
        heed.ska_keys[i] *= 4.0
        scores = plain[i] @ heed.ska_keys[i].t() / plain.shape[-1] ** 0.5
        heed.ska_thresholds[i] = scores.quantile(settings.gate_quantile, dim=0)


def train(
    model: Any,
    tokenizer: Any,
    pairs: Sequence[Pair],
    windows: Tensor,
    settings: Settings,
    checkpoint: Path | None = None,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, AnchorSet]:
    """Train heed anchors; resumes from `checkpoint` where one of the same model, data and
    settings is found.

    Args:
        pairs: contrast pairs; whole counterbalance groups are drawn, so that no step rewards a
            fixed habit ("the first value", "the smaller one").
        windows: int64 [N, neutral_tokens], text for the KL term and for the thresholds.
        checkpoint: file that is rewritten every SAVE_EVERY steps.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    heed = Trainable(model, settings)
    rng = random.Random(settings.seed)
    groups = _groups(pairs)
    optimizer = torch.optim.AdamW(heed.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    stamp = _stamp(model, pairs, windows, settings)
    done = _resume(heed, optimizer, checkpoint, stamp)
    if not done:
        sample = [
            rng.choice(groups[k][rng.randrange(len(groups[k]))]) for k in groups for _ in range(6)
        ]
        start_keys(model, tokenizer, heed, sample, windows[:12], settings)
    pad = tokenizer.pad_token_id or 0
    for step in progress(range(done, settings.steps)):
        rng.seed(settings.seed * 100_003 + step)  # a resumed run draws what the first would have
        drawn = _draw(groups, settings.pairs, rng)
        batch = collate(
            [encode(tokenizer, with_rule(p.rule, p.context), (p.good, p.bad)) for p in drawn], pad
        )
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * _schedule(step, settings)
        margin = _margins(model, batch)
        loss = F.softplus(-margin).mean()
        torch.autograd.backward(loss)
        chosen = windows[[rng.randrange(len(windows)) for _ in range(settings.neutral_rows)]]
        kl = _neutral_kl(model, heed, chosen)
        torch.autograd.backward(settings.kl_weight * kl)
        nn.utils.clip_grad_norm_(heed.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if report:
            margins = margin.detach().tolist()
            report(
                {
                    "step": step,
                    "loss": float(loss.detach()),
                    "kl": float(kl.detach()),
                    "right": sum(m > 0 for m in margins) / len(margins),
                    "margins": [[p.kind, round(m, 3)] for p, m in zip(drawn, margins, strict=True)],
                }
            )
        if checkpoint and (step + 1) % SAVE_EVERY == 0:
            _save(heed, optimizer, checkpoint, step + 1, stamp)
    heed.remove()
    return heed.anchor_sets()


@torch.inference_mode()
def limit_strength(
    model: Any, sets: dict[str, AnchorSet], held: Tensor, budget: float
) -> tuple[dict[str, AnchorSet], dict[str, float]]:
    """Scale all anchors by the largest factor whose neutral KL keeps the budget.

    The divergence grows with about the square of the factor, the effect more slowly, so a
    factor below 1 buys back much of what an anchor costs on text that no rule is about.

    Args:
        held: int64 [N, T] neutral windows that training has not seen.
        budget: nats per token.

    Returns:
        The scaled anchors, and {factor: KL} as measured from 1 downward.

    Raises:
        ZerolayerError: no factor keeps the budget.
    """
    plain = [hidden_states(model, row[None]) for row in held]
    curve: dict[str, float] = {}
    for factor in STRENGTHS:
        scaled = {path: a.scaled(factor) for path, a in sets.items()}
        pack = Pack(model=fingerprint(model), tokenizer="", anchors=scaled)
        total = 0.0
        with attach(model, pack):
            for row, hidden in zip(held, plain, strict=True):
                before = next_log_probs(model, hidden)
                after = next_log_probs(model, hidden_states(model, row[None]))
                total += float(F.kl_div(after, before, reduction="batchmean", log_target=True))
        curve[f"{factor:g}"] = total / len(plain)
        if curve[f"{factor:g}"] <= budget:
            return scaled, curve
    raise ZerolayerError(
        f"the neutral KL is {min(curve.values()):.4f} nats per token even at {STRENGTHS[-1]:g} of "
        f"the anchors' strength, above the budget of {budget:g}; train with a larger weight of the "
        "KL term, or allow more with --budget"
    )


@torch.inference_mode()
def gate_rates(
    model: Any, tokenizer: Any, sets: dict[str, AnchorSet], pairs: Sequence[Pair], held: Tensor
) -> dict[str, float]:
    """Share of rows with an open gate, the mean over norms: under a rule, without, on neutral text.

    Args:
        pairs: pairs that training has not seen.
        held: int64 [N, T] neutral windows that training has not seen.
    """
    pack = Pack(model=fingerprint(model), tokenizer="", anchors=sets)

    def rate(texts: Sequence[list[int]]) -> float:
        rates = [gate_rate(model, attachment, torch.tensor([ids])) for ids in texts]
        return sum(rates) / max(1, len(rates))

    with attach(model, pack) as attachment:
        return {
            "under_a_rule": rate(
                [tokenizer(with_rule(p.rule, p.context)).input_ids for p in pairs]
            ),
            "same_without_rule": rate([tokenizer(p.context).input_ids for p in pairs]),
            "neutral": rate(held.tolist()),
        }


def _margins(model: Any, batch: Batch) -> Tensor:
    scores = log_probs(model, batch)
    return scores[:, 0] - scores[:, 1]


def _neutral_kl(model: Any, heed: Trainable, ids: Tensor) -> Tensor:
    """KL(plain ‖ attached) per token on neutral rows, nats."""
    head = model.get_output_embeddings()
    with torch.no_grad():
        heed.enabled = False
        plain = head(model.get_decoder()(ids, use_cache=False).last_hidden_state).log_softmax(-1)
        heed.enabled = True
    attached = head(model.get_decoder()(ids, use_cache=False).last_hidden_state).log_softmax(-1)
    flat = plain.shape[-1]
    return F.kl_div(
        attached.view(-1, flat), plain.view(-1, flat), reduction="batchmean", log_target=True
    )


def _groups(pairs: Sequence[Pair]) -> dict[str, list[list[Pair]]]:
    table: dict[str, dict[str, list[Pair]]] = {}
    for pair in pairs:
        table.setdefault(pair.kind, {}).setdefault(pair.group, []).append(pair)
    return {kind: list(groups.values()) for kind, groups in table.items()}


def _draw(groups: dict[str, list[list[Pair]]], count: int, rng: random.Random) -> list[Pair]:
    """Pairs of one step: two of one counterbalance group at a time, kinds in turn."""
    drawn: list[Pair] = []
    kinds = list(groups)
    while len(drawn) < count:
        kind = rng.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        group = rng.choice(groups[kind])
        drawn += rng.sample(group, min(2, len(group)))
    return drawn[:count]


def _schedule(step: int, settings: Settings) -> float:
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    share = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return 0.5 * (1 + math.cos(math.pi * share))


def _stamp(model: Any, pairs: Sequence[Pair], windows: Tensor, settings: Settings) -> str:
    """What a checkpoint belongs to: settings, model and data."""
    data = hashlib.sha256(repr(pairs).encode() + windows.numpy().tobytes()).hexdigest()[:16]
    return f"{settings!r} {fingerprint(model)!r} {data}"


def _save(
    heed: Trainable, optimizer: torch.optim.Optimizer, path: Path, step: int, stamp: str
) -> None:
    tensors = {name: p.detach() for name, p in heed.named_parameters()}
    for name, parameter in heed.named_parameters():
        for key in ("exp_avg", "exp_avg_sq"):
            tensors[f"{key}.{name}"] = optimizer.state[parameter][key]
    scratch = path.with_name(path.name + ".part")
    save_file(tensors, scratch, metadata={"step": str(step), "stamp": stamp})
    scratch.replace(path)


def _resume(
    heed: Trainable, optimizer: torch.optim.Optimizer, path: Path | None, stamp: str
) -> int:
    """Number of steps already done; 0 without a checkpoint of the same model, data and settings.

    Raises:
        ZerolayerError: the checkpoint is damaged.
    """
    if path is None or not path.is_file():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except SafetensorError as error:
        raise ZerolayerError(
            f"the checkpoint {path} is damaged ({error}); delete it to begin anew"
        ) from error
    if metadata.get("stamp") != stamp:
        log.warning("%s belongs to another model, data or settings; training begins anew", path)
        return 0
    step = int(metadata["step"])
    with torch.no_grad():
        for name, parameter in heed.named_parameters():
            parameter.copy_(tensors[name])
            optimizer.state[parameter] = {
                "step": torch.tensor(float(step)),
                "exp_avg": tensors[f"exp_avg.{name}"],
                "exp_avg_sq": tensors[f"exp_avg_sq.{name}"],
            }
    return step
