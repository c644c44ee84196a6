"""Laws of a session, with a "model" that says what it likes wherever it is allowed to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zerolayer import automaton
from zerolayer.decisions.ledger import Source
from zerolayer.decisions.machine import DecisionMachine
from zerolayer.readings import RuleSet, Slot
from zerolayer.runtime.session import Plan, Session, make_plans

SLOTS = [Slot("payment period", "duration"), Slot("付款期限", "duration"), Slot("rent", "money")]
SOURCES = [
    Source(
        "S",
        "contract",
        None,
        None,
        "The payment period is 30 days. The rent is EUR 1,250. 付款期限为三十日。",
    )
]
# What a careless model says: right and wrong values, before and behind the names, denied, asked.
PIECES = [
    "The payment period is ",
    "30 days",
    "45 days",
    "thirty (30) days",
    " is the payment period",
    " of ",
    "付款期限为",
    "四十五日",
    "三十日",
    "The rent is ",
    "EUR 1,250",
    "EUR 1,500.50",
    ". ",
    "。",
    "\n",
    "\n\n- ",
    " and ",
    ", not ",
    "? ",
    " 1.",
    "5",
    "|",
    " **",
    "**",
    "It is ",
    " from receipt",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
LIMIT = 160
LAW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(repr=False)  # a failing example is shown with all arguments
class Ready:
    vocabulary: automaton.Vocabulary
    arena: torch.Tensor
    tokenizer: Any
    plans: dict[str, list[Plan]]


@pytest.fixture(scope="module")
def ready(byte_level: Any) -> Ready:
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level, 512)
    arena = automaton.compile_triggers([[s.name] for s in SLOTS], vocabulary)
    plans = {a: make_plans([], SLOTS, SOURCES, action=a) for a in ("repair", "enforce", "observe")}
    return Ready(vocabulary, arena, byte_level, plans)


def begin(ready: Ready, action: str) -> Session:
    slots = range(len(SLOTS))
    return Session(ready.arena, slots, ready.plans[action], ready.vocabulary, ready.tokenizer)


def say(session: Session, wanted: Sequence[int], seed: int) -> int:
    """Say the wanted tokens in turn, a random permitted one where the wanted one is forbidden.

    After a repair the same words are tried again. Returns the tokens spent.
    """
    dice = random.Random(seed)
    spent = at = 0
    while spent < LIMIT:
        if at >= len(wanted):
            kept = session.finish()
            if kept is None:
                return spent
            at = kept
            continue
        logits = torch.zeros(1, 512)
        session.adjust(logits)
        token = wanted[at]
        if logits[0, token] == -torch.inf:
            allowed = (logits[0, :453] == 0).nonzero().flatten().tolist()
            assert allowed, "no token is left"
            token = dice.choice(allowed)
        else:
            at += 1
        spent += 1
        kept = session.feed(token)
        if kept is not None:
            at = min(at, kept)
    while session.finish() is not None:  # at the limit there is nothing left to say it again
        pass
    return spent


def judged(text: str) -> list[str]:
    """The verdicts of the finished text, read without any session."""
    return [e.verdict for e in DecisionMachine(RuleSet([], SLOTS)).check(text, SOURCES)]


@LAW
@given(text=TEXTS, seed=st.integers(0, 99))
def test_repair_ends_and_leaves_no_contradiction(ready: Ready, text: str, seed: int) -> None:
    session = begin(ready, "repair")
    wanted = session.tokenizer(text, add_special_tokens=False).input_ids
    say(session, wanted, seed)
    left = [e for e in session.events if e.action != "repair" or e.verdict != "contradiction"]
    assert not [e for e in left if e.verdict == "contradiction"], session.text


@LAW
@given(text=TEXTS, seed=st.integers(0, 99))
def test_what_is_not_held_is_never_taken_back(ready: Ready, text: str, seed: int) -> None:
    session = begin(ready, "repair")
    tokens = session.tokenizer(text, add_special_tokens=False).input_ids
    free: list[int] = []
    for token in tokens:
        kept = session.feed(token)
        assert session.tokens[: len(free)] == free
        free = session.tokens[: session.held]
        if kept is not None:
            break


@LAW
@given(text=TEXTS)
def test_observing_reads_what_check_reads(ready: Ready, text: str) -> None:
    """Reading a stream sentence by sentence finds what reading the finished text finds."""
    session = begin(ready, "observe")
    for token in session.tokenizer(text, add_special_tokens=False).input_ids:
        assert session.feed(token) is None
    session.finish()
    assert [e.verdict for e in session.events] == judged(session.text)
    spans = [(e.start, e.end) for e in session.events]
    assert spans == sorted(spans)


@LAW
@given(text=TEXTS, data=st.data())
def test_events_do_not_depend_on_the_tokenization(ready: Ready, text: str, data: Any) -> None:
    vocabulary, tokenizer = ready.vocabulary, ready.tokenizer
    usual = begin(ready, "observe")
    for token in tokenizer(text, add_special_tokens=False).input_ids:
        usual.feed(token)
    usual.finish()
    other = begin(ready, "observe")
    index = {t: i for i, t in enumerate(vocabulary.token_bytes) if t}
    rest = text.encode()
    while rest:
        sizes = [n for n in range(1, min(9, len(rest)) + 1) if rest[:n] in index]
        size = data.draw(st.sampled_from(sizes))
        other.feed(index[rest[:size]])
        rest = rest[size:]
    other.finish()
    assert [(e.slot, e.start, e.end, e.verdict) for e in other.events] == [
        (e.slot, e.start, e.end, e.verdict) for e in usual.events
    ]


RIGHT = [
    "The payment period is 30 days from receipt. ",
    "The payment period is **thirty (30) days**, as agreed. ",
    "The payment period of thirty days holds; the rent is EUR 1,250. ",
    "Payment period: 30 days\n\n",
    "付款期限为30天，自发票送达时算起。",
    "付款期限是三十日。",
    "The rent: EUR 1,250.\n",
    "Nothing else is said. ",
]


@LAW
@given(texts=st.lists(st.sampled_from(RIGHT), min_size=1, max_size=5))
def test_enforce_and_repair_never_block_a_right_answer(ready: Ready, texts: list[str]) -> None:
    for action in ("enforce", "repair"):
        session = begin(ready, action)
        for token in session.tokenizer("".join(texts), add_special_tokens=False).input_ids:
            logits = torch.zeros(1, 512)
            session.adjust(logits)
            assert logits[0, token] == 0, session.text
            assert session.feed(token) is None
        assert session.finish() is None and session.decision_tokens == 0


@LAW
@given(text=TEXTS, seed=st.integers(0, 99))
def test_enforce_states_nothing_else(ready: Ready, text: str, seed: int) -> None:
    """Behind its name a slot has the settled value; a value said before it is only judged."""
    session = begin(ready, "enforce")
    say(session, session.tokenizer(text, add_special_tokens=False).input_ids, seed)
    for event in session.events:
        if event.verdict == "contradiction":
            sentence = session.text[max(0, event.start - 60) : event.start]
            name = max(sentence.rfind("payment period"), sentence.rfind("付款期限"))
            assert name == -1 or name < max(sentence.rfind(c) for c in ".。\n?|"), session.text
