"""Conversations: what was asked, settled, said and answered, turn by turn; needs no model.

A follow-up inherits the slot and the case of the turns before it; what holds comes from the
sources, and what the user said of themselves, never from what was put into the system's mouth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zerolayer.decisions.arbitration import Settlement, settle
from zerolayer.decisions.cases import (
    FAR,
    Clause,
    best,
    clauses_of,
    extreme,
    general,
    is_chinese,
    name_terms,
    one_value,
    open_case,
    open_text,
    unsupported,
)
from zerolayer.decisions.ledger import Fact, Ledger, Source
from zerolayer.decisions.questions import (
    CONTINUES,
    EVIDENCE,
    EVIDENCE_ALONE,
    FITS,
    MISFITS,
    NAMED,
    NAMES,
    RECENT,
    RESUMES,
    SAID,
    Question,
    evidence,
    last_sentence,
    pieces,
    read_question,
)
from zerolayer.decisions.sentences import fold
from zerolayer.decisions.statements import read_statements
from zerolayer.decisions.terms import opposite, terms
from zerolayer.decisions.turns import Said, Turn
from zerolayer.errors import ZerolayerError
from zerolayer.files import read_utf8
from zerolayer.readings import HasRules, Reading, RuleSet, Slot
from zerolayer.values import find_values, renderings, same

if TYPE_CHECKING:
    from zerolayer.runtime.session import Plan

VERSION: Final = 1
MARGIN: Final = 0.25  # by how much a case must fit better than the others
_CLAUSE_ENDS: Final = re.compile(
    r"[.!?;](?=\s|$)|,\s|[。！？；，]|\b(?:and|so)\b(?= (?:how|what|when))"
)
_INTERROGATIVE: Final = re.compile(
    r"^(?:(?:and|so|but|then|well) )*(?:can|could|may|is|are|do|does|did|will|would|should|must|if|"
    r"suppose|what|how|when|where|which)\b|吗|能不能|是不是|可不可以|要是|如果|假如"
)


@dataclass
class Conversation:
    """Questions about one set of sources.

    rules: a pack, or a RuleSet where there is none. sources: the policy and other documents.
    """

    rules: HasRules
    sources: Sequence[Source]
    turns: list[Turn] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.rules.slots:
            raise ZerolayerError(
                "a conversation needs slots; name them in the rules or give them with a RuleSet"
            )
        self._slots = list(self.rules.slots)
        # Two sources with one id are refused here.
        self._known = Ledger.from_sources(self.sources, []).sources
        self._clauses: dict[str, list[Clause]] = {s.name: [] for s in self._slots}
        for source in self.sources:
            for clause in clauses_of(source, self._slots):
                self._clauses[clause.fact.slot].append(clause)
        self._words = {t for source in self.sources for t in terms(source.text)}
        self._profiles = [self._profile(slot) for slot in self._slots]

    def ask(self, question: str) -> Turn:
        """Open a turn: which slots the question asks for, and what holds for each.

        Raises:
            ZerolayerError: the question is empty.
        """
        if not question.strip():
            raise ZerolayerError("the question is empty; a turn needs one")
        turn = Turn(len(self.turns) + 1, question)
        turn.said = tuple(self._user_facts(turn))
        whole = read_question(question, self._slots)
        self.turns.append(turn)
        turn.case_turns = self._case_turns(whole)
        decisions: dict[str, Settlement] = {}
        for piece in pieces(question, self._slots):
            slot = self._slot_asked(piece)
            if slot is not None and slot.name not in decisions:
                if piece.elliptic and self._elsewhere(slot.name, piece):
                    decisions[slot.name] = unsupported(slot.name)
                else:
                    decisions[slot.name] = self.settle(slot.name)
        turn.decisions = tuple(decisions.values())
        return turn

    def record(self, answer: str) -> list[Said]:
        """Keep what was answered to the last question; the values that it states.

        They never change what holds: an answer is no source.

        Raises:
            ZerolayerError: nothing was asked yet, or the last question has its answer.
        """
        if not self.turns or self.turns[-1].answer is not None:
            raise ZerolayerError("no question waits for an answer; call ask first")
        turn = self.turns[-1]
        turn.answer = answer
        stated = [
            Said(s.slot, s.value, turn.number, "answer", s.start, s.end, answer[s.start : s.end])
            for s in read_statements(answer, self._slots)
        ]
        turn.said += tuple(stated)
        return stated

    def settle(self, slot: str) -> Settlement:
        """What holds for a slot in the case that the conversation is about now.

        Raises:
            ZerolayerError: no slot has that name.
        """
        if slot not in self._clauses:
            names = ", ".join(s.name for s in self._slots)
            raise ZerolayerError(f"no slot is called {slot!r}; the rules have {names}")
        question = self.turns[-1].question if self.turns else None
        by_rule = settle(slot, Ledger(), self.rules.readings, question)
        if by_rule.status == "settled":
            return by_rule
        clauses = self._clauses[slot]
        if not clauses:
            return self._from_user(slot)
        kept: list[Clause] = []
        left_open: list[Clause] = []
        for source in self.sources:
            own = [c for c in clauses if c.fact.source_id == source.id]
            if own:
                chosen = self._for_case(slot, own)
                kept += chosen
                if not one_value(chosen):
                    left_open += chosen
        if left_open:
            return open_case(slot, left_open)
        facts = [replace(c.fact, scope="", limited=False) for c in kept]
        found = settle(slot, Ledger(facts, self._known), self.rules.readings)
        shown = {(c.fact.start, c.fact.source_id): c.fact for c in kept}
        return replace(found, facts=tuple(shown[f.start, f.source_id] for f in found.facts))

    def plans(self, question: str, action: str | None = None) -> list[Plan]:
        """Open a turn and give its plans for a session.

        Args:
            action: overrides the rules' actions.
        """
        from zerolayer.runtime.session import make_plans

        turn = self.ask(question)
        plans = make_plans(self.rules.readings, self._slots, self.sources, question, action)
        asked = {d.slot: d for d in turn.decisions}
        for plan in plans:
            found = asked.get(plan.slot.name) or self.settle(plan.slot.name)
            plan.settlement = found
            if found.status == "settled" and found.value is not None:
                plan.texts = renderings(found.value, plan.language)
            elif found.status == "contested":
                plan.texts = [open_text(found)]
            else:
                plan.texts = [
                    "资料中没有写明" if plan.language == "zh" else "not stated in the sources"
                ]
            if plan.slot.name not in turn.slots and found.status != "settled":
                # What was not asked for has no case yet; nothing is put into the answer's mouth.
                plan.action = "observe"
        return plans

    def prompt(self, tokenizer: Any, head: str) -> str:
        """The chat up to the open turn in the model's chat format.

        Args:
            head: what stands before the first question: the sources, and rules if any.
        """
        messages: list[dict[str, str]] = []
        waiting = [head]
        for turn in self.turns:
            waiting.append(turn.question)
            if turn.answer is not None:
                messages.append({"role": "user", "content": "\n\n".join(waiting)})
                messages.append({"role": "assistant", "content": turn.answer})
                waiting = []
        if waiting:
            messages.append({"role": "user", "content": "\n\n".join(waiting)})
        if not tokenizer.chat_template:
            return "".join(f"{m['content']}\n\n" for m in messages)
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return str(text)

    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to go on, versioned; the sources' texts are in it."""
        return {
            "version": VERSION,
            "readings": [r.to_json() for r in self.rules.readings],
            "slots": [s.to_json() for s in self._slots],
            "sources": [
                {"id": s.id, "kind": s.kind, "date": s.date, "rank": s.rank, "text": s.text}
                for s in self.sources
            ],
            "turns": [t.to_json() for t in self.turns],
        }

    @classmethod
    def from_json(cls, data: Any) -> Conversation:
        """Raises ZerolayerError: another version, or damaged."""
        if not isinstance(data, dict) or data.get("version") != VERSION:
            version = data.get("version") if isinstance(data, dict) else None
            raise ZerolayerError(
                f"the conversation has version {version!r}, this zerolayer reads {VERSION}; "
                "begin a new one"
            )
        try:
            rules = RuleSet(
                [Reading.from_json(r) for r in data["readings"]],
                [Slot.from_json(s) for s in data["slots"]],
            )
            turns = [Turn.from_json(number, t) for number, t in enumerate(data["turns"], 1)]
            return cls(rules, [Source.from_json(s) for s in data["sources"]], turns)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ZerolayerError(
                f"the conversation is damaged ({type(error).__name__}: {error}); begin a new one"
            ) from error

    @classmethod
    def load(cls, path: Path) -> Conversation:
        """Raises ZerolayerError: the file cannot be read, or holds no conversation."""
        try:
            data = json.loads(read_utf8(path, "conversation"))
        except ValueError as error:
            raise ZerolayerError(
                f"conversation {path} is damaged (no JSON: {error}); begin a new one"
            ) from error
        return cls.from_json(data)

    def save(self, path: Path) -> None:
        """Write the conversation; the file that was there stays whole until the new one is."""
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps(self.to_json(), ensure_ascii=False), encoding="utf-8")
        fresh.replace(path)

    def _profile(self, slot: Slot) -> dict[str, float]:
        """What each term of the slot's names and clauses counts for the slot."""
        profile: dict[str, float] = {}
        for clause in self._clauses[slot.name]:
            profile.update({t.removeprefix("-"): FAR for t in clause.far if t not in profile})
        for clause in self._clauses[slot.name]:
            for near in (clause.shared, clause.near):
                profile.update({t.removeprefix("-"): 1.0 for t in near})
        profile.update(dict.fromkeys(name_terms(slot), NAMED))
        return profile

    def _slot_asked(self, question: Question) -> Slot | None:
        """The slot that a question is about, None where nothing ties it to one."""
        slots = self._slots
        recent = [slots.index(s) for s in self._recent_slots(self.turns[-1].number)]
        last = recent[0] if recent else None
        # "I read five days": a value that is not the user's own to state doubts the last one.
        doubted = last is not None and (question.doubts or slots[last].type in question.values)
        challenged = doubted and not self.turns[-1].said
        if not question.asks and not challenged:
            return None
        asks_anew = question.asks and question.kinds and question.words
        if challenged and (question.doubts or not asks_anew):
            question = replace(question, elliptic=True)
        found = evidence(question, slots, self._profiles)
        if question.first:
            name = slots[found.index(max(found))].name if max(found) >= SAID else None
            begun = next(
                (t for t in self.turns[:-1] if t.decisions and name in (None, *t.slots)), None
            )
            if begun is not None:
                self.turns[-1].case_turns = begun.case_turns
                return next(s for s in slots if s.name == (name or begun.slots[0]))
        stated = {s.value.type for s in self.turns[-1].said}
        wanted = question.kinds or question.values - stated
        fitting = [i for i, s in enumerate(slots) if s.type in wanted]
        denied = {opposite(t) for t in question.terms if t.startswith("-")}
        left_behind = last is not None and denied & set(name_terms(slots[last]))
        if question.elliptic and last is not None and not left_behind:
            found[last] += CONTINUES * (2 if self._names_case(slots[last], question) else 1)
            if challenged:
                for i in [i for i in recent if self._states(slots[i], question)]:
                    found[i] += NAMES * (2 if self._names_case(slots[i], question) else 1)
        elif question.refers:
            for i in [i for i in recent if i in fitting][:1]:
                # With other things named in the turn, the pronoun stands for one of them.
                if all(t in self._profiles[i] for t in question.words):
                    found[i] += RESUMES
        total = list(found)
        for i in range(len(slots)):
            if wanted:
                total[i] += FITS if i in fitting else MISFITS
            total[i] += RECENT if i == last else 0.0
        told = {s.slot for s in self.turns[-1].said}
        for i, slot in enumerate(slots):
            if slot.name in told and question.kinds != {slot.type}:
                total[i] = MISFITS  # what the user has just said is not what they ask for
        at = max(range(len(total)), key=lambda i: total[i])
        if not question.kinds and not question.elliptic:
            # "May I sublet a room?" shares a word with the slot and asks for something else.
            stray = {w for w in question.words if w not in self._profiles[at]} & self._words
            beside = question.polar and stray
            return slots[at] if found[at] >= EVIDENCE_ALONE and not beside else None
        if total[at] > 0 and found[at] >= EVIDENCE:
            return slots[at]
        # Nothing but the kind of value tells: it must leave one slot, of all, of the new ones, or
        # of those whose cases the conversation has named.
        fresh = [i for i in fitting if i not in recent]
        alike = [i for i in fresh if self._case_known(slots[i])]
        for left in (fitting, fresh, alike):
            if len(left) == 1 and question.kinds:
                slot = slots[left[0]]
                asked = read_question(last_sentence(question.text), slots)
                return None if self._elsewhere(slot.name, asked) else slot
        return None

    def _case_known(self, slot: Slot) -> bool:
        """Whether the conversation has named one of several cases of a slot."""
        clauses = self._clauses[slot.name]
        return len(clauses) > 1 and one_value(self._for_case(slot.name, clauses))

    def _states(self, slot: Slot, question: Question) -> bool:
        """Whether the sources state for the slot, in some case, a value that the turn names."""
        named = find_values(question.text, {slot.type}, slot.choices)
        clauses = self._clauses[slot.name]
        return any(same(v.value, c.fact.value) for v in named for c in clauses)

    def _names_case(self, slot: Slot, question: Question) -> bool:
        """Whether the words of a question tell the slot's cases apart."""
        clauses = self._clauses[slot.name]
        return len(best(clauses, question.terms, MARGIN)) < len(clauses)

    def _case_turns(self, question: Question) -> tuple[int, ...]:
        """Turns whose words may name the case, in the order in which they are asked.

        A follow-up goes on with the last one. A new question of the user comes back to what they
        said of themselves, as a comparison in between ("and for adults?") was not about them.
        """
        earlier = [read_question(t.question, self._slots) for t in self.turns[:-1]]
        number = self.turns[-1].number
        behind = list(range(number - 1, 0, -1))
        goes_on = question.elliptic or question.that_case or question.adopts
        if goes_on and not question.own:
            return (number, *behind)
        if question.others:
            return (number, *behind)
        own, foreign = set(), set()
        for i, turn in enumerate(earlier, 1):
            if turn.others:
                foreign.add(i)
            elif turn.states:
                own.add(i)
            if turn.adopts:
                own.add(i - 1)
        if question.own:
            behind = [i for i in behind if i not in foreign]
        return (number, *[i for i in behind if i in own], *[i for i in behind if i not in own])

    def _for_case(self, slot: str, clauses: Sequence[Clause]) -> list[Clause]:
        """The clauses of one source that speak of the case; all where that stays open."""
        open_turn = self.turns[-1] if self.turns else None
        if open_turn is None:
            return general(clauses) or list(clauses)
        question = read_question(open_turn.question, self._slots)
        if len(clauses) == 1:
            return list(clauses)
        left = list(clauses)
        for number in open_turn.case_turns:
            chosen = best(left, self._case_terms(number), MARGIN)
            if number != open_turn.number and question.otherwise and len(chosen) < len(left):
                left = [c for c in left if c not in chosen]
                break
            if number == open_turn.number and len(chosen) == len(left):
                known = self._profiles[[s.name for s in self._slots].index(slot)]
                unknown = any(t not in known for t in question.words)
                if question.contrasts and unknown and not question.otherwise:
                    break  # a case that no clause names is not the one before
            left = chosen
            if one_value(left):
                return left
        return left if len(left) < len(clauses) else general(clauses) or left

    def _case_terms(self, number: int) -> Mapping[str, float]:
        """What a turn says of the case; "the cheaper one" stands for the words of that clause."""
        question = read_question(self.turns[number - 1].question, self._slots)
        wanted = dict(question.terms)
        for kinds, high in question.extremes:
            for slot in self._recent_slots(number):
                clauses = self._clauses[slot.name]
                if slot.type not in kinds or len(clauses) < 2:
                    continue
                found = extreme(clauses, high)
                if found is not None:
                    for term, weight in found.near.items():
                        wanted.setdefault(term, weight)
                    return wanted
        return wanted

    def _recent_slots(self, number: int) -> list[Slot]:
        """Slots of the earlier turns, the latest first."""
        names = [n for t in reversed(self.turns[: number - 1]) for n in t.slots]
        by_name = {s.name: s for s in self._slots}
        return [by_name[n] for n in dict.fromkeys(names)]

    def _elsewhere(self, slot: str, question: Question) -> bool:
        """Whether a question names a thing that the sources treat, but not for this slot."""
        if not self._clauses[slot]:
            return False
        affirmed = set(question.words)
        profile = next(
            p for s, p in zip(self._slots, self._profiles, strict=True) if s.name == slot
        )
        if not affirmed or any(t in profile for t in question.terms):
            return False
        return bool(affirmed & self._words)

    def _user_facts(self, turn: Turn) -> list[Said]:
        """Values that the user states for slots on which the sources are silent."""
        silent = [s for s in self._slots if not self._clauses[s.name] and s.type != "text"]
        found: list[Said] = []
        for kind in sorted({s.type for s in silent}):
            rivals = [s for s in silent if s.type == kind]
            choices = [c for s in rivals for c in s.choices]
            for value in find_values(turn.question, {kind}, choices):
                clause = _clause_around(turn.question, value.start, value.end)
                if value.ambiguous or _INTERROGATIVE.search(fold(clause).strip()):
                    continue
                about = terms(clause)
                fits = [sum(w for t, w in name_terms(s).items() if t in about) for s in rivals]
                top = max(fits)
                alone = len(rivals) == 1 and kind == "date"
                if fits.count(top) > 1 or (top <= 0 and not alone):
                    continue
                name = rivals[fits.index(top)].name
                said = (name, value.value, turn.number, "user", value.start, value.end)
                found.append(Said(*said, clause.strip()))
        return found

    def _from_user(self, slot: str) -> Settlement:
        """The last thing the user said of a slot that no source states."""
        zh = is_chinese(slot)
        for turn in reversed(self.turns):
            for said in reversed(turn.said):
                if said.slot == slot and said.speaker == "user":
                    fact = Fact(
                        slot, said.value, f"turn {said.turn}", said.start, said.end, said.quote
                    )
                    reason = (
                        f"用户在第{said.turn}轮说：“{said.quote}”"
                        if zh
                        else f"the user said so in turn {said.turn}: “{said.quote}”"
                    )
                    return Settlement(slot, "settled", said.value, (fact,), reason)
        return unsupported(slot)


def _clause_around(text: str, start: int, end: int) -> str:
    """The clause that a value stands in."""
    low = max((m.end() for m in _CLAUSE_ENDS.finditer(text, 0, start)), default=0)
    after = _CLAUSE_ENDS.search(text, end)
    return text[low : after.end() if after else len(text)]
