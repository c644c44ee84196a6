"""Evaluation on neutral text, the random control, and the tables of figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.test_attach import pack_for
from zerolayer.attach import attach
from zerolayer.errors import ZerolayerError
from zerolayer.evaluation import contrast, neutral
from zerolayer.tables import figures_markdown

TEXT = "The tenant keeps the garden in order and waters the plants each week. " * 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.md").write_text(TEXT, encoding="utf-8")
    (tmp_path / "deep" / "a.txt").write_text("Prices are stated net. " * 40, encoding="utf-8")
    (tmp_path / "short.txt").write_text("Too short to count.", encoding="utf-8")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    return tmp_path


def test_windows_are_cut_in_order_and_bounded(folder: Path, byte_level: Any) -> None:
    found = neutral.windows(folder, byte_level, per_document=2, length=100)
    assert [w.document for w in found] == ["b.md", "b.md", "deep/a.txt", "deep/a.txt"]
    assert all(64 <= w.ids.numel() <= 100 for w in found)
    whole = torch.tensor(byte_level(TEXT).input_ids)
    assert torch.equal(torch.cat([w.ids[0] for w in found[:2]]), whole[:200])


def test_wrong_folders_are_refused(tmp_path: Path, byte_level: Any) -> None:
    with pytest.raises(ZerolayerError, match="no folder"):
        neutral.windows(tmp_path / "nowhere", byte_level, 1)
    with pytest.raises(ZerolayerError, match="no text of 64 tokens"):
        neutral.windows(tmp_path, byte_level, 1)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 " * 100)
    with pytest.raises(ZerolayerError, match="not UTF-8"):
        neutral.windows(tmp_path, byte_level, 1)


def test_perplexity_equals_that_of_the_logits(folder: Path, byte_level: Any, llama: Any) -> None:
    pack = pack_for(llama, scale=0.2)
    found = neutral.windows(folder, byte_level, per_document=1, length=100)
    figures = neutral.evaluate(llama, pack, found)
    with torch.inference_mode():
        before = [_loss(llama, w.ids) for w in found]
        with attach(llama, pack):
            after = [_loss(llama, w.ids) for w in found]
    n = sum(w.ids.numel() - 1 for w in found)
    assert figures["tokens"] == n
    assert figures["perplexity_plain"] == pytest.approx(math.exp(sum(before) / n), rel=1e-4)
    assert figures["perplexity_attached"] == pytest.approx(math.exp(sum(after) / n), rel=1e-4)
    assert figures["kl"] > 0 and 0 < figures["gate_rate"] <= 1
    low, high = figures["change_ci95"]
    assert low <= figures["change"] <= high


def test_a_pack_without_effect_changes_nothing(folder: Path, byte_level: Any, llama: Any) -> None:
    found = neutral.windows(folder, byte_level, per_document=1)
    figures = neutral.evaluate(llama, pack_for(llama, gain=0.0), found)
    assert figures["change"] == 0 and figures["kl"] == 0 and figures["gate_rate"] == 0


def test_random_control_keeps_sizes_and_gates(llama: Any) -> None:
    pack = pack_for(llama, delta=0.1)
    first, again, other = (contrast.randomised(pack, seed) for seed in (0, 0, 1))
    for path, mine in pack.anchors.items():
        drawn = first.anchors[path]
        assert torch.equal(drawn.keys, mine.keys)
        assert torch.equal(drawn.thresholds, mine.thresholds)
        torch.testing.assert_close(drawn.values.norm(dim=-1), mine.values.norm(dim=-1))
        assert not torch.allclose(drawn.values, mine.values)
        assert mine.delta_weight is not None and drawn.delta_weight is not None
        assert torch.equal(drawn.delta_weight.sort().values, mine.delta_weight.sort().values)
        assert torch.equal(drawn.values, again.anchors[path].values)
        assert not torch.equal(drawn.values, other.anchors[path].values)


def test_markdown_has_a_column_for_each_kind() -> None:
    figures = {"accuracy": 0.5, "n": 4}
    result = {
        "set": "contrast",
        "n": 8,
        "arms": {
            "prompt": {
                "by_kind": {"bound": figures, "precedence": figures},
                "ci95": [0.4, 0.6],
                "mean_over_kinds": 0.5,
            },
            "random": {"draws": [0.5], "mean_over_kinds": 0.5, "best_draw": 0.5},
        },
    }
    lines = figures_markdown(result).splitlines()
    assert lines[0] == "| arm | bound | precedence | mean | 95 % | best draw |"
    assert lines[2] == "| prompt | 50.0 | 50.0 | 50.0 | 40.0–60.0 |  |"
    assert lines[3] == "| random |  |  | 50.0 |  | 50.0 |"


def _loss(model: Any, ids: torch.Tensor) -> float:
    logits = model(ids).logits[0, :-1]
    return float(F.cross_entropy(logits, ids[0, 1:], reduction="sum"))
