"""Training heed anchors: what it changes, resuming, and the KL budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ska_builder.anchors import heed
from ska_builder.anchors.heed import Settings, folder_windows, limit_strength, train
from ska_builder.contrast.pairs import Pair
from tests.test_attach import pack_for
from zerolayer.anchors import AnchorSet
from zerolayer.attach import attach
from zerolayer.errors import ZerolayerError
from zerolayer.scoring import hidden_states, next_log_probs

SETTINGS = Settings(anchors=2, steps=12, pairs=4, learning_rate=3e-2, warmup=2, kl_weight=0.1)


def pairs() -> list[Pair]:
    """What the rule names is good."""
    made = []
    for n, name in enumerate(("alpha", "beta", "gamma", "delta")):
        for rule, good, bad in (("red it is", " red.", " tan."), ("tan it is", " tan.", " red.")):
            context = f"The {name} box is"
            made.append(Pair("consistency", rule, context, good, bad, f"t{n}", f"g{n}"))
    return made


@pytest.fixture
def windows(byte_level: Any) -> torch.Tensor:
    ids = byte_level("Goods are sent by rail and paid on receipt. " * 30).input_ids
    return torch.tensor(ids)[: len(ids) // 32 * 32].view(-1, 32)


def test_training_learns_and_leaves_the_model_alone(
    llama: Any, byte_level: Any, windows: torch.Tensor
) -> None:
    before = {k: v.clone() for k, v in llama.state_dict().items()}
    losses: list[float] = []
    longer = Settings(**{**vars(SETTINGS), "steps": 40})
    train(llama, byte_level, pairs(), windows, longer, report=lambda e: losses.append(e["loss"]))
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    assert all(torch.equal(v, before[k]) for k, v in llama.state_dict().items())
    assert not any(m._forward_hooks for m in llama.modules())


def test_a_killed_run_resumes_to_the_same_anchors(
    llama: Any, byte_level: Any, windows: torch.Tensor, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(heed, "SAVE_EVERY", 4)
    whole = train(llama, byte_level, pairs(), windows, SETTINGS)

    class Killed(Exception):
        pass

    def kill(entry: dict[str, Any]) -> None:
        if entry["step"] == 6:
            raise Killed

    file = tmp_path / "run.checkpoint"
    with pytest.raises(Killed):
        train(llama, byte_level, pairs(), windows, SETTINGS, checkpoint=file, report=kill)
    for module in llama.modules():
        module._forward_hooks.clear()  # the killed process would have taken them with it
    steps: list[int] = []
    resumed = train(
        llama,
        byte_level,
        pairs(),
        windows,
        SETTINGS,
        file,
        report=lambda e: steps.append(e["step"]),
    )
    assert steps == list(range(4, 12))
    for path, anchors in whole.items():
        torch.testing.assert_close(resumed[path].values, anchors.values, rtol=0, atol=1e-6)
        torch.testing.assert_close(resumed[path].keys, anchors.keys, rtol=0, atol=1e-6)


@pytest.mark.parametrize("what", ["settings", "data", "model"])
def test_a_checkpoint_of_something_else_is_not_taken(
    llama: Any, byte_level: Any, windows: torch.Tensor, tmp_path: Path, what: str, caplog: Any
) -> None:
    short = replace(SETTINGS, steps=heed.SAVE_EVERY)
    file = tmp_path / "run.checkpoint"
    train(llama, byte_level, pairs(), windows, short, checkpoint=file)
    steps: list[int] = []
    if what == "settings":
        short = replace(short, seed=1)
    if what == "model":
        torch.nn.init.normal_(llama.get_input_embeddings().weight)
    data = pairs()[:4] if what == "data" else pairs()
    train(llama, byte_level, data, windows, short, file, report=lambda e: steps.append(e["step"]))
    assert steps == list(range(short.steps)) and "begins anew" in caplog.text


def test_a_damaged_checkpoint_is_said(
    llama: Any, byte_level: Any, windows: torch.Tensor, tmp_path: Path
) -> None:
    file = tmp_path / "run.checkpoint"
    file.write_bytes(b"\x10\x00\x00")
    with pytest.raises(ZerolayerError, match=r"damaged .* delete it"):
        train(llama, byte_level, pairs(), windows, SETTINGS, checkpoint=file)


def test_one_anchor_is_enough(llama: Any, byte_level: Any, windows: torch.Tensor) -> None:
    sets = train(llama, byte_level, pairs(), windows, replace(SETTINGS, anchors=1, steps=2))
    assert all(a.keys.shape[0] == 1 for a in sets.values())


def test_strength_is_the_largest_within_the_budget(llama: Any, windows: torch.Tensor) -> None:
    sets = pack_for(llama, scale=0.3, delta=0.1).anchors
    single = {
        f: limit_strength(llama, _scaled(sets, f), windows[:3], budget=100.0)[1]["1"]
        for f in heed.STRENGTHS
    }
    assert list(single.values()) == sorted(single.values(), reverse=True)
    scaled, curve = limit_strength(llama, sets, windows[:3], budget=single[0.6] * 1.001)
    assert [float(f) for f in curve] == [1.0, 0.9, 0.8, 0.7, 0.6]
    assert list(curve.values()) == pytest.approx([single[float(f)] for f in curve], rel=1e-3)
    for path, anchors in sets.items():
        torch.testing.assert_close(scaled[path].values, anchors.values * 0.6)
        assert torch.equal(scaled[path].thresholds, anchors.thresholds)


def test_a_budget_that_nothing_keeps_is_said(llama: Any, windows: torch.Tensor) -> None:
    with pytest.raises(ZerolayerError, match="above the budget"):
        limit_strength(llama, pack_for(llama).anchors, windows[:1], budget=1e-12)


def _scaled(sets: dict[str, AnchorSet], factor: float) -> dict[str, AnchorSet]:
    return {path: a.scaled(factor) for path, a in sets.items()}


def test_measured_divergence_is_that_of_the_logits(llama: Any, windows: torch.Tensor) -> None:
    pack = pack_for(llama, scale=0.3)
    _, curve = limit_strength(llama, pack.anchors, windows[:1], budget=100.0)
    with torch.inference_mode():
        before = llama(windows[:1]).logits[0, :-1].log_softmax(-1)
        with attach(llama, pack):
            after = llama(windows[:1]).logits[0, :-1].log_softmax(-1)
            hidden = hidden_states(llama, windows[:1])
            torch.testing.assert_close(next_log_probs(llama, hidden), after)
    assert curve == {"1": pytest.approx(float((before.exp() * (before - after)).sum(-1).mean()))}


def test_gate_rates_count_rows(llama: Any, byte_level: Any, windows: torch.Tensor) -> None:
    open_half = pack_for(llama).anchors
    shut = {
        path: replace(a, thresholds=torch.full_like(a.thresholds, 1e6))
        for path, a in open_half.items()
    }
    rates = heed.gate_rates(llama, byte_level, open_half, pairs(), windows[:2])
    assert set(rates) == {"under_a_rule", "same_without_rule", "neutral"}
    assert all(0.5 < r <= 1 for r in rates.values())  # three gates, each open on half of the rows
    rates = heed.gate_rates(llama, byte_level, shut, pairs(), windows[:2])
    assert set(rates.values()) == {0.0}


def test_neutral_folder(byte_level: Any, tmp_path: Path) -> None:
    text = "Prices are stated without tax and may be changed at the end of a month. " * 60
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    (tmp_path / "METADATA").write_text(text, encoding="utf-8")
    (tmp_path / "code.py").write_text(text, encoding="utf-8")
    (tmp_path / "words.txt").write_text("word\n" * 60_000, encoding="utf-8")
    found = folder_windows(byte_level, tmp_path, 32)
    assert torch.equal(found, torch.tensor(byte_level(text).input_ids)[128:160].repeat(2, 1))
    with pytest.raises(ZerolayerError, match="no folder"):
        folder_windows(byte_level, tmp_path / "nowhere", 32)
    with pytest.raises(ZerolayerError, match="no text file of 5000 tokens"):
        folder_windows(byte_level, tmp_path, 1000)
