"""The host's step of one token against scan_tokens, on any stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from zerolayer import _host, automaton, ops

PHRASES = [["payment period"], ["rent"], ["付款期限"]]
PIECES = ["payment ", "period", "rent", "rents.", "付款", "期限", " is ", "30 days", "sixty", ", "]


@pytest.fixture(scope="module", params=["byte_level", "byte_fallback"])
def vocabulary(request: Any) -> automaton.Vocabulary:
    tokenizer = request.getfixturevalue(request.param)
    return automaton.Vocabulary.from_tokenizer(tokenizer, len(tokenizer) + 13)


@pytest.fixture(scope="module", params=["triggers", "overlay"])
def arena(request: Any, vocabulary: automaton.Vocabulary) -> Tensor:
    if request.param == "triggers":
        return automaton.compile_triggers(PHRASES, vocabulary)
    return automaton.compile_overlay(["30 days", "thirty days"], vocabulary)


def streams(vocabulary: automaton.Vocabulary) -> st.SearchStrategy[list[int]]:
    """Tokens of the pieces, a byte or more at a time, amid any numbers at all."""
    by_bytes = {t: i for i, t in enumerate(vocabulary.token_bytes) if t}
    spelled = [[by_bytes[b] for b in (bytes([c]) for c in p.encode())] for p in PIECES]
    width = len(vocabulary.token_bytes)
    loose = st.integers(-2, width + 2).map(lambda token: [token])
    parts = st.one_of(st.sampled_from(spelled), loose)
    return st.lists(parts, max_size=12).map(lambda chosen: [t for part in chosen for t in part])


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_steps_equal_a_scan(data: Any, arena: Tensor, vocabulary: automaton.Vocabulary) -> None:
    tokens = data.draw(streams(vocabulary))
    scanned = torch.full((1,), automaton.start_state(arena), dtype=torch.int32)
    length = torch.tensor([len(tokens)], dtype=torch.int32)
    row = torch.tensor([tokens], dtype=torch.int64).reshape(1, -1)
    want = ops.scan_tokens(row, length, scanned, arena)[0].tolist()
    state = torch.zeros(1, dtype=torch.int32)
    watcher = _host.Watcher(arena.numpy(), state.numpy())
    ended = automaton.done_flags(arena)
    got = []
    for token in tokens:
        got.append(watcher.step(token))
        assert watcher.ended == bool(ended[watcher.state])
    assert got == want
    assert int(state) == watcher.state == int(scanned)


def test_streams_of_the_law_hold_events(vocabulary: automaton.Vocabulary) -> None:
    """Else the law above would compare rows of −1."""
    arena = automaton.compile_triggers(PHRASES, vocabulary)
    by_bytes = {t: i for i, t in enumerate(vocabulary.token_bytes) if t}
    watcher = _host.Watcher(arena.numpy(), np.zeros(1, np.int32))
    events = [watcher.step(by_bytes[bytes([b])]) for b in "rent, payment period.付款期限".encode()]
    assert len([e for e in events if e >= 0]) == 3


def test_a_state_can_be_kept_and_returned_to(vocabulary: automaton.Vocabulary) -> None:
    arena = automaton.compile_triggers(PHRASES, vocabulary)
    by_bytes = {t: i for i, t in enumerate(vocabulary.token_bytes) if t}
    spell = [by_bytes[bytes([b])] for b in b"rent."]
    watcher = _host.Watcher(arena.numpy(), np.zeros(1, np.int32))
    for token in spell[:2]:
        watcher.step(token)
    kept = watcher.state
    first = [watcher.step(token) for token in spell[2:]]
    watcher.state = kept
    assert [watcher.step(token) for token in spell[2:]] == first
    assert first[-1] >= 0


def test_what_it_refuses(vocabulary: automaton.Vocabulary) -> None:
    arena = automaton.compile_triggers(PHRASES, vocabulary)
    state = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="truncated"):
        _host.Watcher(arena[:-8].numpy(), state)
    with pytest.raises(ValueError, match="row of uint8"):
        _host.Watcher(arena.view(torch.int32).numpy(), state)
    with pytest.raises(ValueError, match="one int32"):
        _host.Watcher(arena.numpy(), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="one int32"):
        _host.Watcher(arena.numpy(), np.zeros(2, np.int32))
    frozen = np.zeros(1, np.int32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        _host.Watcher(arena.numpy(), frozen)
    watcher = _host.Watcher(arena.numpy(), state)
    states = automaton.info(arena)["states"]
    with pytest.raises(IndexError, match=f"the automaton has {states} states"):
        watcher.state = states
    state[0] = -1  # the caller's memory: checked at the step
    with pytest.raises(IndexError, match="the state is -1"):
        watcher.step(0)


def test_it_keeps_its_memory(vocabulary: automaton.Vocabulary) -> None:
    """The arena and the state may go out of the caller's sight."""
    arena = automaton.compile_triggers(PHRASES, vocabulary)
    watcher = _host.Watcher(arena.clone().numpy(), torch.zeros(1, dtype=torch.int32).numpy())
    spare = [torch.full_like(arena, 7) for _ in range(8)]  # would land in freed memory
    assert watcher.step(0) == -1
    assert spare[0][0] == 7
