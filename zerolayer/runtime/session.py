"""One request's decisions: settled slots, the automaton's state, the overlay in force, events.

The session sees tokens and logits only; any engine that can hand it both can run decisions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from zerolayer import automaton, ops
from zerolayer.automaton import SENTENCE_ENDS
from zerolayer.decisions.arbitration import Settlement, settle
from zerolayer.decisions.events import DecisionEvent
from zerolayer.decisions.judge import judge
from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.decisions.sentences import sentence_at
from zerolayer.decisions.statements import Statement, read_statements
from zerolayer.errors import ZerolayerError
from zerolayer.pack import Pack
from zerolayer.readings import Reading, Slot
from zerolayer.values import renderings

TYPED = ("duration", "money", "date", "percent", "number", "choice")
STEER_BONUS = 6.0  # nats; enough to turn a tie, not a settled preference


@dataclass
class Plan:
    """What the machine will do where a slot is triggered."""

    slot: Slot
    rule: str
    action: str
    settlement: Settlement
    language: str
    readings: list[Reading] = field(default_factory=list)  # those of the slot, for its bounds
    texts: list[str] = field(default_factory=list)  # what may be said for the settled value
    overlay: Tensor | None = None  # made at the first use


def make_plans(
    readings: Sequence[Reading],
    slots: Sequence[Slot],
    sources: Sequence[Source],
    question: str | None = None,
    action: str | None = None,
) -> list[Plan]:
    """Settle every slot against the sources.

    Args:
        question: what is asked; decides whether a clause limited to another case counts.
        action: overrides the rules' actions (arms of an evaluation).
    """
    ledger = Ledger.from_sources(sources, slots, question=question)
    precedence = [r for r in readings if r.kind == "precedence"]
    plans = []
    for slot in slots:
        own = [r for r in readings if r.slot is not None and r.slot.name == slot.name]
        settlement = settle(slot.name, ledger, precedence, question=question)
        stated = next((r.action for r in own if r.action), None)
        plans.append(
            Plan(
                slot=slot,
                rule=own[0].rule if own else "",
                action=action or stated or ("repair" if slot.type in TYPED else "observe"),
                settlement=settlement,
                language=language_of(slot.name),
                readings=own,
            )
        )
        plans[-1].texts = _texts(plans[-1], {s.id: s for s in sources})
    return plans


def language_of(text: str) -> str:
    """zh where the text has a Chinese character, else en."""
    return "zh" if any("\u4e00" <= c <= "\u9fff" for c in text) else "en"


def _texts(plan: Plan, sources: dict[str, Source]) -> list[str]:
    """What may follow the trigger: the settled value, or that there is none."""
    found, language = plan.settlement, plan.language
    if found.status == "settled" and found.value is not None:
        return renderings(found.value, language)
    if found.status == "unsupported":
        return ["资料中没有写明"] if language == "zh" else ["not stated in the sources"]
    seen: list[str] = []
    for fact in found.facts:
        kind = sources[fact.source_id].kind if fact.source_id in sources else fact.source_id
        value = renderings(fact.value, language)[0]
        line = f"{kind}写明{value}" if language == "zh" else f"{value} in the {kind}"
        if line not in seen:
            seen.append(line)
    if language == "zh":
        return ["有争议的：资料不一致，" + "，".join(seen[:4])]
    return ["contested: the sources disagree (" + ", ".join(seen[:4]) + ")"]


@dataclass(frozen=True)
class Snapshot:
    """What is kept at a decision point so that generation can return to it."""

    tokens: int
    state: Tensor
    plan: Plan


class Session:
    """Decisions of one generated text.

    Use: `feed` every token of the answer (a lead first, if there is one), `adjust` the logits
    before each choice, `finish` at the end. `events` are in order of position.
    """

    def __init__(
        self,
        arena: Tensor,
        phrases: Sequence[int],
        plans: Sequence[Plan],
        vocabulary: automaton.Vocabulary,
        tokenizer: Any,
    ) -> None:
        """
        Args:
            arena: the pack's automaton, uint8.
            phrases: for each trigger of the automaton, the index of its plan, or −1.
        """
        self.arena = arena
        self.phrases = list(phrases)
        self.plans = list(plans)
        self.vocabulary = vocabulary
        self.tokenizer = tokenizer
        self.sets = automaton.event_sets(arena)
        self.state = torch.full((1,), automaton.start_state(arena), dtype=torch.int32)
        self.overlay: Tensor | None = None
        self.overlay_state = torch.zeros(1, dtype=torch.int32)
        self.done = b""
        self.tokens: list[int] = []
        self._text: str | None = ""
        self.read_to = 0  # the text before this offset has been read for statements
        self.unsure: int | None = None  # end of "USD 1.", which may go on as "USD 1.5"
        self.snapshots: dict[str, Snapshot] = {}  # of the slots named in the unread text
        self.forced: set[str] = set()  # slots said again under enforce after a repair
        self.acted: set[str] = set()  # slots whose text an overlay has shaped
        self.events: list[DecisionEvent] = []
        self.seconds = 0.0
        self.stopped: str | None = None
        self.decision_tokens = 0

    @property
    def text(self) -> str:
        """The answer so far; decoded when it is asked for, as most tokens ask for nothing."""
        if self._text is None:
            self._text = str(self.tokenizer.decode(self.tokens, skip_special_tokens=True))
        return self._text

    def feed(self, token: int) -> int | None:
        """Take one token of the answer.

        Returns:
            None, or the number of tokens that stay: the engine returns to that snapshot and
            generates from there (a repair).
        """
        began = time.perf_counter()
        try:
            return self._feed(token)
        finally:
            self.seconds += time.perf_counter() - began

    def _feed(self, token: int) -> int | None:
        self.tokens.append(token)
        self._text = None
        if self.unsure is not None:
            follows = self.text[self.unsure : self.unsure + 1]
            end, self.unsure = self.unsure, None
            if not follows.isdigit():
                again = self._read(end)
                if again is not None:
                    return again
        one = torch.tensor([[token]], dtype=torch.int32)
        length = torch.ones(1, dtype=torch.int32)
        event = int(ops.scan_tokens(one, length, self.state, self.arena)[0, 0])
        if self.overlay is None and event >= 0:
            plans = [self.phrases[t] for t in self.sets[event] if self.phrases[t] >= 0]
            if plans:
                self._trigger(self.plans[plans[-1]])
        self._advance_overlay(token)
        if token in self.vocabulary.sentence_ends and self.text.endswith(SENTENCE_ENDS):
            if self.text.endswith(".") and self.text[-2:-1].isdigit():
                self.unsure = len(self.text)
            else:
                return self._read(len(self.text))
        return None

    def _trigger(self, plan: Plan) -> None:
        """A decision point: keep a snapshot, and lay the plan's overlay over the automaton."""
        self.snapshots[plan.slot.name] = Snapshot(len(self.tokens), self.state.clone(), plan)
        strict = plan.action == "enforce" or plan.slot.name in self.forced
        if not strict and plan.action != "steer":
            return
        if plan.overlay is None:
            bonus = None if strict else STEER_BONUS
            plan.overlay = automaton.compile_overlay(plan.texts, self.vocabulary, bonus=bonus)
        self.acted.add(plan.slot.name)
        self.overlay = plan.overlay
        self.done = automaton.done_flags(plan.overlay)
        start = automaton.start_state(plan.overlay)
        self.overlay_state = torch.full((1,), start, dtype=torch.int32)

    def _advance_overlay(self, token: int) -> None:
        if self.overlay is None:
            return
        one, length = torch.tensor([[token]], dtype=torch.int32), torch.ones(1, dtype=torch.int32)
        ops.scan_tokens(one, length, self.overlay_state, self.arena, self.overlay)
        if self.done[int(self.overlay_state[0])]:
            self.overlay = None

    def adjust(self, logits: Tensor) -> None:
        """Add the bias of the overlay in force to logits [1, V], in place."""
        if self.overlay is None:
            return
        began = time.perf_counter()
        ops.apply_decisions(logits, self.overlay_state, self.arena, self.overlay)
        self.seconds += time.perf_counter() - began

    def finish(self) -> int | None:
        """Read what is left; like `feed`, it may ask to return to a snapshot."""
        began = time.perf_counter()
        again = self._read(len(self.text))
        self.seconds += time.perf_counter() - began
        return again

    def _read(self, end: int) -> int | None:
        """Read what was completed since the last call, up to the offset `end`.

        The whole text is read, as a sentence may speak of the slot of the one before ("It is
        …"); what stands before `read_to` has had its events and cannot be taken back.
        """
        began = time.perf_counter()
        text = self.text[:end]
        fresh = []
        for said in read_statements(text, [p.slot for p in self.plans]):
            if said.start < self.read_to:
                continue
            plan = next(p for p in self.plans if p.slot.name == said.slot)
            sentence = sentence_at(text, said.start)
            verdict, reason = judge(said.value, plan.settlement, plan.readings, sentence)
            again = (
                plan.action == "repair"
                and verdict in ("contradiction", "contested")
                and plan.slot.name not in self.forced
                and plan.slot.name in self.snapshots
            )
            if again:
                self.forced.add(plan.slot.name)
                self._record(plan, said, verdict, reason, "repair", began)
                return self._return_to(self.snapshots[plan.slot.name])
            action = plan.action if plan.slot.name in self.acted else "observe"
            if plan.action == "stop" and verdict in ("contradiction", "contested"):
                self.stopped = f"{plan.slot.name}: {reason}"
                action = "stop"
            fresh.append((plan, said, verdict, reason, action))
        for plan, said, verdict, reason, action in fresh:
            self._record(plan, said, verdict, reason, action, began)
        self.read_to = end
        self.snapshots.clear()
        self.overlay = None  # a value belongs to the sentence that names its slot
        return None

    def _record(
        self, plan: Plan, said: Statement, verdict: str, reason: str, action: str, began: float
    ) -> None:
        self.events.append(
            DecisionEvent(
                rule=plan.rule,
                slot=plan.slot.name,
                start=said.start,
                end=said.end,
                stated=said.value,
                settled=plan.settlement.value,
                verdict=verdict,
                action=action,
                sources=tuple(dict.fromkeys(f.source_id for f in plan.settlement.facts)),
                microseconds=round((time.perf_counter() - began) * 1e6),
                reason=reason,
                facts=plan.settlement.facts,
            )
        )

    def _return_to(self, snapshot: Snapshot) -> int:
        """Drop what was said after a trigger; the engine crops its cache alike."""
        self.decision_tokens += len(self.tokens) - snapshot.tokens
        self.tokens = self.tokens[: snapshot.tokens]
        self._text = None
        self.state = snapshot.state.clone()
        self.overlay = None
        self.unsure = None
        self.snapshots = {n: s for n, s in self.snapshots.items() if s.tokens < snapshot.tokens}
        self._trigger(snapshot.plan)
        self._advance_overlay(self.tokens[-1])
        return snapshot.tokens


def session_for(
    pack: Pack,
    model: Any,
    tokenizer: Any,
    sources: Sequence[Source],
    question: str | None = None,
) -> Session:
    """The session of one request with a pack.

    Raises:
        ZerolayerError: the pack was built for another tokenizer, or its automaton is damaged.
    """
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
    if vocabulary.fingerprint() != pack.tokenizer:
        raise ZerolayerError(
            "pack was built for another tokenizer (their tokens' bytes differ); "
            "build it again with this model"
        )
    plans = make_plans(pack.readings, pack.slots, sources, question)
    index = {p.slot.name: i for i, p in enumerate(plans)}
    arena = pack.automaton
    if arena is None:
        arena = automaton.compile_triggers([], vocabulary)
    automaton.validate(arena)
    phrases = [index.get(t.get("slot", ""), -1) for t in pack.triggers]
    return Session(arena, phrases, plans, vocabulary, tokenizer)
