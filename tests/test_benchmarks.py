"""Each benchmark runs in its smallest size, and its table has the rows; no time is judged."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import decision, peers, record, scan, watch
from benchmarks.__main__ import main
from benchmarks.measure import SIZES, figure, interleaved
from benchmarks.text import cut_literals, reference_text
from zerolayer import automaton
from zerolayer.errors import ZerolayerError

TINY = SIZES["tiny"]


def cells(figures: list[Any]) -> set[tuple[str, str]]:
    return {(f.case, f.what) for f in figures}


def test_literals_are_different_and_cut_from_the_text() -> None:
    text = reference_text()
    literals = cut_literals(text, 300)
    assert len({x.lower() for x in literals}) == 300
    assert all(x in text for x in literals)


def test_a_ratio_is_the_median_over_rounds() -> None:
    one = figure("b", "case", "them", "s", [2.0, 4.0, 8.0], ours=[1.0, 1.0, 16.0], limit=5.0)
    assert (one.p50, one.ratio, one.reached) == (4.0, 0.5, True)


def test_cases_take_turns() -> None:
    ran: list[str] = []
    cases = {name: lambda name=name: float(ran.append(name) or 0) for name in "abc"}  # type: ignore[misc]
    samples = interleaved(cases, 4)
    assert all(len(s) == 4 for s in samples.values())
    assert all(sorted(ran[i : i + 3]) == ["a", "b", "c"] for i in range(0, 15, 3))


def test_scan(byte_level: Any) -> None:
    figures = scan.run(byte_level, len(byte_level), TINY)
    rows = cells(figures)
    for row in (
        ("3 literals, build", "zerolayer compile_triggers"),
        ("3 literals, tables", "zerolayer compile_triggers"),
        ("3 literals, whole stream", scan.SCAN),
        ("3 literals, whole stream", scan.COPY),
        ("3 literals, a call per token", scan.STEP),
        ("3 literals, a call per token", scan.EMPTY),
        ("3 literals, a step of 4 streams", f"{scan.SCAN} [4, 1]"),
        ("1 literals, build", peers.STOP_STRINGS),
        ("1 literals, a call per token", peers.STOP_STRINGS),
    ):
        assert row in rows
    for module, name in (("xgrammar", peers.XGRAMMAR), ("llguidance", peers.LLGUIDANCE)):
        if peers.importable(module):
            assert ("3 literals, a call per token", name) in rows
            assert ("3 literals, a step of 4 streams", f"ours / {name}") in rows


@pytest.mark.parametrize("change", ["one less", "one more"])
def test_scan_stops_where_the_oracle_disagrees(
    byte_level: Any, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    if not peers.importable("ahocorasick_rs"):
        pytest.skip("the oracle, ahocorasick-rs, is not installed")
    find = peers.AhoCorasick.find

    def other(self: Any, data: bytes) -> list[tuple[int, int, int]]:
        found = find(self, data)
        return found[1:] if change == "one less" else [*found, (1, *found[0][1:])]

    monkeypatch.setattr(peers.AhoCorasick, "find", other)
    text = "the rent is due, the payment term is short. " * 40
    literals = ["rent", "payment term"]
    stream = scan._Stream(byte_level, text, TINY)
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level, len(byte_level))
    with pytest.raises(ZerolayerError, match=r"differs from Aho-Corasick in 1 of"):
        scan._check(literals, scan._Scanner(literals, vocabulary), stream, vocabulary)


def test_inflected_forms_are_told_from_the_literal_itself() -> None:
    assert scan._inflected(b"the rents.", b"rent")
    assert scan._inflected(b"the rent's ", b"rent")
    assert scan._inflected(b"two policies,", b"policy")
    assert not scan._inflected(b"the rent.", b"rent")
    assert not scan._inflected(b"current.", b"rent")
    assert not scan._inflected(b"rentability.", b"rent")


def test_watch(byte_level: Any, llama: Any) -> None:
    figures = watch.run(llama, byte_level, TINY)
    for batch in TINY.batches:
        for case in (f"batch {batch}", f"batch {batch}, share of the step"):
            assert (case, watch.WATCHING) in cells(figures)
            assert (case, "part: scan_tokens") in cells(figures)
    share = next(f for f in figures if f.case == "batch 1, share of the step" and f.limit)
    assert share.limit == 1.0


def test_decision(byte_level: Any) -> None:
    result = decision.run(byte_level, len(byte_level), TINY)
    rows = cells(result.figures)
    for way in ("session", "host steps"):
        assert len(result.samples[way]) == TINY.decisions
        for which in ("p50", "p99", "worst"):
            assert ("a decision, thread CPU", f"{way}: {which}") in rows
            assert ("a decision, wall clock", f"{way}: {which}") in rows
    assert ("parts", "bias") in rows
    assert ("overlay of a settled value", "money: compile") in rows


def test_both_ways_decide_the_same(byte_level: Any) -> None:
    """The host's steps end in the overlay state of the session, and forbid the same tokens."""
    width = len(byte_level)
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level, width)
    rig = decision._Rig(vocabulary, byte_level, width)
    rig.by_session()
    want, state = rig.logits.clone(), rig.session.overlay.place
    rig.put_back()
    rig.logits.zero_()
    rig.by_watchers()
    assert rig.overlay.state == state
    assert rig.logits.equal(want)
    assert bool((want < 0).any())


def test_csv_grows(tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    for _ in range(2):
        record.append_csv([figure("b", "case", "who", "s", [1.0, 2.0])], path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert rows[0]["p50"] == "1.5" and "torch" in rows[0]["versions"] and rows[0]["commit"]


def test_help_has_an_example() -> None:
    said = CliRunner().invoke(main, ["--help"])
    assert said.exit_code == 0
    assert "Example: python -m benchmarks report" in said.output
    for verb in ("scan", "watch", "decision", "report"):
        assert verb in said.output


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    import numpy as np

    from benchmarks.plots import draw

    figures = [
        figure("scan", "3 literals, whole stream", scan.SCAN, "ns/token", [1.0, 2.0]),
        figure("watch", "batch 1, share of the step", "watching", "%", [0.1], limit=1.0),
    ]
    made = draw(figures, {"session": np.array([1.0, 2.0, 9.0])}, tmp_path)
    assert [p.name for p in made] == ["scan.png", "watch.png", "decision.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in made)
