"""Generation with decisions on transformers models: greedy or sampled, one prompt or a batch.

The loop is the project's own, as a repair has to return to an earlier place: it crops the cache of
a single row, and moves the cached row to the right in a batch. Beam search and assisted decoding
are transformers' own and can only be observed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from zerolayer.decisions.events import DecisionEvent
from zerolayer.errors import ZerolayerError
from zerolayer.runtime.session import Session


@dataclass
class Answer:
    """A generated answer and what its decisions cost."""

    text: str
    tokens: list[int]
    events: list[DecisionEvent] = field(default_factory=list)
    decision_tokens: int = 0  # thrown away by repairs; they count toward the limit
    finish_reason: str = "length"  # end, length or stopped
    stopped: str | None = None  # why, where the decisions ended it
    seconds: float = 0.0
    decision_seconds: float = 0.0


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen.

    Processors and the repetition penalty come first, then the decisions, then temperature, top-k
    and top-p: what a decision forbids stays forbidden, and what it leaves is sampled from.
    """

    temperature: float = 0.0  # 0 is greedy
    top_k: int = 0  # 0 keeps all
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int = 0
    processors: tuple[LogitsProcessor, ...] = ()


def chat_prompt(tokenizer: Any, user: str, lead: str = "") -> str:
    """The prompt in the model's chat format, with the beginning of the answer if there is one."""
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": user}], tokenize=False, add_generation_prompt=True
        )
    else:
        text = f"{user}\n\n"
    return str(text) + lead


def generate(
    model: Any,
    tokenizer: Any,
    prompt: str,
    session: Session | None = None,
    lead: str = "",
    max_new_tokens: int = 96,
    sampling: Sampling | None = None,
    stop: Sequence[str] = (),
    on_text: Callable[[str], None] | None = None,
) -> Answer:
    """Generate one answer.

    Args:
        prompt: the full prompt text without the lead.
        session: decisions; None generates plainly.
        lead: the beginning of the answer; the automaton reads it as part of the answer.
        stop: texts that end the answer, apart from the model's own end; they are no part of it,
            and are never shown, not even in part.
        on_text: called with text that can no longer change, the lead included. Under `repair`
            text is held back from a decision point until its value is complete and right, at the
            longest to the end of the sentence.

    Raises:
        ZerolayerError: the prompt is empty, or with the answer exceeds the model's context.
    """
    show = (lambda _, text: on_text(text)) if on_text is not None else None
    return generate_batch(
        model, tokenizer, [prompt], [session], [lead], max_new_tokens, sampling, stop, show
    )[0]


@torch.inference_mode()
def generate_batch(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    sessions: Sequence[Session | None] | None = None,
    leads: Sequence[str] | None = None,
    max_new_tokens: int = 96,
    sampling: Sampling | None = None,
    stop: Sequence[str] = (),
    on_text: Callable[[int, str], None] | None = None,
) -> list[Answer]:
    """Generate one answer for each prompt, in one batch padded on the left.

    Every row has its own session and its own sampler, so a row's choices do not depend on the
    others; rows that end leave the batch. Arguments and errors as in `generate`; on_text gets the
    row's index too.
    """
    sampling = sampling or Sampling()
    sessions = sessions or [None] * len(prompts)
    leads = leads or [""] * len(prompts)
    if not len(prompts) == len(sessions) == len(leads):
        raise ZerolayerError(
            f"{len(prompts)} prompts, {len(sessions)} sessions and {len(leads)} leads; "
            "give one of each for every prompt"
        )
    rows = [
        _Row(i, model, tokenizer, prompt, session, lead, max_new_tokens, sampling, stop, on_text)
        for i, (prompt, session, lead) in enumerate(zip(prompts, sessions, leads, strict=True))
    ]
    for row in rows:
        row.check_context()
    cache = _Cache(model, rows)
    live = list(rows)
    while live := _still_live(live, cache):
        logits = cache.step()
        for place, row in enumerate(live):
            kept = row.take(logits[place : place + 1])
            if kept is not None:
                cache.return_to(place, len(row.start) + kept)
    return [row.answer() for row in rows]


def observe(
    model: Any,
    tokenizer: Any,
    prompt: str,
    session: Session,
    lead: str = "",
    max_new_tokens: int = 96,
    **options: Any,
) -> Answer:
    """Answer by transformers' own `generate` (beam search, an assistant model, a custom loop).

    There the tokens of an answer are known only when it is complete, so decisions can be observed
    and nothing more.

    Args:
        options: go to `model.generate` as they are (num_beams, assistant_model, …).

    Raises:
        ZerolayerError: a rule asks for more than to be observed.
    """
    strict = [p for p in session.plans if p.action != "observe"]
    if strict:
        raise ZerolayerError(
            f"rule {strict[0].rule or strict[0].slot.name!r} has the action {strict[0].action}, "
            "but beam search and assisted decoding can only be observed; give the rule "
            '"- action: observe", or use generate() without them'
        )
    row = _Row(0, model, tokenizer, prompt, session, lead, max_new_tokens, Sampling(), (), None)
    row.check_context()
    ids = torch.tensor([row.start + row.tokens], device=model.device)
    made = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=max_new_tokens,
        **options,
    )
    for token in made[0, ids.shape[1] :].tolist():
        if token in row.ends:
            row.reason = "end"
            break
        row.tokens.append(token)
        session.feed(token)
    session.finish()
    return row.answer()


