"""contrast: does the model prefer the continuation that conforms to the rule?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ska_builder.anchors.heed import with_rule
from zerolayer.attach import attach
from zerolayer.errors import ZerolayerError
from zerolayer.evaluation.stats import cluster_interval, mcnemar
from zerolayer.pack import Pack
from zerolayer.scoring import score

ARMS = ("base", "prompt", "anchors", "heed", "all", "random")
RANDOM_DRAWS = 20
KINDS = ("consistency", "bound", "precedence", "prohibition", "requirement", "definition")
Item = dict[str, Any]


def accuracy(scores: Tensor) -> list[float]:
    """1 where good is likelier than bad, 1/2 for a tie; scores fp32 [N, 2]."""
    good, bad = scores[:, 0], scores[:, 1]
    right = (good > bad).float() + 0.5 * (good == bad).float()
    return [float(r) for r in right]


def last_sentence(context: str) -> str:
    """The lead after the last sentence end, for PMI."""
    cut = max(context.rfind(mark, 0, len(context) - 1) for mark in (". ", "! ", "? "))
    return context[cut + 2 :] if cut >= 0 else context


def prompts(items: Sequence[Item], rule_in_prompt: bool) -> list[tuple[str, list[str]]]:
    """(prompt, [good, bad]) of each item."""
    return [
        (
            with_rule(i["rule"], i["context"]) if rule_in_prompt else i["context"],
            [i["good"], i["bad"]],
        )
        for i in items
    ]


def summary(items: Sequence[Item], scores: Tensor, pmi: Tensor | None = None) -> dict[str, Any]:
    """Accuracy with its interval, of groups, PMI-corrected, margins, by kind and by position."""
    right = accuracy(scores)
    result = _figures(items, right, scores)
    if pmi is not None:
        corrected = accuracy(scores - pmi)
        result["pmi_accuracy"] = round(sum(corrected) / len(corrected), 4)
    result["by_kind"] = {}
    for kind in KINDS:
        index = [j for j, item in enumerate(items) if item["kind"] == kind]
        if not index:
            continue
        part = [items[j] for j in index]
        figures = _figures(part, [right[j] for j in index], scores[index])
        if pmi is not None:
            figures["pmi_accuracy"] = round(sum(corrected[j] for j in index) / len(index), 4)
        figures |= _by_position(part, [right[j] for j in index])
        result["by_kind"][kind] = figures
    kinds = result["by_kind"].values()
    result["mean_over_kinds"] = round(sum(k["accuracy"] for k in kinds) / len(kinds), 4)
    return result


def _figures(items: Sequence[Item], right: Sequence[float], scores: Tensor) -> dict[str, Any]:
    groups: dict[str, list[float]] = defaultdict(list)
    for item, r in zip(items, right, strict=True):
        groups[item["counterbalance_group"]].append(r)
    margin = scores[:, 0] - scores[:, 1]
    return {
        "n": len(items),
        "accuracy": round(sum(right) / len(right), 4),
        "ci95": cluster_interval(right, [i["template"] for i in items]),
        "group_accuracy": round(sum(min(g) == 1 for g in groups.values()) / len(groups), 4),
        "margin_median": round(float(margin.median()), 3),
    }


def _by_position(items: Sequence[Item], right: Sequence[float]) -> dict[str, Any]:
    """Accuracy where the right value stands before / after the other one in the context."""
    sides: dict[str, list[float]] = {"first": [], "last": []}
    for item, r in zip(items, right, strict=True):
        good, bad = (item["context"].find(item[k].strip(" .")) for k in ("good", "bad"))
        if good >= 0 and bad >= 0 and good != bad:
            sides["first" if good < bad else "last"].append(r)
    if not all(sides.values()):
        return {}
    return {"by_position": {k: round(sum(v) / len(v), 4) for k, v in sides.items()}}


def evaluate(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    arms: Sequence[str],
    heed: Pack | None = None,
    rule_pack: Callable[[str], Pack] | None = None,
    advance: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Run the arms; the result has {arm: {"accuracy", "ci95", "by_kind", ...}}.

    Args:
        heed: pack with heed anchors, for the arms `heed`, `all` and `random`.
        rule_pack: makes the pack with a rule's own anchors from its text, for `anchors` and `all`.
        advance: called with the number of scored items since the last call.
    """
    if heed is None and {"heed", "all", "random"} & set(arms):
        raise ZerolayerError("the arms heed, all and random need a pack with heed anchors")
    pmi = score(
        model,
        tokenizer,
        [(last_sentence(i["context"]), [i["good"], i["bad"]]) for i in items],
        advance=advance,
    )
    result: dict[str, Any] = {}
    rights: dict[str, list[float]] = {}
    for arm in arms:
        if arm == "random":
            continue
        rule_in_prompt = arm in ("prompt", "heed", "all")
        texts = prompts(items, rule_in_prompt)
        if arm in ("base", "prompt"):
            scores = score(model, tokenizer, texts, advance=advance)
        elif arm == "heed" and heed is not None:
            with attach(model, heed):
                scores = score(model, tokenizer, texts, advance=advance)
        else:
            scores = _with_rule_packs(
                model, tokenizer, items, texts, rule_pack, heed if arm == "all" else None, advance
            )
        result[arm] = summary(items, scores, pmi)
        rights[arm] = accuracy(scores)
    if heed is not None and "random" in arms:
        result["random"] = _random_arm(model, tokenizer, items, heed, advance)
    for arm in rights:
        if arm != "prompt" and "prompt" in rights:
            result[arm]["against_prompt"] = mcnemar(rights["prompt"], rights[arm])
    return result


