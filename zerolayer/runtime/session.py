"""One request's decisions: settled slots, the automaton's state, the overlay in force, events.

The session sees tokens and logits only; any engine that can hand it both can run decisions.
"""

from __future__ import annotations

import re
import time
from calendar import month_name
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from zerolayer import automaton, ops
from zerolayer.automaton import SENTENCE_ENDS
from zerolayer.decisions.arbitration import Settlement, settle
from zerolayer.decisions.events import DecisionEvent
from zerolayer.decisions.judge import judge
from zerolayer.decisions.ledger import Ledger, Source
from zerolayer.decisions.sentences import ends_sentence, fold, split
from zerolayer.decisions.statements import Statement, statements_of
from zerolayer.errors import ZerolayerError
from zerolayer.pack import Pack
from zerolayer.readings import Reading, Slot
from zerolayer.values import renderings

TYPED = ("duration", "money", "date", "percent", "number", "choice")
STEER_BONUS = 6.0  # nats; enough to turn a tie, not a settled preference
WRONG = ("contradiction", "contested")
MOST_MARKS = 64  # in one sentence; a list of numbers without an end must not hold memory
OPENERS = ' \t\n"“‘*_([|'  # may stand between a full stop and the sentence that follows
# What follows a value that is complete: "45 days after …", "45 days, …", but not "45 days to …".
CLOSED = re.compile(
    r"[*_)\]”\"]*(?:[。；，;]|[.,:]\s|\s+(?!(?:to|or|and|until|till|through|of)\b)[A-Za-z]{2,}"
    r"[^A-Za-z]|(?![至到或和及])[\u4e00-\u9fff])"
)


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
    overlay: Tensor | None = None  # arena, made at the first use


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
    plans = []
    for slot in slots:
        own = [r for r in readings if r.slot is not None and r.slot.name == slot.name]
        settlement = settle(slot.name, ledger, readings, question=question)
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
class Mark:
    """What is kept so that generation can return here: tokens, automaton state, sampler state.

    `plan` is that of the trigger, None in front of a value that may turn out to belong to one.
    """

    tokens: int
    state: int
    plan: Plan | None
    sampler: Tensor | None


