"""Conversations: ellipsis, cases, what users say, and keeping it all, on policies of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ska_builder.language import read_norms
from zerolayer.conversation import Conversation
from zerolayer.decisions.cases import clauses_of
from zerolayer.decisions.ledger import Source
from zerolayer.errors import ZerolayerError
from zerolayer.evaluation import dialogues
from zerolayer.readings import RuleSet, Slot
from zerolayer.values import same, value_from_json

BOATS = (
    "Boat hire at Lake Ember. A rowing boat has a rental price of EUR 12 an hour. For a pedal boat "
    "the rental price is EUR 18 an hour. Bookings can be changed up to a change deadline of two "
    "hours before the start. Guests leave a deposit of EUR 50; hotel guests leave a deposit of "
    "EUR 20. The kiosk sells drinks. Ducks must not be fed."
)
PRICE = Slot("rental price", "money", ("price of a boat",))
DEADLINE = Slot("change deadline", "duration", ("deadline for changes",))
DEPOSIT = Slot("deposit", "money")
DAY = Slot("arrival day", "date", ("day of arrival",))
BREAKAGE = Slot("breakage fee", "money")
SLOTS = [PRICE, DEADLINE, DEPOSIT, DAY, BREAKAGE]
TEA = (
    "山月茶馆须知。大厅的座位费为二十元，包间的座位费为80元。预订后可以取消，平日的取消时限为2小时，"
    "周末的取消时限为一天。自带茶叶的加工费为１５元。店内不能吸烟。"
)
TEA_SLOTS = [
    Slot("座位费", "money", ("茶位费",)),
    Slot("取消时限", "duration", ("取消期限",)),
    Slot("加工费", "money"),
    Slot("到店日期", "date", ("到店的日子",)),
]


def talk(policy: str = BOATS, slots: list[Slot] = SLOTS, rules: list[str] | None = None) -> Any:
    sources = [Source("policy", "policy", None, None, policy)]
    return Conversation(RuleSet(read_norms(rules or []), slots), sources)


def holds(conversation: Conversation, question: str) -> list[Any]:
    """(slot, value or status) for each slot that the question asks for."""
    return [
        (d.slot, d.value.to_json() if d.value is not None else d.status)
        for d in conversation.ask(question).decisions
    ]


def euros(amount: int, currency: str = "EUR") -> dict[str, str]:
    return {"amount": str(amount), "currency": currency}


def test_a_follow_up_inherits_the_slot_and_may_return_to_a_case() -> None:
    t = talk()
    assert holds(t, "What does a rowing boat cost?") == [("rental price", euros(12))]
    assert holds(t, "And a pedal boat?") == [("rental price", euros(18))]
    assert holds(t, "And the rowing boat again?") == [("rental price", euros(12))]


def test_chinese_follow_ups() -> None:
    t = talk(TEA, TEA_SLOTS)
    assert holds(t, "坐包间要多少钱？") == [("座位费", euros(80, "CNY"))]
    assert holds(t, "大厅的呢？") == [("座位费", euros(20, "CNY"))]
    assert holds(t, "周末最晚什么时候能取消？") == [("取消时限", {"count": "1", "unit": "day"})]
    assert holds(t, "那平日呢？") == [("取消时限", {"count": "2", "unit": "hour"})]
    assert holds(t, "听说平日是一天，对吗？") == [("取消时限", {"count": "2", "unit": "hour"})]


def test_what_users_say_of_themselves_stays() -> None:
    t = talk()
    assert holds(t, "I am staying as a hotel guest. How much is the deposit for me?") == [
        ("deposit", euros(20))
    ]
    assert holds(t, "When can I still change the booking?") == [
        ("change deadline", {"count": "2", "unit": "hour"})
    ]
    assert holds(t, "Sorry, my deposit once more?") == [("deposit", euros(20))]


def test_facts_of_the_user_keep_turn_offset_and_quote() -> None:
    t = talk()
    question = "We arrive on 5 May 2026. What does a pedal boat cost?"
    (said,) = t.ask(question).said
    assert (said.slot, said.turn, said.speaker) == ("arrival day", 1, "user")
    assert question[said.start : said.end] == "5 May 2026"
    assert said.quote == "We arrive on 5 May 2026."
    turn = t.ask("Which day of arrival did you note?")
    assert turn.decisions[0].value is not None and "turn 1" in turn.decisions[0].reason
    assert holds(t, "Oh, we arrive on 6 May 2026.") == []
    assert holds(t, "Which day of arrival do you have now?") == [("arrival day", "2026-05-06")]


def test_a_supposed_day_is_no_fact() -> None:
    assert talk().ask("If we arrive on 5 May 2026, what is the deposit?").said == ()


@pytest.mark.parametrize(
    "claim",
    ["I read 18 euros on the sign.", "You said EUR 18, right?", "But it is 18 euros, is it not?"],
)
def test_a_wrong_value_in_the_mouth_changes_nothing(claim: str) -> None:
    t = talk()
    t.ask("What does a rowing boat cost?")
    t.record("The rental price is EUR 18.")
    assert holds(t, claim) == [("rental price", euros(12))]


def test_a_slot_that_no_source_states() -> None:
    assert holds(talk(), "What is the breakage fee?") == [("breakage fee", "unsupported")]
    t = talk()
    t.ask("What is the breakage fee?")
    t.record("The breakage fee is EUR 99.")
    assert holds(t, "What was the breakage fee again?") == [("breakage fee", "unsupported")]


def test_a_follow_up_on_what_the_sources_treat_elsewhere_states_nothing() -> None:
    t = talk()
    t.ask("What does a pedal boat cost?")
    assert holds(t, "And the drinks?") == [("rental price", "unsupported")]


def test_thanks_ask_for_nothing() -> None:
    t = talk()
    t.ask("What does a pedal boat cost?")
    assert holds(t, "Thank you, goodbye.") == []


def test_two_questions_in_one_turn() -> None:
    found = dict(holds(talk(), "How much is the rental price of a pedal boat, and what is the "
                       "change deadline?"))  # fmt: skip
    assert found == {
        "rental price": euros(18),
        "change deadline": {"count": "2", "unit": "hour"},
    }


def test_an_open_case_names_all_values() -> None:
    (found,) = talk().ask("What is the rental price?").decisions
    assert found.status == "contested" and "EUR 12" in found.reason and "EUR 18" in found.reason


def test_sources_that_disagree_about_the_case_are_settled_by_the_rules() -> None:
    sources = [
        Source("A", "house rules", None, None, BOATS),
        Source("B", "notice", None, None, "For a pedal boat the rental price is EUR 21 an hour."),
    ]
    contested = Conversation(RuleSet([], SLOTS), sources)
    assert holds(contested, "How much is a pedal boat?") == [("rental price", "contested")]
    rules = read_norms(["The notice prevails over the house rules."])
    settled = Conversation(RuleSet(rules, SLOTS), sources)
    assert holds(settled, "How much is a pedal boat?") == [("rental price", euros(21))]
    assert settled.turns[0].decisions[0].facts[0].source_id == "B"


def test_a_rule_that_sets_the_value_holds_in_every_case() -> None:
    t = talk(rules=["The **deposit** must be EUR 30."])
    assert holds(t, "I am a hotel guest. How much is the deposit?") == [("deposit", euros(30))]


def test_clauses_own_their_part_of_a_sentence() -> None:
    text = "A copy fee of EUR 8 is due on paper and EUR 2 by e-mail; a deposit of EUR 5 is extra."
    slots = [Slot("copy fee", "money")]
    found = clauses_of(Source("S", "policy", None, None, text), slots)
    assert [text[c.fact.start : c.fact.end] for c in found] == ["EUR 8", "EUR 2"]
    assert "pap" in found[0].near and "email" in found[1].near
    free = "Orders over EUR 50 are free; for smaller orders the shipping fee is EUR 5."
    found = clauses_of(Source("S", "policy", None, None, free), [Slot("shipping fee", "money")])
    assert [free[c.fact.start : c.fact.end] for c in found] == ["EUR 5"]


def test_plans_carry_what_the_turn_settles() -> None:
    t = talk()
    plans = {p.slot.name: p for p in t.plans("What does a pedal boat cost?", action="enforce")}
    assert "EUR 18" in plans["rental price"].texts and plans["rental price"].action == "enforce"
    assert plans["deposit"].action == "observe"  # its case was not asked about
    t.record("The rental price is EUR 18.")
    plans = {p.slot.name: p for p in t.plans("And a rowing boat?", action="enforce")}
    assert "EUR 12" in plans["rental price"].texts


def test_going_on_after_json() -> None:
    t = talk(rules=["The notice prevails over the policy."])
    t.ask("We arrive on 5 May 2026. What does a rowing boat cost?")
    t.record("The rental price is EUR 12.")
    again = Conversation.from_json(json.loads(json.dumps(t.to_json())))
    assert again.turns == t.turns
    assert holds(again, "And a pedal boat?") == holds(t, "And a pedal boat?")
    assert holds(again, "Which day of arrival?") == [("arrival day", "2026-05-05")]


def test_damaged_or_foreign_json_is_refused(tmp_path: Path) -> None:
    t = talk()
    t.ask("What does a rowing boat cost?")
    data = t.to_json()
    with pytest.raises(ZerolayerError, match=r"version 99.*begin a new one"):
        Conversation.from_json({**data, "version": 99})
    with pytest.raises(ZerolayerError, match="version None"):
        Conversation.from_json([])
    for key in data:
        if key != "version":
            with pytest.raises(ZerolayerError, match="damaged"):
                Conversation.from_json({k: v for k, v in data.items() if k != key})
            with pytest.raises(ZerolayerError, match="damaged"):
                Conversation.from_json({**data, key: [7]})
    for wrong in ({"case_turns": [2]}, {"question": 7}, {"said": [{}]}, {"decisions": None}):
        turns = [{**data["turns"][0], **wrong}]
        with pytest.raises(ZerolayerError, match="damaged"):
            Conversation.from_json({**data, "turns": turns})
    path = tmp_path / "talk.json"
    path.write_text("{")
    with pytest.raises(ZerolayerError, match="damaged"):
        Conversation.load(path)
    t.save(path)
    assert Conversation.load(path).turns == t.turns
    assert [p.name for p in tmp_path.iterdir()] == ["talk.json"]


def test_wrong_use_is_refused() -> None:
    t = talk()
    with pytest.raises(ZerolayerError, match="empty"):
        t.ask(" ")
    with pytest.raises(ZerolayerError, match="call ask first"):
        t.record("EUR 12")
    with pytest.raises(ZerolayerError, match="no slot is called 'rent'"):
        t.settle("rent")
    with pytest.raises(ZerolayerError, match="needs slots"):
        talk(slots=[])


QUESTIONS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "What does a pedal boat cost?", "And a rowing boat?", "I am a hotel guest.",
                "We arrive on 5 May 2026.", "You said EUR 18.", "And mine?", "Thanks.", "包间呢？",
                "What was your very first figure?", "The cheaper one?",
            ]
        ),
        st.text(min_size=1, max_size=40).filter(lambda s: s.strip()),
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(QUESTIONS, st.text(max_size=40))
def test_any_conversation_survives_json_and_goes_on_alike(asked: list[str], answer: str) -> None:
    t = talk()
    for question in asked:
        t.ask(question)
        t.record(answer)
    again = Conversation.from_json(json.loads(json.dumps(t.to_json())))
    assert again.to_json() == t.to_json()
    assert holds(again, "And a pedal boat?") == holds(t, "And a pedal boat?")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=3))
def test_answers_never_change_what_holds(answers: list[str]) -> None:
    plain, told = talk(), talk()
    for answer in answers:
        for t, text in ((plain, ""), (told, answer + " The rental price is EUR 1.")):
            t.ask("What does a pedal boat cost?")
            t.record(text)
    assert holds(plain, "And a rowing boat?") == holds(told, "And a rowing boat?")


LINES = Path(__file__).with_name("conversation_dialogues.jsonl").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_dialogues(line: str) -> None:
    """Whole dialogues in wordings that no evaluation set has: every expected value is settled."""
    item = json.loads(line)
    t = talk(item["policy"], [Slot.from_json(s) for s in item["slots"]])
    kinds = {s["name"]: s["type"] for s in item["slots"]}
    for turn in item["turns"]:
        found = {d.slot: d.value for d in t.ask(turn["user"]).decisions if d.value is not None}
        for entry in turn["expected"]:
            value = found.get(entry["slot"])
            gold = value_from_json(kinds[entry["slot"]], entry["value"])
            assert value is not None and same(value, gold), turn["user"]
        assert turn["expected"] or not found, turn["user"]


def test_dialogues_set(data: Path) -> None:
    """A floor under the evaluation set, so that a change that costs much is seen."""
    from zerolayer.evaluation.stats import read_items

    figures = dialogues.evaluate(None, None, read_items(data / "eval", "dialogues"), ("sources",))
    assert figures["sources"]["fer"] <= 0.1, figures


def test_arms_that_need_a_pack_say_so() -> None:
    with pytest.raises(ZerolayerError, match="needs anchors"):
        dialogues.evaluate(None, None, [], ("all",))
