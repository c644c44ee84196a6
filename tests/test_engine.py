"""Generation with decisions on a tiny random model, whose every preference is arbitrary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LogitsProcessor, NoRepeatNGramLogitsProcessor

from zerolayer import automaton
from zerolayer.decisions.events import DecisionEvent
from zerolayer.decisions.ledger import Source
from zerolayer.engines.hf import Answer, Sampling, generate, generate_batch, observe
from zerolayer.errors import ZerolayerError
from zerolayer.readings import Reading, Slot
from zerolayer.runtime.session import Session, make_plans

PERIOD = Slot("payment period", "duration")
NOTICE = Slot("notice period", "duration")
SOURCE = Source(
    "S", "contract", None, None, "The payment period is 30 days. The notice period is 60 days."
)
OTHER = Source("T", "letter", None, None, "The payment period is 45 days.")
PROMPT = "When is it due?"


def session(tokenizer: Any, action: str, sources: Sequence[Source] = (SOURCE,)) -> Session:
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, 512)
    slots = [PERIOD, NOTICE]
    readings = [Reading(s.name, 3, "consistency", "en", s) for s in slots]
    plans = make_plans(readings, slots, sources, action=action)
    arena = automaton.compile_triggers([[s.name] for s in slots], vocabulary)
    return Session(arena, [0, 1], plans, vocabulary, tokenizer)


class Script(LogitsProcessor):  # type: ignore[no-untyped-call]
    """Makes the model say given tokens at given places of the answer, whatever it prefers.

    After a repair the place is reached again, and then the model is left alone.
    """

    def __init__(self, start: int, tokens: Sequence[int]) -> None:
        self.start, self.left = start, dict(enumerate(tokens))

    def __call__(self, ids: Tensor, logits: Tensor) -> Tensor:
        wanted = self.left.pop(ids.shape[1] - self.start, None)
        if wanted is not None:
            logits = logits.clone()
            logits[:, wanted] = logits.max() + 1000
        return logits


def says(tokenizer: Any, text: str, lead: str = "", prompt: str = PROMPT) -> Script:
    """A script for an answer that begins with `lead` and goes on with `text`."""
    start = len(tokenizer(prompt).input_ids) + len(ids(tokenizer, lead))
    return Script(start, ids(tokenizer, text))


def ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def scripted(
    model: Any,
    tokenizer: Any,
    action: str,
    text: str,
    lead: str = "",
    max_new_tokens: int = 40,
    temperature: float = 0.0,
    **options: Any,
) -> tuple[Answer, Session]:
    made = session(tokenizer, action)
    sampling = Sampling(temperature, seed=3, processors=(says(tokenizer, text, lead),))
    result = generate(model, tokenizer, PROMPT, made, lead, max_new_tokens, sampling, **options)
    return result, made


def kinds(answer: Answer) -> list[tuple[str, str, str]]:
    return [(e.slot, e.verdict, e.action) for e in answer.events]


SAMPLINGS = [
    Sampling(),
    Sampling(1.5, seed=3),
    Sampling(0.8, top_k=5, top_p=0.9, repetition_penalty=1.3, seed=1),
    Sampling(processors=(NoRepeatNGramLogitsProcessor(3),)),
]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_enforce_says_the_settled_value(llama: Any, byte_level: Any, sampling: Sampling) -> None:
    lead = "The payment period:"
    made = session(byte_level, "enforce")
    result = generate(llama, byte_level, PROMPT, made, lead, 24, sampling)
    said = result.text.removeprefix(lead).lstrip(" *")
    assert said.startswith(("30 days", "thirty days", "thirty (30) days")), result.text
    assert kinds(result)[:1] == [("payment period", "consistent", "enforce")]


def test_enforce_and_a_processor_that_forbids_the_value_stop(llama: Any, byte_level: Any) -> None:
    class OnlyW(LogitsProcessor):  # type: ignore[no-untyped-call]
        def __call__(self, given: Tensor, logits: Tensor) -> Tensor:
            (allowed,) = ids(byte_level, "w")
            return torch.full_like(logits, -torch.inf).index_fill(1, torch.tensor([allowed]), 0.0)

    made = session(byte_level, "enforce")
    sampling = Sampling(processors=(OnlyW(),))
    result = generate(llama, byte_level, PROMPT, made, "The payment period:", 24, sampling)
    assert result.finish_reason == "stopped" and "no token" in str(result.stopped)


def test_enforce_on_contested_sources_names_the_conflict(llama: Any, byte_level: Any) -> None:
    made = session(byte_level, "enforce", [SOURCE, OTHER])
    result = generate(llama, byte_level, PROMPT, made, "The payment period:")
    assert "contested: the sources" in result.text


def test_enforce_holds_for_its_own_sentence_and_slot(byte_level: Any) -> None:
    made = session(byte_level, "enforce")
    feed(made, "The payment period depends. A letter of 45 days ago says so.")
    assert made.overlay is None, "the sentence has ended"
    feed(made, " The payment period and the notice period is")
    logits = torch.zeros(1, 512)
    made.adjust(logits)
    allowed = {byte_level.decode([i]) for i in range(480) if logits[0, i] == 0}
    assert " 6" in allowed or (" " in allowed and " 3" not in allowed)
    assert feed(made, " 60 days.") is None and made.finish() is None
    assert [(e.slot, e.verdict) for e in made.events] == [("notice period", "consistent")]


def test_a_decimal_point_ends_no_sentence(byte_level: Any) -> None:
    cap = Slot("liability cap", "money")
    source = Source("S", "contract", None, None, "The liability cap is USD 1.5 million.")
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level, 512)
    plans = make_plans([], [cap], [source], action="repair")
    arena = automaton.compile_triggers([[cap.name]], vocabulary)
    made = Session(arena, [0], plans, vocabulary, byte_level)
    assert feed(made, "The liability cap is USD 1.5 million. It is fair.") is None
    made.finish()
    assert [e.verdict for e in made.events] == ["consistent"]
    made = Session(arena, [0], plans, vocabulary, byte_level)
    assert feed(made, "The liability cap is USD 1.") is None, "it may go on as 1.5"
    assert feed(made, "\n") is not None, "now it does not"


def test_a_sentence_inherits_the_slot_of_the_one_before(byte_level: Any) -> None:
    made = session(byte_level, "observe")
    feed(made, "What about the payment period? It is 45 days.")
    made.finish()
    assert [(e.slot, e.verdict) for e in made.events] == [("payment period", "contradiction")]


def feed(made: Session, text: str) -> int | None:
    """Feed tokens until a repair is asked for."""
    for token in ids(made.tokenizer, text):
        kept = made.feed(token)
        if kept is not None:
            return kept
    return None


def test_observe_leaves_the_text_alone(llama: Any, byte_level: Any) -> None:
    lead = "The payment period is 45 days."
    plain = generate(llama, byte_level, PROMPT, lead=lead, max_new_tokens=24)
    result = generate(llama, byte_level, PROMPT, session(byte_level, "observe"), lead, 24)
    assert result.tokens == plain.tokens
    assert kinds(result)[0] == ("payment period", "contradiction", "observe")


def test_steer_gives_a_bonus_to_the_settled_value(byte_level: Any) -> None:
    made = session(byte_level, "steer")
    feed(made, "The payment period is")
    logits = torch.zeros(1, 512)
    made.adjust(logits)
    favoured = [byte_level.decode([i]) for i in range(480) if logits[0, i] > 0]
    assert favoured and all(" thirty days".startswith(t) or " 30" in t for t in favoured)
    assert logits.min() == 0


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("family", ["llama", "gemma"])
def test_repair_goes_on_as_if_the_detour_had_not_been(
    byte_level: Any, family: str, temperature: float, request: Any
) -> None:
    """Cache, automaton and sampler return: the rest equals a run enforced from the trigger on.
    The window of Gemma's layers is shorter than the detour's place."""
    model = request.getfixturevalue(family)
    lead = "The payment period"
    result, _ = scripted(model, byte_level, "repair", " is 45 days.", lead, 24, temperature)
    assert kinds(result)[0] == ("payment period", "contradiction", "repair")
    assert "45 days" not in result.text and result.decision_tokens > 0
    kept = len(ids(byte_level, " is 45 days.")) - result.decision_tokens
    begun = byte_level.decode(
        ids(byte_level, lead + " is 45 days.")[: len(ids(byte_level, lead)) + kept]
    )
    straight = session(byte_level, "enforce")
    # The same draws: the sampler has been used for the tokens that stayed.
    sampling = Sampling(
        temperature,
        seed=3,
        processors=(says(byte_level, " is 45 days."[: len(begun) - len(lead)], lead),),
    )
    other = generate(model, byte_level, PROMPT, straight, lead, 24, sampling)
    assert result.tokens == other.tokens[: len(result.tokens)]


@pytest.mark.parametrize(
    "text",
    [
        "The payment period is 45 days.",
        "The payment period is 45 days\n\n",
        "A payment period of 45 days holds.",
        "45 days is the payment period.",
        "The notice period is 60 days and the payment period is 45 days.",
        "The payment period is 45 days and the notice period is 90 days.",
        "The payment period is 30 days. No, the payment period is 45 days.",
        "What about the payment period? It is 45 days.",
    ],
)
def test_repair_leaves_no_contradiction(byte_level: Any, llama: Any, text: str) -> None:
    result, made = scripted(llama, byte_level, "repair", text, max_new_tokens=60)
    events = [e for e in result.events if e.action != "repair" or e.verdict == "consistent"]
    assert not [e for e in events if e.verdict == "contradiction"], result.text
    assert any(e.action == "repair" and e.verdict == "contradiction" for e in result.events)
    assert made.decision_tokens < 60


def test_a_right_answer_is_not_repaired(byte_level: Any, llama: Any) -> None:
    text = "30 days is the payment period, and the notice period is not 45 days but 60 days."
    result, _ = scripted(llama, byte_level, "repair", text, max_new_tokens=60)
    assert result.text.startswith(text) and result.decision_tokens == 0


def test_repair_at_the_limit_shows_nothing_wrong(byte_level: Any, llama: Any) -> None:
    text = " is 45 days"
    limit = len(ids(byte_level, text))
    result, _ = scripted(llama, byte_level, "repair", text, "The payment period", limit)
    assert "45" not in result.text and result.finish_reason == "length"


def test_a_stop_text_is_read_before_the_answer_ends(byte_level: Any, llama: Any) -> None:
    result, _ = scripted(
        llama, byte_level, "repair", " is 45 days;", "The payment period", stop=(";",)
    )
    assert "45" not in result.text and result.decision_tokens > 0


@pytest.mark.parametrize("stop", ["END", "rent is", " 30", "s from re"])
def test_a_stop_text_is_never_shown(byte_level: Any, llama: Any, stop: str) -> None:
    """It may begin and end within tokens; neither it nor a beginning of it reaches the stream."""
    text = "The notice period is 60 days from receipt. The rent is 30 EN ENDED"
    sampling = Sampling(processors=(says(byte_level, text),))
    shown: list[str] = []
    result = generate(
        llama, byte_level, PROMPT, None, "", 60, sampling, stop=(stop, "\0"), on_text=shown.append
    )
    assert "".join(shown) == result.text == text[: text.index(stop)]
    assert len(shown) > 5, "and the rest is not held back"
    assert result.finish_reason == "end"


def test_stop_ends_the_answer(llama: Any, byte_level: Any) -> None:
    made = session(byte_level, "stop")
    result = generate(llama, byte_level, PROMPT, made, "The payment period is 45 days.")
    assert result.finish_reason == "stopped" and "payment period" in str(result.stopped)
    result, _ = scripted(llama, byte_level, "stop", "The payment period is 45 days.")
    assert result.finish_reason == "stopped" and result.text.endswith("days.")


@pytest.mark.parametrize(
    "text",
    [
        "The payment period is 45 days. Thanks.",
        "The payment period is 30 days after receipt of it. Thanks.",
        "45 days is the payment period.",
        "付款。The payment period is 45 days.",
    ],
)
def test_streaming_never_takes_text_back(llama: Any, byte_level: Any, text: str) -> None:
    shown: list[str] = []
    told: list[tuple[int, DecisionEvent]] = []
    made = session(byte_level, "repair")
    made.on_event = lambda event: told.append((len("".join(shown)), event))
    sampling = Sampling(processors=(says(byte_level, text),))
    result = generate(llama, byte_level, PROMPT, made, "", 60, sampling, on_text=shown.append)
    assert "".join(shown) == result.text
    assert [event for _, event in told] == result.events
    taken_back = [(n, e) for n, e in told if (e.verdict, e.action) == ("contradiction", "repair")]
    assert all(n <= e.start for n, e in taken_back)


def test_text_is_held_from_the_trigger_to_the_end_of_a_right_value(byte_level: Any) -> None:
    made = session(byte_level, "repair")
    held = []
    for token in ids(byte_level, "Under it the payment period is 30 days after receipt of it"):
        made.feed(token)
        held.append((made.text, byte_level.decode(made.tokens[: made.held])))
    for text, free in held:
        if "payment period " not in text or "30 days after " in text:
            # The last letters may be held until they are known to begin no value ("U", "USD").
            assert (text.startswith(free) and text[len(free) :].strip().isalpha()) or free == text
        else:
            assert free.startswith("Under it the payment period") and "30" not in free
    made = session(byte_level, "repair")
    feed(made, "Under it the payment period is 45 days after receipt of it")
    assert "45" not in byte_level.decode(made.tokens[: made.held]), "it will be taken back"


Batch = Callable[[Any], list[Session | None]]


@pytest.mark.parametrize("family", ["llama", "gemma"])
@pytest.mark.parametrize("temperature", [0.0, 1.2])
def test_a_batch_gives_each_row_what_it_gets_alone(
    byte_level: Any, family: str, temperature: float, request: Any
) -> None:
    """Left padding, rows that end early, and repairs in some rows change nothing in the others."""
    model = request.getfixturevalue(family).double()  # rounding must not turn a choice
    prompts = ["When?", PROMPT, "When is it due, and for how long does it run?", "Why?"]
    actions = ["repair", "enforce", "repair", "observe"]
    texts = ["The payment period is 45 days.", "", "So the notice period is 45 days.", "Due."]
    leads = ["", "The payment period is", "", "The"]

    class Scripts(LogitsProcessor):  # type: ignore[no-untyped-call]
        """Each row's script, found by its prompt."""

        def __init__(self) -> None:
            self.scripts = [
                says(byte_level, t, le, p) for p, t, le in zip(prompts, texts, leads, strict=True)
            ]
            self.starts = [ids(byte_level, p) for p in prompts]

        def __call__(self, given: Tensor, logits: Tensor) -> Tensor:
            row = given[0].tolist()
            at = max(
                (i for i, s in enumerate(self.starts) if row[: len(s)] == s),
                key=lambda i: len(self.starts[i]),
            )
            return self.scripts[at](given, logits)

    def run(rows: Sequence[int]) -> list[Answer]:
        # Each row keeps the seed that it has in the whole batch.
        return generate_batch(
            model,
            byte_level,
            [prompts[i] for i in rows],
            [session(byte_level, actions[i]) for i in rows],
            [leads[i] for i in rows],
            32,
            Sampling(
                temperature, seed=7 + (rows[0] if len(rows) == 1 else 0), processors=(Scripts(),)
            ),
        )

    together = run(range(4))
    alone = [run([i])[0] for i in range(4)]
    assert [a.text for a in together] == [a.text for a in alone]
    assert [kinds(a) for a in together] == [kinds(a) for a in alone]
    assert together[0].decision_tokens > 0 and together[2].decision_tokens > 0


