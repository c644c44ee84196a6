"""Generation with decisions on a tiny random model, whose every preference is arbitrary."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from zerolayer import automaton
from zerolayer.decisions.ledger import Source
from zerolayer.engines import hf
from zerolayer.engines.hf import Answer, generate
from zerolayer.errors import ZerolayerError
from zerolayer.readings import Reading, Slot
from zerolayer.runtime.session import Session, make_plans

SLOT = Slot("payment period", "duration")
SOURCE = Source("S", "contract", None, None, "The payment period is 30 days.")


def session(tokenizer: Any, width: int, action: str, sources: list[Source]) -> Session:
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, width)
    reading = Reading("Payment", 3, "consistency", "en", SLOT)
    plans = make_plans([reading], [SLOT], sources, action=action)
    arena = automaton.compile_triggers([[SLOT.name]], vocabulary)
    return Session(arena, [0], plans, vocabulary, tokenizer)


def answer(
    model: Any, tokenizer: Any, action: str, sources: list[Source], lead: str, **options: Any
) -> tuple[Answer, Session]:
    made = session(tokenizer, model.config.vocab_size, action, sources)
    result = generate(
        model, tokenizer, "When is it due?", made, lead=lead, max_new_tokens=24, **options
    )
    return result, made


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_enforce_says_the_settled_value(llama: Any, byte_level: Any, temperature: float) -> None:
    result, _ = answer(
        llama,
        byte_level,
        "enforce",
        [SOURCE],
        "The payment period:",
        temperature=temperature,
        seed=3,
    )
    said = result.text.removeprefix("The payment period:").lstrip(" *")
    assert said.startswith(("30 days", "thirty days", "thirty (30) days")), result.text
    assert [(e.verdict, e.action) for e in result.events][:1] == [("consistent", "enforce")]


def test_enforce_on_contested_sources_names_the_conflict(llama: Any, byte_level: Any) -> None:
    other = Source("T", "letter", None, None, "The payment period is 45 days.")
    result, _ = answer(llama, byte_level, "enforce", [SOURCE, other], "The payment period:")
    assert "contested: the sources" in result.text


def test_observe_leaves_the_text_alone(llama: Any, byte_level: Any) -> None:
    lead = "The payment period is 45 days."
    plain = generate(llama, byte_level, "When is it due?", lead=lead, max_new_tokens=24)
    result, _ = answer(llama, byte_level, "observe", [SOURCE], lead)
    assert result.text == plain.text
    assert (result.events[0].verdict, result.events[0].action) == ("contradiction", "observe")


def test_repair_takes_a_contradiction_back(llama: Any, byte_level: Any) -> None:
    """Forced to say 45 days, the model is returned to the trigger and says 30 days."""
    made = session(byte_level, 512, "repair", [SOURCE])
    tokens = byte_level("The payment period is 45 days.").input_ids
    kept = None
    for token in tokens:
        kept = made.feed(token)
        if kept is not None:
            break
    assert kept is not None and made.text.startswith("The payment period")
    assert "45" not in made.text and made.overlay is not None
    assert made.decision_tokens == len(tokens) - kept
    for token in byte_level(" 30 days.").input_ids:
        logits = torch.zeros(1, 512)
        made.adjust(logits)
        assert logits[0, token] == 0
        assert made.feed(token) is None
    made.finish()
    assert [(e.verdict, e.action) for e in made.events] == [
        ("contradiction", "repair"),
        ("consistent", "repair"),
    ]


def test_repair_in_the_engine_crops_its_cache(
    llama: Any, byte_level: Any, monkeypatch: Any
) -> None:
    """A repaired answer goes on as that of a model which never took the detour."""
    detour = byte_level(" is 45 days.", add_special_tokens=False).input_ids
    script, choose = list(detour), hf._choose

    def scripted(logits: Any, temperature: float, generator: Any) -> int:
        return script.pop(0) if script else choose(logits, temperature, generator)

    monkeypatch.setattr(hf, "_choose", scripted)
    result, made = answer(llama, byte_level, "repair", [SOURCE], "The payment period")
    assert (made.events[0].verdict, made.events[0].action) == ("contradiction", "repair")
    assert 0 < result.decision_tokens <= len(detour) and "45 days" not in result.text
    kept = len(detour) - result.decision_tokens
    lead = "The payment period" + byte_level.decode(detour[:kept])
    straight, _ = answer(llama, byte_level, "enforce", [SOURCE], lead)
    assert result.tokens == straight.tokens[: len(result.tokens)]


def test_stop_ends_the_answer(llama: Any, byte_level: Any) -> None:
    result, made = answer(llama, byte_level, "stop", [SOURCE], "The payment period is 45 days.")
    assert result.finish_reason == "stopped" and "payment period" in str(made.stopped)


def test_streaming_never_takes_text_back(llama: Any, byte_level: Any) -> None:
    shown: list[str] = []
    result, _ = answer(
        llama, byte_level, "repair", [SOURCE], "The payment period", on_text=shown.append
    )
    assert "".join(shown) == result.text


def test_context_is_bounded(llama: Any, byte_level: Any) -> None:
    with pytest.raises(ZerolayerError, match="context of 256"):
        generate(llama, byte_level, "word " * 400)