class _Row:
    """One answer on its way."""

    def __init__(
        self,
        index: int,
        model: Any,
        tokenizer: Any,
        prompt: str,
        session: Session | None,
        lead: str,
        max_new_tokens: int,
        sampling: Sampling,
        stop: Sequence[str],
        on_text: Callable[[int, str], None] | None,
    ) -> None:
        self.index, self.tokenizer, self.session, self.lead = index, tokenizer, session, lead
        self.limit, self.sampling, self.stop, self.on_text = max_new_tokens, sampling, stop, on_text
        self.context = int(model.config.get_text_config().max_position_embeddings)
        self.ends = _end_tokens(model, tokenizer)
        self.start: list[int] = tokenizer(prompt).input_ids
        if not self.start:
            raise ZerolayerError(f"prompt {index} is empty; give at least one word")
        self.generator: torch.Generator | None = None
        if sampling.temperature > 0:
            self.generator = torch.Generator().manual_seed(sampling.seed + index)
            if session is not None:
                session.generator = self.generator
        self.tokens: list[int] = []
        self.spent = self.shown = 0
        self.cut: int | None = None  # offset of a stop text
        self.reason: str | None = None if max_new_tokens > 0 else "length"
        self.began = time.perf_counter()
        for token in tokenizer(lead, add_special_tokens=False).input_ids if lead else []:
            self.tokens.append(token)
            kept = session.feed(token) if session is not None else None
            if kept is not None:  # the lead contradicts the sources; what follows it is dropped
                self.tokens = self.tokens[:kept]
                break
        self._check_stopped()

    def check_context(self) -> None:
        """Raises ZerolayerError where prompt and answer exceed the model's context."""
        used = len(self.start) + len(self.tokens)
        if used + self.limit > self.context:
            raise ZerolayerError(
                f"the prompt has {used} tokens and the answer may have {self.limit}; together "
                f"they exceed the model's context of {self.context}: shorten the sources or "
                "lower --max-tokens"
            )

    def take(self, logits: Tensor) -> int | None:
        """Choose the next token from logits [1, V].

        Returns:
            None, or the number of the answer's tokens that stay: the cache has to return there.
        """
        token = self._choose(logits)
        if token is None:
            self.reason = "stopped"
            return None
        self.spent += 1
        kept = None
        ending = token in self.ends
        if not ending:
            self.tokens.append(token)
            kept = self.session.feed(token) if self.session is not None else None
            self.cut = self._stop_text() if kept is None else None
            ending = self.cut is not None
        if kept is None and (ending or self.spent == self.limit):
            kept = self.session.finish() if self.session is not None else None
            if kept is None:
                self.reason = "end" if ending else "length"
        if kept is not None:
            self.tokens, self.cut = self.tokens[:kept], None
            if self.spent == self.limit:  # nothing is left of the limit to say it again
                self.reason = "length"
        self._check_stopped()
        self._show()
        return kept

    def _choose(self, logits: Tensor) -> int | None:
        """The next token; None where decisions and processors together leave none."""
        how = self.sampling
        before = list(how.processors)
        if how.repetition_penalty != 1.0:
            before.insert(0, RepetitionPenaltyLogitsProcessor(how.repetition_penalty))
        if before:
            ids = torch.tensor([self.start + self.tokens])
            for processor in before:
                logits = processor(ids, logits)
        if self.session is not None:
            self.session.adjust(logits)
            if self.session.overlay is not None and not (logits > -torch.inf).any():
                self.session.stopped = (
                    "the decisions and the logits processors together leave no token"
                )
                return None
        if self.generator is None:
            return int(logits.argmax(-1))
        none = torch.empty(1, 0, dtype=torch.long)  # warpers look at the logits alone
        logits = TemperatureLogitsWarper(how.temperature)(none, logits)
        if how.top_k > 0:
            logits = TopKLogitsWarper(how.top_k)(none, logits)
        if how.top_p < 1.0:
            logits = TopPLogitsWarper(how.top_p)(none, logits)
        return int(torch.multinomial(logits[0].softmax(-1), 1, generator=self.generator))

    def _stop_text(self) -> int | None:
        """Offset of the first stop text behind the lead; it may begin and end within tokens."""
        if not self.stop:
            return None
        text = self._decode(len(self.tokens))
        places = [text.find(s, len(self.lead)) for s in self.stop]
        return min((p for p in places if p >= 0), default=None)

    def _check_stopped(self) -> None:
        if self.session is not None and self.session.stopped:
            self.reason = "stopped"

    def _decode(self, tokens: int) -> str:
        text = str(self.tokenizer.decode(self.tokens[:tokens], skip_special_tokens=True))
        return text[: self.cut]

    def _show(self) -> None:
        """Hand on what can no longer change: whole UTF-8, nothing that may be repaired."""
        if self.on_text is None:
            return
        final = self.reason is not None
        held = len(self.tokens) if final or self.session is None else self.session.held
        text = self._decode(held)
        if not final:
            text = text.removesuffix("\ufffd")
            text = text[: len(text) - max((_overlap(text, s) for s in self.stop), default=0)]
        if len(text) > self.shown:
            self.on_text(self.index, text[self.shown :])
            self.shown = len(text)

    def answer(self) -> Answer:
        """The answer as far as it has come."""
        return Answer(
            text=self._decode(len(self.tokens)),
            tokens=self.tokens,
            events=list(self.session.events) if self.session else [],
            decision_tokens=self.session.decision_tokens if self.session else 0,
            finish_reason=self.reason or "length",
            stopped=self.session.stopped if self.session else None,
            seconds=time.perf_counter() - self.began,
            decision_seconds=self.session.seconds if self.session else 0.0,
        )


