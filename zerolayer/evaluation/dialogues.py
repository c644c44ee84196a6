"""dialogues: do answers keep to the policy, and to what was settled in earlier turns?

All arms see the same chat, their own earlier answers in it, and share the lead ("The copy fee is")
of each slot that the conversation takes the question to ask for. The arm `sources` needs no model:
it is what the conversation settles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ska_builder.rules import triggers_of
from zerolayer import automaton
from zerolayer.attach import attach
from zerolayer.conversation import Conversation
from zerolayer.decisions.ledger import Source
from zerolayer.decisions.machine import CONTESTED, read_slot
from zerolayer.decisions.statements import read_statements
from zerolayer.decisions.turns import Turn
from zerolayer.engines.hf import generate
from zerolayer.errors import ZerolayerError
from zerolayer.evaluation.answers import ENDS, MAX_NEW_TOKENS, lead
from zerolayer.evaluation.stats import cluster_interval
from zerolayer.pack import Pack
from zerolayer.readings import RuleSet, Slot
from zerolayer.runtime.session import Session
from zerolayer.values import Value, same, value_from_json

ARMS = ("sources", "base", "prompt", "decisions", "all")
# What the items leave unsaid and every arm with rules in its prompt is told.
RULES = {
    "en": "Every value must stay as the policy states it for the case that is asked about.",
    "zh": "每个数值须与说明中针对所问情况的规定一致。",
}
Item = dict[str, Any]


def evaluate(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    arms: Sequence[str],
    pack: Pack | None = None,
    advance: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """FER over the expected slot values of each arm, first turns against later ones.

    Args:
        model, tokenizer: None where `sources` is the only arm.
        pack: its anchors are attached in the arm `all`.
        advance: called with the number of items done since the last call.

    Raises:
        ZerolayerError: the arm `all` without a pack.
    """
    if "all" in arms and pack is None:
        raise ZerolayerError("the arm all needs anchors; give them with --pack or name other arms")
    result: dict[str, Any] = {}
    for arm in arms:
        answerer = None if arm == "sources" else _Answerer(model, tokenizer, arm)
        points: list[dict[str, Any]] = []
        silent: list[bool] = []
        with attach(model, pack) if arm == "all" and pack is not None else nullcontext():
            for item in items:
                _dialogue(item, answerer, points, silent)
                if advance:
                    advance(1)
        result[arm] = _figures(points, silent)
    return result


class _Answerer:
    """Answers turns in one arm; keeps the vocabulary between items."""

    def __init__(self, model: Any, tokenizer: Any, arm: str) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
        self.decides = arm in ("decisions", "all")
        self.shows_rules = arm in ("prompt", "all")

    def answer(self, talk: Conversation, item: Item, question: str) -> str:
        """The answer to the next turn: one sentence for each slot that it asks for."""
        plans = talk.plans(question, action="enforce")
        turn = talk.turns[-1]
        rule = f"Rule: {RULES[item['language']]}\n\n" if self.shows_rules else ""
        prompt = talk.prompt(self.tokenizer, rule + item["policy"])
        slots = [s for s in talk.rules.slots if s.name in turn.slots]
        said = []
        for begin in [lead(s) for s in slots] or [""]:
            session = None
            if self.decides:
                phrases = [t["phrases"] for t in triggers_of([], talk.rules.slots)]
                arena = automaton.compile_triggers(phrases, self.vocabulary)
                order = range(len(plans))
                session = Session(arena, order, plans, self.vocabulary, self.tokenizer)
            answer = generate(
                self.model,
                self.tokenizer,
                prompt,
                session,
                lead=begin,
                max_new_tokens=MAX_NEW_TOKENS,
                stop=ENDS,
            )
            said.append(answer.text.strip())
        return " ".join(said)


def _dialogue(
    item: Item, answerer: _Answerer | None, points: list[dict[str, Any]], silent: list[bool]
) -> None:
    """Adds a point for each expected value, and for each turn without one whether it has one."""
    slots = [Slot.from_json(s) for s in item["slots"]]
    by_name = {s.name: s for s in slots}
    policy = Source("policy", "policy", None, None, item["policy"])
    talk = Conversation(RuleSet([], slots), [policy])
    for number, turn in enumerate(item["turns"]):
        if answerer is None:
            settled = _settled(talk.ask(turn["user"]))
            read = {name: settled.get(name, []) for name in by_name}
            false = bool(settled)
        else:
            text = answerer.answer(talk, item, turn["user"])
            talk.record(text)
            read = {s.name: read_slot(text, s, turn["user"]) for s in slots}
            false = bool(read_statements(text, slots))
        if not turn["expected"]:
            silent.append(false)
        for entry in turn["expected"]:
            gold = value_from_json(by_name[entry["slot"]].type, entry["value"])
            values = [v for v in read[entry["slot"]] if v is not CONTESTED]
            right = bool(values) and all(same(v, gold) for v in values)
            points.append(
                {
                    "right": right,
                    "withheld": not values,
                    "first": number == 0,
                    "language": item["language"],
                    "template": item["template"],
                }
            )


def _settled(turn: Turn) -> dict[str, list[Value]]:
    return {d.slot: [d.value] for d in turn.decisions if d.value is not None}


def _figures(points: Sequence[dict[str, Any]], silent: Sequence[bool]) -> dict[str, Any]:
    answered = [p for p in points if not p["withheld"]]
    first = [p for p in points if p["first"]]
    later = [p for p in points if not p["first"]]
    wrong = [0.0 if p["right"] else 1.0 for p in points]
    return {
        "n": len(points),
        "fer": _fer(points),
        "ci95": cluster_interval(wrong, [p["template"] for p in points]),
        "fer_without_withheld": _fer(answered),
        "withheld": len(points) - len(answered),
        "n_first": len(first),
        "fer_first_turn": _fer(first),
        "fer_later_turns": _fer(later),
        "turns_without_value": len(silent),
        "false_statements": sum(silent),
        "by_language": {
            language: _fer([p for p in points if p["language"] == language])
            for language in sorted({p["language"] for p in points})
        },
    }


def _fer(points: Sequence[dict[str, Any]]) -> float:
    return round(sum(not p["right"] for p in points) / max(1, len(points)), 4)