def test_without_sessions_it_is_transformers_own_generation(llama: Any, byte_level: Any) -> None:
    model, prompts = llama.double(), [PROMPT, "When?", "For how long does the notice run?"]
    ours = generate_batch(model, byte_level, prompts, max_new_tokens=16)
    for prompt, answer in zip(prompts, ours, strict=True):
        given = torch.tensor([ids(byte_level, prompt)])
        made = model.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=16, do_sample=False
        )
        rest = made[0, given.shape[1] :].tolist()
        assert answer.tokens == [t for t in rest if t != byte_level.eos_token_id]


def test_beams_and_assistants_are_observed(llama: Any, byte_level: Any) -> None:
    for options in ({"num_beams": 3}, {"assistant_model": llama}):
        made = session(byte_level, "observe")
        lead = "The payment period is 45 days."
        result = observe(llama, byte_level, PROMPT, made, lead, 12, do_sample=False, **options)
        assert kinds(result)[0] == ("payment period", "contradiction", "observe")
        start = byte_level(PROMPT).input_ids + ids(byte_level, lead)
        plain = llama.generate(
            torch.tensor([start]),
            attention_mask=torch.ones(1, len(start), dtype=torch.long),
            max_new_tokens=12,
            do_sample=False,
            **options,
        )
        assert byte_level(PROMPT).input_ids + result.tokens == plain[0].tolist()
    for action in ("steer", "enforce", "repair", "stop"):
        with pytest.raises(ZerolayerError, match=f"action {action}.*only be observed"):
            observe(llama, byte_level, PROMPT, session(byte_level, action), num_beams=2)


def test_wrong_use_is_said(llama: Any, byte_level: Any) -> None:
    with pytest.raises(ZerolayerError, match="context of 256"):
        generate(llama, byte_level, "word " * 400)
    with pytest.raises(ZerolayerError, match="prompt 0 is empty"):
        generate(llama, byte_level, "")
    with pytest.raises(ZerolayerError, match="2 prompts, 1 sessions"):
        generate_batch(llama, byte_level, ["a", "b"], [None])
