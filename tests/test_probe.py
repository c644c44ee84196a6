"""The probe: its op against the oracle, its training on toy cases, its place in pack and model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import oracle
import pytest
import torch
from torch import Tensor

from ska_builder import probe
from ska_builder.build import build
from ska_builder.contrast.statements import Statement, opposite, statements
from ska_builder.language import check_text
from zerolayer import automaton, ops
from zerolayer.decisions.probe import VERDICTS, Probe
from zerolayer.errors import ZerolayerError
from zerolayer.evaluation import probe as evaluation
from zerolayer.models import fingerprint
from zerolayer.pack import Pack
from zerolayer.readings import Reading

# ---- the op


def made(rows: int, width: int, heads: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(rows + width)
    hidden = torch.randn(rows, width, generator=g, dtype=torch.float64)
    probe = torch.randn(heads, 3, width + 1, generator=g) / width**0.5
    decisions = torch.stack(
        [
            torch.randint(0, rows, (count,), generator=g),
            torch.randint(0, heads, (count,), generator=g),
        ],
        1,
    ).int()
    decisions[1::3] = -1
    return hidden, decisions, probe


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [1, 7, 500, 576])
@pytest.mark.parametrize("count", [0, 1, 19])
def test_scores_are_those_of_the_oracle(count: int, width: int, dtype: torch.dtype) -> None:
    hidden, decisions, probe = made(5, width, 4, count)
    low = hidden.to(dtype)
    got = ops.decision_probe(low, decisions, probe)
    exact = oracle.decision_probe(low.double(), decisions, probe.double())
    assert got.dtype == torch.float32 and got.shape == (count, 3)
    torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-6)
    assert not got[1::3].any()


def test_strided_rows_and_decisions() -> None:
    hidden, decisions, probe = made(6, 7, 2, 9)
    wide = torch.cat([hidden, hidden + 1], 1).float()
    double = torch.cat([decisions, decisions], 1)
    got = ops.decision_probe(wide[::2, :7], double[:, :2].clamp(max=1), probe)
    want = ops.decision_probe(
        wide[::2, :7].contiguous(), decisions.clamp(max=1).contiguous(), probe
    )
    assert torch.equal(got, want)
    torch.testing.assert_close(
        ops.decision_probe(wide[:, :7].t().contiguous().t(), decisions, probe),
        ops.decision_probe(hidden.float(), decisions, probe),
    )


def test_far_logits_do_not_overflow_and_nan_is_kept() -> None:
    probe = torch.tensor([[[1e4, 0.0], [-1e4, 0.0], [0.0, 0.0]]])
    decisions = torch.tensor([[0, 0], [1, 0]], dtype=torch.int32)
    scores = ops.decision_probe(torch.tensor([[50.0], [float("nan")]]), decisions, probe)
    assert scores[0].tolist() == [1.0, 0.0, 0.0]
    assert scores[1].isnan().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, d, p: (h[0], d, p), "hidden must be"),
        (lambda h, d, p: (h.double(), d, p), "hidden must be float32"),
        (lambda h, d, p: (h, d.long(), p), "decisions must be int32"),
        (lambda h, d, p: (h, d + 10, p), "names row"),
        (lambda h, d, p: (h, d, p[:, :, :-1]), "probe must be float32"),
        (lambda h, d, p: (h, d, p.double()), "probe must be float32"),
    ],
)
def test_wrong_arguments_are_named(change: Any, message: str) -> None:
    hidden, decisions, probe = made(3, 7, 2, 2)
    with pytest.raises(RuntimeError, match=message):
        ops.decision_probe(*change(hidden.float(), decisions, probe))


def test_opcheck() -> None:
    hidden, decisions, probe = made(5, 7, 2, 4)
    torch.library.opcheck(torch.ops.zerolayer.decision_probe, (hidden.float(), decisions, probe))


# ---- training


def toy(n: int, width: int, seed: int, noise: float = 0.3) -> tuple[Tensor, Tensor]:
    """Two clouds that differ along one feature; another feature is huge and means nothing."""
    g = torch.Generator().manual_seed(seed)
    keeps = torch.arange(n) % 2 == 0
    x = noise * torch.randn(n, width, generator=g)
    x[:, 3] += torch.where(keeps, 1.0, -1.0)
    x[:, 5] = 1000 + 50 * torch.randn(n, generator=g)
    return x, keeps


def test_a_separable_case_is_learned_and_a_random_one_is_not() -> None:
    x, keeps = toy(60, 200, 0)
    unseen, truth = toy(200, 200, 1)
    assert probe.f1(probe.scores(probe.fit(x, keeps), unseen), truth) > 0.95
    shuffled = keeps[torch.randperm(60, generator=torch.Generator().manual_seed(0))]
    assert probe.f1(probe.scores(probe.fit(x, shuffled), unseen), truth) < 0.8


def test_fit_is_the_shrunken_discriminant() -> None:
    """The rows' space and the features' space give the same direction."""
    x, keeps = toy(40, 12, 2)
    x = x.double()
    up, down = x[keeps].mean(0), x[~keeps].mean(0)
    inner = torch.where(keeps[:, None], x - up, x - down)
    within = inner.t() @ inner / len(x)
    sigma = (1 - probe.SHRINK) * within + probe.SHRINK * within.diagonal().diag()
    want = torch.linalg.solve(sigma, up - down)
    torch.testing.assert_close(probe.fit(x, keeps)[:-1], want)


def test_head_says_unsure_exactly_below_the_threshold() -> None:
    weight = torch.tensor([2.0, -1.0], dtype=torch.float64)
    x = torch.tensor([[0.5 + s] for s in (-1.0, -0.2, 0.2, 1.0)])
    head = probe.head(weight, temperature=0.5, threshold=1.0)
    decisions = torch.tensor([[n, 0] for n in range(4)], dtype=torch.int32)
    said = ops.decision_probe(x, decisions, head[None]).argmax(-1)
    assert said.tolist() == [1, 2, 2, 0]  # log odds −4, −0.8, 0.8, 4


def test_threshold_leaves_few_errors_among_the_sure() -> None:
    keeps = torch.tensor([True] * 10 + [False] * 10)
    said = torch.where(keeps, 3.0, -3.0)
    said[0], said[10] = -1.0, 1.0
    temperature, threshold = probe.calibrate(said, keeps)
    sure = (said / temperature).abs() > threshold
    assert sure.sum() == 18 and not sure[0] and not sure[10]


READINGS = {
    "prohibition": Reading("R", 1, "prohibition", "en", details={"act": "promise a delivery date"}),
    "requirement": Reading(
        "R", 2, "requirement", "zh", details={"when": "提及赔偿", "then": "说明赔偿上限"}
    ),
    "definition": Reading(
        "R", 3, "definition", "en",
        details={"term": "firm order", "also": [], "meaning": "an order that cannot be withdrawn"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", READINGS)
def test_statements_share_no_wording_between_parts_and_both_sides_deny(kind: str) -> None:
    parts = statements(READINGS[kind])
    assert not isinstance(parts, str)
    seen = [{s.text for s in parts[p]} | {s.opening for s in parts[p]} for p in parts]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    for part in parts.values():
        assert sum(s.keeps for s in part) * 2 == len(part)
        assert not any("{" in s.text for s in part)


def test_rules_without_a_probe_say_why() -> None:
    always = Reading("R", 1, "requirement", "en", details={"then": "name its source"})
    plain = Reading("R", 1, "definition", "en", details={"term": "a", "meaning": "red paint"})
    assert "no condition" in str(statements(always))
    assert "opposite" in str(statements(plain))
    assert opposite("到期前不得撤回的承诺", "zh") == "到期前可以撤回的承诺"
    assert opposite("what cannot be sold", "en") == "what can be sold"


def test_key_phrases_leave_common_words_out() -> None:
    assert "delivery date" in " ".join(probe.key_phrases(READINGS["prohibition"]))
    assert probe.key_phrases(READINGS["requirement"]) == ["赔偿"]
    assert probe.key_phrases(READINGS["definition"]) == ["firm order"]


def test_end_states_are_those_of_each_text_alone(llama: Any, byte_level: Any) -> None:
    texts = [("Dear customer,", f" we will not send {n} orders.") for n in range(20)]
    texts.insert(3, ("In short:", " no."))
    got = probe.end_states(llama, byte_level, texts)
    with torch.inference_mode():
        for n in (0, 3, 4, 20):
            opening, text = texts[n]
            ids = byte_level(opening).input_ids + byte_level(text).input_ids
            want = llama(torch.tensor([ids]), output_hidden_states=True).hidden_states
            torch.testing.assert_close(got[0][n], want[1][0, -1], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(got[1][n], want[2][0, -1], rtol=1e-4, atol=1e-5)


def test_a_model_that_knows_nothing_gets_no_probe(llama: Any, byte_level: Any) -> None:
    made = probe.make(llama, byte_level, READINGS["definition"], ["It is."], ["It is not."])
    assert made.head is None and "F1 on held-out wording" in made.record["reason"]
    made = probe.make(llama, byte_level, READINGS["definition"], ["It is."], [])
    assert made.head is None and "needs an example" in made.record["reason"]


def test_an_own_example_read_wrongly_forbids_the_probe(
    llama: Any, byte_level: Any, monkeypatch: Any
) -> None:
    """The tiny model is made to see one feature: whether the text ends in "yes."."""

    def planted(model: Any, tokenizer: Any, texts: Any) -> list[Tensor]:
        kept = [1.0 if text.endswith("yes.") else -1.0 for _, text in texts]
        return [torch.tensor(kept)[:, None] * torch.ones(48) for _ in range(3)]

    def parts(reading: Any) -> Any:
        one = [Statement("", "yes.", True), Statement("", "no.", False)]
        return {"train": one * 4, "validate": one * 2, "test": one * 2}

    monkeypatch.setattr(probe, "end_states", planted)
    monkeypatch.setattr(probe, "statements", parts)
    made = probe.make(llama, byte_level, READINGS["definition"], ["yes."], ["no."])
    assert made.head is not None and made.record["own_examples"] == {"n": 2, "wrong": 0}
    made = probe.make(llama, byte_level, READINGS["definition"], ["no."], ["no."])
    assert made.head is None and "'no.'" in made.record["reason"]


def test_build_puts_heads_and_triggers_into_the_pack(
    llama: Any, byte_level: Any, monkeypatch: Any
) -> None:
    text = (
        "---\ndomain: t\nlanguages: [en]\n---\n# T\n\n## Promises\n"
        'Never promise a delivery date.\n- good: "We name no date."\n- bad: "It comes today."\n\n'
        '## Firm order\n"Firm order" means an order that cannot be withdrawn.\n'
        '- good: "A firm order stays."\n- bad: "A firm order goes."\n'
    )

    def parts(model: Any, tokenizer: Any, reading: Reading) -> Any:
        if reading.kind == "definition":
            return "nothing to learn from"
        return probe.Fitted(1, torch.zeros(3, 49), 1.0, {"test_f1": 1.0})

    monkeypatch.setattr(probe, "fit_head", parts)
    pack = build(check_text(text, "rules.md"), llama, byte_level)
    assert pack.probe is not None and pack.probe.shape == (1, 3, 49)
    assert [bool(r["reason"]) for r in pack.probes] == [False, True]
    [own] = [t for t in pack.triggers if t.get("rule") == "Promises"]
    assert "delivery date" in own["phrases"]
    with Probe.attach(llama, pack) as reader:
        assert sorted(reader.triggered)[-1] == 0
    assert build(check_text(text, "rules.md"), llama, byte_level, with_anchors=False).probe is None


def test_evaluation_counts_heads_and_verdicts(
    llama: Any, byte_level: Any, monkeypatch: Any
) -> None:
    """A head that always says "consistent" is right on one half."""
    head = torch.zeros(3, 49)
    head[0, -1] = 5.0
    monkeypatch.setattr(probe, "fit_head", lambda *a: probe.Fitted(1, head, 1.0, {"test_f1": 0.5}))
    items = [
        {"kind": "prohibition", "rule": "Never sell alcohol.", "context": "The clerk says:",
         "good": " No.", "bad": " Yes.", "template": f"t{n}", "counterbalance_group": "g"}
        for n in range(3)
    ]  # fmt: skip
    arms = evaluation.evaluate(llama, byte_level, items)["arms"]
    figures = arms["prohibition, prompt"]
    assert figures["n"] == 6 and figures["accuracy"] == 0.5 and figures["unsure"] == 0
    assert figures["made"] == 0 and figures["made_n"] == 0
    assert arms["definition, base"]["rules"] == 0


# ---- pack and run time


@pytest.fixture
def pack(llama: Any, byte_level: Any) -> Pack:
    """Two heads on two layers; the first one's verdict follows one feature."""
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level, 512)
    g = torch.Generator().manual_seed(0)
    records = [
        {"rule": "A", "line": 1, "layer": 0, "reason": ""},
        {"rule": "B", "line": 2, "reason": "F1"},
        {"rule": "C", "line": 3, "layer": 2, "reason": ""},
    ]
    return Pack(
        model=fingerprint(llama),
        tokenizer=vocabulary.fingerprint(),
        probe=torch.randn(2, 3, 49, generator=g),
        probes=records,
        triggers=[
            {"slot": "x", "phrases": ["x"]},
            {"rule": "C", "line": 3, "phrases": ["y"]},
            {"rule": "A", "line": 1, "phrases": ["z"]},
        ],
    )