class _Cache:
    """The model's cache for the rows of a batch, and the mask that goes with it."""

    def __init__(self, model: Any, rows: Sequence[_Row]) -> None:
        self.model = model
        self.rows = list(rows)
        self.past: Any = None
        self.mask = torch.zeros(len(rows), 0, dtype=torch.long)  # 1 where a token is cached
        self.repairs = any(r.session is not None and r.session.repairs for r in rows)

    def step(self) -> Tensor:
        """Feed what is not cached yet; logits fp32 [B, V] of each row's next token."""
        pending = [self._pending(i, row) for i, row in enumerate(self.rows)]
        width = max(len(p) for p in pending)
        ids = torch.tensor([[p[0]] * (width - len(p)) + p for p in pending])
        fresh = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in pending])
        self.mask = torch.cat([self.mask, fresh], dim=1)
        places = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -width:]
        padded = not bool(self.mask.all())
        device = self.model.device
        out = self.model(
            input_ids=ids.to(device),
            attention_mask=self.mask.to(device) if padded else None,
            position_ids=places.to(device),
            cache=self.past,
            use_cache=True,
            logits_to_keep=1,
        )
        if self.past is None and self.repairs:
            # Layers with a sliding window forget what a repair would return to.
            out.cache.activate_past_recording()
        self.past = out.cache
        return torch.as_tensor(out.logits[:, -1].float().cpu())

    def _pending(self, place: int, row: _Row) -> list[int]:
        cached = int(self.mask[place].sum())
        return (row.start + row.tokens)[cached:]

    def return_to(self, place: int, length: int) -> None:
        """Forget what a row has cached behind its first `length` tokens, and its last one, which
        is fed again."""
        surplus = int(self.mask[place].sum()) - (length - 1)
        if len(self.rows) == 1:
            self.past.crop(-surplus)  # a negative length is the number of tokens to remove
            self.mask = self.mask[:, : self.mask.shape[1] - surplus]
            return
        for layer in self.past.layers:
            if getattr(layer, "keys", None) is None:
                raise ZerolayerError(
                    f"a repair in a batch needs attention caches, not {type(layer).__name__}; "
                    "generate these prompts one at a time"
                )
            for states in (layer.keys, layer.values):
                states[place] = states[place].roll(surplus, dims=-2)
        self.mask[place] = self.mask[place].roll(surplus)
        self.mask[place, :surplus] = 0

    def keep(self, places: Sequence[int]) -> None:
        """Keep some of the rows."""
        chosen = torch.tensor(places)
        self.rows = [self.rows[i] for i in places]
        self.mask = self.mask[chosen]
        if self.past is not None:
            self.past.batch_select_indices(chosen.to(self.model.device))


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    sizes = range(min(len(text), len(stop) - 1), 0, -1)
    return next((n for n in sizes if text.endswith(stop[:n])), 0)


def _still_live(rows: list[_Row], cache: _Cache) -> list[_Row]:
    places = [i for i, row in enumerate(rows) if row.reason is None]
    if places and len(places) < len(rows):
        cache.keep(places)
    return [rows[i] for i in places]


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    listed = ends if isinstance(ends, list) else [ends]
    return {int(e) for e in (*listed, tokenizer.eos_token_id) if e is not None}