class Session:
    """Decisions of one generated text.

    Use: `feed` every token of the answer (a lead first, if there is one), `adjust` the logits
    before each choice, `finish` at the end. `events` are in order of position.

    A repair returns to a mark: the place behind a trigger, or before a value that came first.
    Text behind the first open mark may still be taken back (`held`); marks close as soon as the
    value that follows is complete and right, and at the latest with their sentence.
    """

    def __init__(
        self,
        arena: Tensor,
        phrases: Sequence[int],
        plans: Sequence[Plan],
        vocabulary: automaton.Vocabulary,
        tokenizer: Any,
        on_event: Callable[[DecisionEvent], None] | None = None,
    ) -> None:
        """
        Args:
            arena: the pack's automaton, uint8.
            phrases: for each trigger of the automaton, the index of its plan, or −1.
            on_event: called with each event as soon as it is known, in order of position.
        """
        self.stream = automaton.Stream(arena)
        self.phrases = list(phrases)
        self.plans = list(plans)
        self.vocabulary = vocabulary
        self.tokenizer = tokenizer
        self.on_event = on_event
        self.generator: torch.Generator | None = None  # the engine's; a repair sets it back
        self.slots = tuple(p.slot for p in self.plans)
        # The first word of each Latin name, without its last letter, which the plural changes.
        names = [fold(n) for s in self.slots for n in (s.name, *s.also)]
        self.keys = {
            re.split(r"[\s_-]", n.strip(), maxsplit=1)[0][:-1] for n in names if n.isascii()
        }
        self.repairs = any(p.action == "repair" for p in self.plans)
        self.sets = automaton.event_sets(arena)
        self.overlay: automaton.Stream | None = None  # the one in force
        self.valued = False  # a value has begun since the overlay was laid
        self.tokens: list[int] = []
        self._text: str | None = ""
        self.read_to = 0  # the text before this offset has been read for statements
        self.spoken: int | None = None  # the slot that the last sentence was about
        self.ending: int | None = None  # offset behind a full stop that may end a sentence
        self.marks: list[Mark] = []  # of the unread text, in order
        self.doubtful = False  # the last mark stands before what may turn out to be no value
        self.repaired: set[str] = set()  # slots said again under enforce; they stay under it
        self.tried: set[str] = set()  # slots repaired in the unread text: once is enough
        self.acted: set[str] = set()  # slots whose text an overlay has shaped
        self.events: list[DecisionEvent] = []
        self.seconds = 0.0
        self.stopped: str | None = None
        self.decision_tokens = 0

    @property
    def text(self) -> str:
        """The answer so far; decoded when it is asked for, as most tokens ask for nothing."""
        if self._text is None:
            self._text = self._decode(len(self.tokens))
        return self._text

    @property
    def held(self) -> int:
        """Tokens that can no longer be taken back; what follows them must not be shown yet."""
        return self.marks[0].tokens if self.marks else len(self.tokens)

    def _decode(self, tokens: int) -> str:
        return str(self.tokenizer.decode(self.tokens[:tokens], skip_special_tokens=True))

    def feed(self, token: int) -> int | None:
        """Take one token of the answer.

        Returns:
            None, or the number of tokens that stay: the engine returns to that mark and
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
        if self.ending is not None:
            again = self._at_sentence_end()
            if again is not None:
                return again
        if self.doubtful:
            self._resolve_mark()
        if token in self.vocabulary.value_starts:
            self.valued = True
            if self.repairs:
                self._mark(len(self.tokens) - 1, None)
        event = self.stream.step(token)
        if event >= 0 and (self.overlay is None or not self.valued):
            plans = [self.phrases[t] for t in self.sets[event] if self.phrases[t] >= 0]
            if plans:
                self._trigger(self.plans[plans[-1]])
        self._advance_overlay(token)
        if token in self.vocabulary.sentence_ends and self.text.endswith(SENTENCE_ENDS):
            self.ending = len(self.text)
            tail = self.text[self.read_to :]
            open_ = self.overlay is not None or self._may_state(tail)
            if open_ and not tail[-2:-1].isdigit() and ends_sentence(tail):
                self.overlay = None  # a value belongs to the sentence that names its slot
                if self._must_act():
                    return self._read(len(self.text))
        elif any(mark.plan is not None for mark in self.marks):
            self._release()
        return None

    def _at_sentence_end(self) -> int | None:
        """Read the sentence before a full stop, as soon as what follows tells that it is one
        ("USD 1." may go on as "USD 1.5", "cl. " as "cl. 4")."""
        text = self.text
        if not text[self.ending :].strip(OPENERS):
            return None
        self.ending = None
        parts = split(text[self.read_to :])
        return self._read(self.read_to + parts[-1].start) if len(parts) > 1 else None

    def _trigger(self, plan: Plan) -> None:
        """A decision point: mark it, and lay the plan's overlay over the automaton."""
        if plan.action == "repair" and plan.slot.name not in self.tried:
            self._mark(len(self.tokens), plan)
        strict = plan.action == "enforce" or plan.slot.name in self.repaired
        if strict or plan.action == "steer":
            self._lay_over(plan, None if strict else STEER_BONUS)

    def _lay_over(self, plan: Plan, bonus: float | None) -> None:
        if plan.overlay is None:
            others = (*plan.slot.choices, *(month_name[1:] if plan.slot.type == "date" else ()))
            plan.overlay = automaton.compile_overlay(
                plan.texts, self.vocabulary, bonus=bonus, others=others
            )
        self.acted.add(plan.slot.name)
        self.overlay, self.valued = automaton.Stream(plan.overlay), False

    def _advance_overlay(self, token: int) -> None:
        if self.overlay is None:
            return
        self.overlay.step(token)
        if self.overlay.ended:
            self.overlay = None

    def _mark(self, tokens: int, plan: Plan | None) -> None:
        """Remember the present place; for a value (no plan) the place before its first token."""
        if plan is None and self.marks and self.marks[-1].tokens == tokens:
            return  # right behind a trigger
        if len(self.marks) == MOST_MARKS:
            return
        self.doubtful = plan is None
        sampler = self.generator.get_state() if self.generator is not None else None
        self.marks.append(Mark(tokens, self.stream.place, plan, sampler))

    def _resolve_mark(self) -> None:
        """Drop the last mark where no value began after all (" ten" went on as " tenant")."""
        begun = self.tokens[self.marks[-1].tokens :] if self.marks else []
        value = automaton.begins_value(str(self.tokenizer.decode(begun)))
        if value is False:
            self.marks.pop()
        self.doubtful = value is None

    def adjust(self, logits: Tensor) -> None:
        """Add the bias of the overlay in force to logits [1, V], in place."""
        if self.overlay is None:
            return
        began = time.perf_counter()
        ops.apply_decisions(logits, self.overlay.state, self.stream.arena, self.overlay.arena)
        self.seconds += time.perf_counter() - began

    def finish(self) -> int | None:
        """Read what is left; like `feed`, it may ask to return to a mark."""
        began = time.perf_counter()
        again = self._read(len(self.text))
        self.seconds += time.perf_counter() - began
        return again

    def _may_state(self, text: str) -> bool:
        """False where no slot's name can be in the text and no "it" can mean one: most sentences,
        which need not be read then."""
        if self.spoken is not None or not text.isascii():
            return True
        lowered = text.lower()
        return any(key in lowered for key in self.keys)

    def _statements(self, end: int) -> tuple[list[tuple[Statement, str]], int | None]:
        """Statements of the unread text up to `end`, each with its sentence, and the slot that a
        following "it" would mean."""
        tail, spoken = self.text[self.read_to : end], self.spoken
        if not self._may_state(tail):
            return [], None
        found = []
        for part in split(tail):
            said, spoken = statements_of(tail, part, self.slots, spoken)
            found += [
                (
                    replace(s, start=s.start + self.read_to, end=s.end + self.read_to),
                    tail[part.start : part.end],
                )
                for s in said
            ]
        return sorted(found, key=lambda pair: pair[0].start), spoken

    def _must_act(self) -> bool:
        """Whether the unread text has what a rule wants to be repaired or stopped."""
        strict = [p.slot.name for p in self.plans if p.action in ("repair", "stop")]
        found = self._statements(len(self.text))[0] if strict else []
        return any(said.slot in strict and self._judge(said, s)[1] in WRONG for said, s in found)

    def _judge(self, said: Statement, sentence: str) -> tuple[Plan, str, str]:
        plan = next(p for p in self.plans if p.slot.name == said.slot)
        return plan, *judge(said.value, plan.settlement, plan.readings, sentence)

    def _release(self) -> None:
        """Close the marks where a value is complete and right: it need not be held any longer."""
        if self.marks[-1].tokens >= len(self.tokens) - 1:
            return
        found, _ = self._statements(len(self.text))
        for said, sentence in found:
            if self._judge(said, sentence)[1] in WRONG or not CLOSED.match(self.text, said.end):
                return
        if found:
            end = found[-1][0].end
            self.marks = [m for m in self.marks if len(self._decode(m.tokens)) >= end]
            self.doubtful = self.doubtful and bool(self.marks)

    def _read(self, end: int) -> int | None:
        """Read what was completed since the last call, up to the offset `end`."""
        began = time.perf_counter()
        found, spoken = self._statements(end)
        fresh = []
        for said, sentence in found:
            plan, verdict, reason = self._judge(said, sentence)
            action = plan.action if plan.slot.name in self.acted else "observe"
            if verdict in WRONG and plan.action == "repair" and plan.slot.name not in self.tried:
                mark = self._mark_of(said)
                if mark is not None:
                    self._record(plan, said, verdict, reason, "repair", began)
                    return self._return_to(mark, plan)
            if verdict in WRONG and plan.action == "stop":
                self.stopped = f"{plan.slot.name}: {reason}"
                action = "stop"
            fresh.append((plan, said, verdict, reason, action))
        for plan, said, verdict, reason, action in fresh:
            self._record(plan, said, verdict, reason, action, began)
        self.read_to, self.spoken = end, spoken
        self.marks.clear()
        self.doubtful = False
        self.tried.clear()
        self.overlay = None
        return None

    def _record(
        self, plan: Plan, said: Statement, verdict: str, reason: str, action: str, began: float
    ) -> None:
        event = DecisionEvent(
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
        self.events.append(event)
        if self.on_event is not None:
            self.on_event(event)

    def _mark_of(self, said: Statement) -> Mark | None:
        """Where to return to: behind the slot's own trigger, else before the value itself."""
        before = [m for m in self.marks if len(self._decode(m.tokens)) <= said.start]
        own = [m for m in before if m.plan is not None and m.plan.slot.name == said.slot]
        # A value may stand right behind another slot's trigger, which has marked the place.
        found = own or before
        return found[-1] if found else None

    def _return_to(self, mark: Mark, plan: Plan) -> int:
        """Drop what was said behind a mark; the engine crops its cache alike."""
        self.repaired.add(plan.slot.name)
        self.tried.add(plan.slot.name)
        self.decision_tokens += len(self.tokens) - mark.tokens
        self.tokens = self.tokens[: mark.tokens]
        self._text = None
        self.stream.place = mark.state
        self.ending = None
        self.marks, self.doubtful = [m for m in self.marks if m.tokens < mark.tokens], False
        if self.generator is not None and mark.sampler is not None:
            self.generator.set_state(mark.sampler)
        self._lay_over(plan, None)
        if mark.plan is not None:
            # The event came with the first byte behind the trigger, so the last token holds it.
            self._advance_overlay(self.tokens[-1])
        return mark.tokens


class Runtime:
    """A pack made ready for one model's tokenizer; the sessions of requests come from here."""

    def __init__(self, pack: Pack, model: Any, tokenizer: Any) -> None:
        """
        Raises:
            ZerolayerError: the pack was built for another tokenizer.
        """
        self.vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
        if self.vocabulary.fingerprint() != pack.tokenizer:
            raise ZerolayerError(
                "pack was built for another tokenizer (their tokens' bytes differ); "
                "build it again with this model"
            )
        arena = pack.automaton
        if arena is None:
            arena = automaton.compile_triggers([], self.vocabulary)
        self.pack, self.tokenizer, self.arena = pack, tokenizer, arena

    def session(
        self,
        sources: Sequence[Source],
        question: str | None = None,
        on_event: Callable[[DecisionEvent], None] | None = None,
    ) -> Session:
        """The session of one request: every slot settled against its sources."""
        plans = make_plans(self.pack.readings, self.pack.slots, sources, question)
        return self.session_of(plans, on_event)

    def session_of(
        self, plans: Sequence[Plan], on_event: Callable[[DecisionEvent], None] | None = None
    ) -> Session:
        """A session with plans that are settled already."""
        index = {p.slot.name: i for i, p in enumerate(plans)}
        phrases = [index.get(t.get("slot", ""), -1) for t in self.pack.triggers]
        return Session(self.arena, phrases, plans, self.vocabulary, self.tokenizer, on_event)
