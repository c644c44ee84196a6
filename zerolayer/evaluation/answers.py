"""conflicts: a model answers, and the value that it states is read and compared.

All arms share one prompt format and one lead ("The payment term is"), so that they differ in what
they are asked to differ in: the rule in the prompt, the anchors, the decision machine. The arm
`sources` of conflicts needs no model: it is what ledger and arbitration settle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ska_builder.language import read_norms
from ska_builder.rules import triggers_of
from zerolayer import automaton
from zerolayer.attach import attach
from zerolayer.decisions.arbitration import settle
from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.decisions.machine import CONTESTED, read_slot
from zerolayer.engines.hf import chat_prompt, generate
from zerolayer.evaluation.stats import cluster_interval
from zerolayer.pack import Pack
from zerolayer.readings import Reading, Slot
from zerolayer.runtime.session import Session, language_of, make_plans
from zerolayer.values import Value, same, value_from_json

ARMS = ("base", "prompt", "anchors", "decisions", "all", "sources")
Item = dict[str, Any]
MAX_NEW_TOKENS = 28
ENDS = ("\n", ". ", "。")


def source_block(sources: Sequence[Source]) -> str:
    """The sources as they stand in a prompt."""
    blocks = []
    for s in sources:
        dated = f", {s.date}" if s.date else ""
        ranked = f", rank {s.rank}" if s.rank is not None else ""
        blocks.append(f"[{s.id}: {s.kind}{dated}{ranked}]\n{s.text}")
    return "\n\n".join(blocks)


def lead(slot: Slot) -> str:
    """The beginning of the answer, the same in every arm."""
    return f"{slot.name}是" if language_of(slot.name) == "zh" else f"The {slot.name} is"


def question_prompt(rules: Sequence[str], material: str, question: str) -> str:
    """What the user asks; without rules the arm sees the material and the question alone."""
    head = "\n".join(f"Rule: {r}" for r in rules)
    return "\n\n".join(part for part in (head, material, question) if part)


class Runner:
    """Answers questions in one arm; keeps the vocabulary and compiled triggers between items."""

    def __init__(self, model: Any, tokenizer: Any, arm: str, pack: Pack | None) -> None:
        self.model, self.tokenizer, self.arm, self.pack = model, tokenizer, arm, pack
        self.vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
        self.decides = arm in ("decisions", "all")
        self.shows_rules = arm in ("prompt", "all")

    def answer(
        self,
        rules: Sequence[str],
        readings: Sequence[Reading],
        sources: Sequence[Source],
        question: str,
        slot: Slot,
        slots: Sequence[Slot],
    ) -> str:
        """The answer's text, lead included."""
        text = question_prompt(rules if self.shows_rules else (), source_block(sources), question)
        session = None
        if self.decides:
            plans = make_plans(readings, slots, sources, question, action="enforce")
            triggers = triggers_of([], slots)
            arena = automaton.compile_triggers([t["phrases"] for t in triggers], self.vocabulary)
            session = Session(arena, range(len(slots)), plans, self.vocabulary, self.tokenizer)
        answer = generate(
            self.model,
            self.tokenizer,
            chat_prompt(self.tokenizer, text),
            session,
            lead=lead(slot),
            max_new_tokens=MAX_NEW_TOKENS,
            stop=ENDS,
        )
        return answer.text


def _attached(model: Any, arm: str, pack: Pack | None) -> Any:
    return attach(model, pack) if pack is not None and arm in ("anchors", "all") else nullcontext()


def conflicts(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    arms: Sequence[str],
    pack: Pack | None = None,
    advance: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """FER of each arm on the items of conflicts.jsonl, with the withheld ones apart."""
    result: dict[str, Any] = {}
    for arm in arms:
        if arm == "sources":
            settled = [_one_conflict(None, item, pack) for item in items]
            result[arm] = _fer(items, settled)
            if advance:
                advance(len(items))
            continue
        runner = Runner(model, tokenizer, arm, pack)
        outcomes: list[dict[str, Any]] = []
        with _attached(model, arm, pack):
            for item in items:
                outcomes.append(_one_conflict(runner, item, pack))
                if advance:
                    advance(1)
        result[arm] = _fer(items, outcomes)
    return result


def _one_conflict(runner: Runner | None, item: Item, pack: Pack | None) -> dict[str, Any]:
    """Outcome of one item; without a runner, that of the sources alone."""
    slot = Slot.from_json({"also": [], **item["slot"]})
    sources = [Source.from_json(s) for s in item["sources"]]
    readings = list(pack.readings) if pack and pack.readings else read_norms(item["rules"])
    if runner is None:
        text, stated = _settled(readings, sources, item["question"], slot)
    else:
        text = runner.answer(item["rules"], readings, sources, item["question"], slot, [slot])
        stated = read_slot(text, slot, item["question"])
    expected = item["expected"]["value"]
    if expected == "contested":
        right, withheld = CONTESTED in stated, not stated
    else:
        gold = value_from_json(slot.type, expected)
        withheld = not stated or CONTESTED in stated
        right = bool(stated) and all(v is not CONTESTED and same(v, gold) for v in stated)
    wrong = [value_from_json(slot.type, w) for w in item["wrong_values"] if _fits(slot.type, w)]
    named = any(v is not CONTESTED and same(v, w) for v in stated for w in wrong)
    return {
        "right": right,
        "withheld": withheld and not right,
        "in_wrong_values": named and not right,
        "text": text,
    }


def _settled(
    readings: Sequence[Reading], sources: Sequence[Source], question: str, slot: Slot
) -> tuple[str, list[Value]]:
    """What ledger and arbitration settle, in the form in which an answer is read."""
    ledger = Ledger.from_sources(sources, [slot], question)
    precedence = [r for r in readings if r.kind == "precedence"]
    found = settle(slot.name, ledger, precedence, question)
    if found.status == "contested":
        return found.reason, [CONTESTED]
    return found.reason, [] if found.value is None else [found.value]


def _fits(kind: str, data: Any) -> bool:
    try:
        value_from_json(kind, data)
    except ValueError:
        return False
    return True


def _fer(items: Sequence[Item], outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    wrong = [0.0 if o["right"] else 1.0 for o in outcomes]
    answered = [w for w, o in zip(wrong, outcomes, strict=True) if not o["withheld"]]
    figures: dict[str, Any] = {
        "n": len(items),
        "fer": round(sum(wrong) / len(wrong), 4),
        "ci95": cluster_interval(wrong, [i["template"] for i in items]),
        "fer_without_withheld": round(sum(answered) / max(1, len(answered)), 4),
        "withheld": sum(o["withheld"] for o in outcomes),
        "in_wrong_values": sum(o["in_wrong_values"] for o in outcomes),
    }
    for key in ("language", "pattern"):
        names = sorted({i[key] for i in items if key in i})
        figures[f"by_{key}"] = {
            name: round(
                _mean(w for w, i in zip(wrong, items, strict=True) if i.get(key) == name), 4
            )
            for name in names
        }
    return figures


def _mean(values: Any) -> float:
    listed = [float(v) for v in values]
    return sum(listed) / max(1, len(listed))
