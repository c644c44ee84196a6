"""probe: does a rule's probe call the conforming continuation consistent, and the other not?

The items are the prohibitions, requirements and definitions of `contrast`. Continuations change
places within a group, so a head that reads the continuation's polarity alone is right half of the
time. Heads that ska-build would not make are read too, and reported apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ska_builder import probe
from ska_builder.anchors.heed import with_rule
from ska_builder.contrast.statements import LEARNED
from ska_builder.language import read_norms
from zerolayer.decisions.probe import VERDICTS
from zerolayer.evaluation.stats import cluster_interval
from zerolayer.ops import decision_probe

Item = dict[str, Any]
ARMS = ("base", "prompt")  # the rule is not in the prompt, or it is


@torch.no_grad()
def evaluate(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    arms: Sequence[str] = ARMS,
    advance: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """{"arms": {"<kind>, <arm>": figures}}: how many rules got a head, its F1 on the project's
    held-out wording, and over good and bad continuations what was unsure and the accuracy of the
    rest, for all fitted heads and (`made_…`) for those that ska-build would make."""
    by_rule: dict[str, list[Item]] = {}
    for item in items:
        if item["kind"] in LEARNED:
            by_rule.setdefault(item["rule"], []).append(item)
    made: list[dict[str, Any]] = []
    rows: dict[str, list[dict[str, Any]]] = {arm: [] for arm in arms}
    for rule, own in by_rule.items():
        reading = next(r for r in read_norms([rule]) if r.kind == own[0]["kind"])
        fitted = probe.fit_head(model, tokenizer, reading)
        if isinstance(fitted, str):
            made.append({"kind": reading.kind, "reason": fitted})
        else:
            made.append({"kind": reading.kind, "reason": "", **fitted.figures})
            for arm in arms:
                rows[arm] += _verdicts(model, tokenizer, own, fitted, arm == "prompt")
        if advance:
            advance(len(own))
    return {
        "arms": {
            f"{kind}, {arm}": _heads([m for m in made if m["kind"] == kind])
            | _part([r for r in rows[arm] if r["kind"] == kind])
            | {
                f"made_{key}": value
                for key, value in _part(
                    [r for r in rows[arm] if r["kind"] == kind and r["made"]]
                ).items()
            }
            for kind in LEARNED
            for arm in arms
        }
    }


def _verdicts(
    model: Any, tokenizer: Any, items: Sequence[Item], fitted: probe.Fitted, ruled: bool
) -> list[dict[str, Any]]:
    texts = [
        (with_rule(i["rule"], i["context"]) if ruled else i["context"], i[side])
        for i in items
        for side in ("good", "bad")
    ]
    states = probe.end_states(model, tokenizer, texts)[fitted.layer]
    decisions = torch.tensor([[n, 0] for n in range(len(texts))], dtype=torch.int32)
    found = decision_probe(states, decisions, fitted.head[None]).argmax(-1)
    return [
        {
            "kind": item["kind"],
            "template": item["template"],
            "made": fitted.figures["test_f1"] >= probe.MIN_F1,
            "right": VERDICTS[int(said)] == ("consistent", "contradiction")[side],
            "unsure": VERDICTS[int(said)] == "unsure",
        }
        for n, item in enumerate(items)
        for side, said in enumerate(found[2 * n : 2 * n + 2])
    ]


def _heads(made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    tried = [m["test_f1"] for m in made if not m["reason"]]
    return {
        "rules": len(made),
        "fitted": len(tried),
        "made": sum(t >= probe.MIN_F1 for t in tried),
        "mean_test_f1": round(sum(tried) / len(tried), 4) if tried else None,
    }


def _part(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sure = [r for r in rows if not r["unsure"]]
    right = [float(r["right"]) for r in sure]
    return {
        "n": len(rows),
        "unsure": len(rows) - len(sure),
        "accuracy": round(sum(right) / len(right), 4) if right else None,
        "ci95": cluster_interval(right, [r["template"] for r in sure]) if right else None,
    }