def randomised(pack: Pack, seed: int) -> Pack:
    """The pack with what it adds replaced by noise of the same size, under the same gates.

    Values become random directions of the same norm; the entries of each Δγ change places.
    """
    generator = torch.Generator().manual_seed(seed)
    sets = {}
    for path, anchors in pack.anchors.items():
        noise = torch.randn(anchors.values.shape, generator=generator)
        norms = anchors.values.float().norm(dim=-1, keepdim=True)
        values = (F.normalize(noise, dim=-1) * norms).to(anchors.values.dtype)
        delta = anchors.delta_weight
        if delta is not None:
            delta = delta[torch.randperm(delta.numel(), generator=generator)]
        sets[path] = replace(anchors, values=values, delta_weight=delta)
    return replace(pack, anchors=sets)


def _random_arm(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    heed: Pack,
    advance: Callable[[int], None] | None,
) -> dict[str, Any]:
    """The control of the arm `heed`: means over kinds of RANDOM_DRAWS randomised packs."""
    texts = prompts(items, rule_in_prompt=True)
    means = []
    for seed in range(RANDOM_DRAWS):
        with attach(model, randomised(heed, seed)):
            scores = score(model, tokenizer, texts, advance=advance)
        means.append(float(summary(items, scores)["mean_over_kinds"]))
    return {
        "n": len(items),
        "draws": means,
        "mean_over_kinds": round(sum(means) / len(means), 4),
        "best_draw": max(means),
    }


def _with_rule_packs(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    texts: Sequence[tuple[str, list[str]]],
    rule_pack: Callable[[str], Pack] | None,
    heed: Pack | None,
    advance: Callable[[int], None] | None,
) -> Tensor:
    """Scores where each rule brings its own pack; items of one rule share a batch."""
    from zerolayer.anchors import join

    assert rule_pack is not None
    scores = torch.zeros(len(items), 2)
    by_rule: dict[str, list[int]] = defaultdict(list)
    for j, item in enumerate(items):
        by_rule[item["rule"]].append(j)
    for rule, index in by_rule.items():
        pack = rule_pack(rule)
        if heed is not None:
            joined = {p: join(pack.anchors.get(p), a) for p, a in heed.anchors.items()}
            pack.anchors |= {p: a for p, a in joined.items() if a is not None}
        with attach(model, pack):
            scores[index] = score(model, tokenizer, [texts[j] for j in index], advance=advance)
    return scores
