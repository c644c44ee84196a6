"""Generation with decisions on a transformers model: one stream, greedy or sampled."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

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
    finish_reason: str = "length"
    seconds: float = 0.0
    decision_seconds: float = 0.0


def chat_prompt(tokenizer: Any, user: str, lead: str = "") -> str:
    """The prompt in the model's chat format, with the beginning of the answer if there is one."""
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": user}], tokenize=False, add_generation_prompt=True
        )
    else:
        text = f"{user}\n\n"
    return str(text) + lead


@torch.inference_mode()
def generate(
    model: Any,
    tokenizer: Any,
    prompt: str,
    session: Session | None = None,
    lead: str = "",
    max_new_tokens: int = 96,
    temperature: float = 0.0,
    seed: int | None = None,
    stop: Sequence[str] = (),
    on_text: Callable[[str], None] | None = None,
) -> Answer:
    """Generate one answer.

    Args:
        prompt: the full prompt text without the lead.
        session: decisions; None generates plainly.
        lead: the beginning of the answer; the automaton reads it as part of the answer.
        temperature: 0 is greedy.
        stop: texts that end the answer, apart from the model's own end.
        on_text: called with text that can no longer change, the lead included. With a session
            whose rules may repair, a sentence is held back until it has been read.

    Raises:
        ZerolayerError: the prompt and the answer do not fit into the model's context.
    """
    began = time.perf_counter()
    start: list[int] = tokenizer(prompt).input_ids
    leading: list[int] = tokenizer(lead, add_special_tokens=False).input_ids if lead else []
    limit = int(model.config.get_text_config().max_position_embeddings)
    if len(start) + len(leading) + max_new_tokens > limit:
        raise ZerolayerError(
            f"the prompt has {len(start) + len(leading)} tokens and the answer may have "
            f"{max_new_tokens}; together they exceed the model's context of {limit}: "
            "shorten the sources or lower --max-tokens"
        )
    generator = torch.Generator().manual_seed(seed) if seed is not None else None
    ends = _end_tokens(model, tokenizer)
    tokens: list[int] = []
    for token in leading:
        tokens.append(token)
        kept = session.feed(token) if session is not None else None
        if kept is not None:  # the lead itself contradicts the sources; what follows it is dropped
            tokens = tokens[:kept]
            break
    shown = 0
    cache: Any = None
    pending = start + tokens
    spent = 0
    reason = "length"
    repairs = session is not None and any(p.action == "repair" for p in session.plans)
    while spent < max_new_tokens:
        out = model(
            input_ids=torch.tensor([pending]),
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        if cache is None and repairs:
            # Layers with a sliding window forget what a repair would return to.
            out.cache.activate_past_recording()
        cache = out.cache
        logits = out.logits[:, -1].float()
        if session is not None:
            session.adjust(logits)
        token = _choose(logits, temperature, generator)
        spent += 1
        if token in ends:
            kept = session.finish() if session is not None else None
            if kept is None:
                reason = "end"
                break
        else:
            tokens.append(token)
            kept = session.feed(token) if session is not None else None
            if kept is None and _ends(tokenizer, tokens, lead, stop):
                kept = session.finish() if session is not None else None
                if kept is None:
                    reason = "end"
                    break
        if kept is not None:
            tokens = tokens[:kept]
            surplus = cache.get_seq_length() - (len(start) + kept - 1)
            cache.crop(-surplus)  # a negative length is the number of tokens to remove
            pending = tokens[-1:]
            continue
        pending = [token]
        if session is not None and session.stopped:
            break
        if on_text is not None:
            text = tokenizer.decode(tokens, skip_special_tokens=True)
            safe = _safe_length(text, session)
            if safe > shown:
                on_text(text[shown:safe])
                shown = safe
    else:
        kept = session.finish() if session is not None else None
        if kept is not None:  # nothing is left of the limit to say it again
            tokens = tokens[:kept]
    if session is not None and session.stopped:
        reason = "stopped"
    text = tokenizer.decode(tokens, skip_special_tokens=True)
    if on_text is not None and len(text) > shown:
        on_text(text[shown:])
    return Answer(
        text=text,
        tokens=tokens,
        events=list(session.events) if session else [],
        decision_tokens=session.decision_tokens if session else 0,
        finish_reason=reason,
        seconds=time.perf_counter() - began,
        decision_seconds=session.seconds if session else 0.0,
    )


def _ends(tokenizer: Any, tokens: list[int], lead: str, stop: Sequence[str]) -> bool:
    """Whether a stop text stands in the answer behind its lead."""
    if not stop:
        return False
    text = tokenizer.decode(tokens, skip_special_tokens=True)
    return any(s in text[len(lead) :] for s in stop)


def _safe_length(text: str, session: Session | None) -> int:
    """Characters that may be shown: whole UTF-8, and nothing that could still be repaired."""
    end = len(text) - (1 if text.endswith("\ufffd") else 0)
    if session is not None and any(p.action == "repair" for p in session.plans):
        end = min(end, session.read_to)
    return end


def _choose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> int:
    if temperature <= 0:
        return int(logits.argmax(-1))
    probabilities = (logits / temperature).softmax(-1)
    return int(torch.multinomial(probabilities[0], 1, generator=generator))


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    listed = ends if isinstance(ends, list) else [ends]
    return {int(e) for e in (*listed, tokenizer.eos_token_id) if e is not None}