def test_pack_keeps_probes(pack: Pack, tmp_path: Path) -> None:
    pack.save(tmp_path / "p.safetensors")
    again = Pack.load(tmp_path / "p.safetensors")
    assert again.probe is not None and torch.equal(again.probe, pack.probe)
    assert again.probes == pack.probes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: replace(p, probe=p.probe.double()), "must be float32"),
        (lambda p: replace(p, probe=p.probe[:, :, :-1]), "must be float32"),
        (lambda p: replace(p, probe=p.probe[:1]), "1 probe heads and 2 records"),
        (lambda p: replace(p, probe=None), "0 probe heads and 2 records"),
        (lambda p: replace(p, probe=p.probe * float("inf")), "not finite"),
        (lambda p: replace(p, probes=[{**r, "layer": 3} for r in p.probes]), "reads layer 3"),
        (lambda p: replace(p, probes=[{"reason": ""}, {"reason": ""}]), "damaged"),
    ],
)
def test_damaged_probes_are_refused(pack: Pack, change: Any, message: str, tmp_path: Path) -> None:
    change(pack).save(tmp_path / "p.safetensors")
    with pytest.raises(ZerolayerError, match=message):
        Pack.load(tmp_path / "p.safetensors")


def test_verdicts_come_from_the_last_hidden_state_and_hooks_leave(llama: Any, pack: Pack) -> None:
    ids = torch.randint(0, 512, (2, 5), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        layers = llama(ids, output_hidden_states=True).hidden_states
        before = [len(m._forward_hooks) for m in llama.modules()]
        with Probe.attach(llama, pack) as reader:
            assert reader.triggered == [-1, 1, 0]
            llama(ids)
            with pytest.raises(ZerolayerError, match="want"):
                reader.read([(0, 0)])
            past = llama(ids[:, :-1], use_cache=True).cache
            reader.want()
            llama(ids[:, -1:], cache=past)
            got = reader.read([(1, 0), (0, 0)])
    want = oracle.decision_probe(
        layers[1][:, -1], torch.tensor([[1, 0], [0, 0]], dtype=torch.int32), pack.probe
    )
    torch.testing.assert_close(torch.tensor([g.scores for g in got]), want, rtol=1e-4, atol=1e-5)
    assert [g.verdict for g in got] == [VERDICTS[i] for i in want.argmax(-1)]
    assert [len(m._forward_hooks) for m in llama.modules()] == before


def test_event_of_a_reading_and_a_broken_hidden_state(llama: Any, pack: Pack) -> None:
    with Probe.attach(llama, pack) as reader:
        reader.want()
        reader._hidden[0] = torch.full((1, 48), float("nan"))
        [found] = reader.read([(0, 0)])
    event = found.event("One. It is so.", 5, 14).to_json()
    assert found.verdict == "unsure"
    assert event["stated"] == "It is so." and event["verdict"] == "unsure" and event["rule"] == "A"
    assert Probe.attach(llama, replace(pack, probe=None, probes=[])) is None
