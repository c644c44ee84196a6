"""The token automaton against a byte-level oracle, and overlays against their promise."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.library import opcheck

from zerolayer import automaton, ops
from zerolayer.arena_cache import cached_triggers
from zerolayer.errors import ZerolayerError
from zerolayer.regex import Regex

PHRASES = [["payment period", "payment term"], ["rent"], ["付款期限"], ["notice period"]]
WORD = rb"[A-Za-z0-9_]"


@pytest.fixture(scope="module", params=["byte_level", "byte_fallback"])
def vocabulary(request: Any) -> automaton.Vocabulary:
    """Vocabularies of two kinds, wider than their tokenizers, as logits often are."""
    tokenizer = request.getfixturevalue(request.param)
    return automaton.Vocabulary.from_tokenizer(tokenizer, len(tokenizer) + 13)


@pytest.fixture(scope="module")
def arena(vocabulary: automaton.Vocabulary) -> Tensor:
    """The phrases compiled for the vocabulary."""
    return automaton.compile_triggers(PHRASES, vocabulary)


def oracle(data: bytes) -> list[tuple[int, int]]:
    """(offset at which the event is due, trigger): plain regular expressions over the bytes."""
    folded = data
    for c in range(0x21, 0x7F):  # full-width forms count as the plain ones
        folded = folded.replace(chr(c + 0xFEE0).encode(), b"\x00\x00" + bytes([c]))
    found = []
    for trigger, forms in enumerate(PHRASES):
        for form in forms:
            letters = [re.escape(c.encode()) for c in form]
            blank = rb"(?:[ \n\t\r]|\xe3\x80\x80|\xc2\xa0)+"
            body = b"".join(blank if c == b"\\ " else rb"(?:\x00\x00)?" + c for c in letters)
            if form[0].isascii():
                # Every way to end counts: "rent" and "rent's" both precede a non-word byte.
                for m in re.finditer(rb"(?=(" + body + rb"))", folded, re.IGNORECASE):
                    if re.fullmatch(WORD, data[m.start(1) - 1 : m.start(1)]):
                        continue
                    for tail in (
                        b"",
                        b"s",
                        b"'s",
                        b"\xe2\x80\x99s",
                        b"s'",
                        b"s\xe2\x80\x99",
                        b"s's",
                        b"s\xe2\x80\x99s",
                    ):
                        end = m.end(1)
                        if folded[end : end + len(tail)].lower() != tail:
                            continue
                        end += len(tail)
                        after = data[end : end + 1]
                        if after and not re.fullmatch(WORD, after):
                            found.append((end + 1, trigger))
            else:
                for m in re.finditer(rb"(?=(" + body + rb"))", folded):
                    found.append((m.end(1), trigger))
    return sorted(set(found))


def stream(vocabulary: automaton.Vocabulary, rng: random.Random, length: int) -> list[int]:
    """Random tokens, half of them from texts that hold phrases, in odd cuts."""
    by_bytes = {t: i for i, t in enumerate(vocabulary.token_bytes) if t}
    longest = max(map(len, by_bytes))
    tokens: list[int] = []
    pieces = ["payment period", "Payment\n terms", "rent", "RENT's", "付款期限", " ", "parent", "notice  period", ".", "rental", "ｒｅｎｔ", "es"]  # fmt: skip  # noqa: E501
    while len(tokens) < length:
        if rng.random() < 0.35:
            tokens.append(rng.randrange(len(vocabulary.token_bytes)))
            continue
        data = rng.choice(pieces).encode()
        while data:
            sizes = [n for n in range(1, longest + 1) if data[:n] in by_bytes and n <= len(data)]
            if not sizes:
                break
            size = rng.choice(sizes)
            tokens.append(by_bytes[data[:size]])
            data = data[size:]
    return tokens[:length]


def events_of(arena: Tensor, rows: list[list[int]]) -> list[list[set[int]]]:
    """The triggers reported at each token."""
    width = max(map(len, rows))
    tokens = torch.tensor([r + [0] * (width - len(r)) for r in rows])
    lengths = torch.tensor([len(r) for r in rows], dtype=torch.int32)
    states = torch.full((len(rows),), automaton.start_state(arena), dtype=torch.int32)
    sets = automaton.event_sets(arena)
    found = ops.scan_tokens(tokens, lengths, states, arena)
    return [
        [set(sets[e]) if e >= 0 else set() for e in row[: len(r)]]
        for row, r in zip(found.tolist(), rows, strict=True)
    ]


def expected(vocabulary: automaton.Vocabulary, tokens: list[int]) -> list[set[int]]:
    """The oracle's events by token; control tokens cut the text."""
    result: list[set[int]] = [set() for _ in tokens]
    start = 0
    for i in range(len(tokens) + 1):
        piece = vocabulary.token_bytes[tokens[i]] if i < len(tokens) else None
        if piece:
            continue
        data, ends = b"", []
        for t in tokens[start:i]:
            data += vocabulary.token_bytes[t] or b""
            ends.append(len(data))
        for offset, trigger in oracle(data):
            token = next((k for k, e in enumerate(ends) if e >= offset), None)
            if token is not None:
                result[start + token].add(trigger)
        start = i + 1
    return result


def test_scan_equals_byte_oracle(vocabulary: automaton.Vocabulary, arena: Tensor) -> None:
    """10,000 random streams of each tokenizer."""
    rng = random.Random(7)
    rows = [stream(vocabulary, rng, 12) for _ in range(10_000)]
    found = events_of(arena, rows)
    seen = 0
    for tokens, got in zip(rows, found, strict=True):
        want = expected(vocabulary, tokens)
        assert got == want, [vocabulary.token_bytes[t] for t in tokens]
        seen += sum(map(bool, want))
    assert seen > 2_000  # the streams do hold events


def test_scan_in_pieces_equals_whole(vocabulary: automaton.Vocabulary, arena: Tensor) -> None:
    rng = random.Random(3)
    tokens = torch.tensor([stream(vocabulary, rng, 40) for _ in range(20)])
    whole = torch.full((20,), automaton.start_state(arena), dtype=torch.int32)
    pieces = whole.clone()
    lengths = torch.full((20,), 40, dtype=torch.int32)
    want = ops.scan_tokens(tokens, lengths, whole, arena)
    got = torch.cat(
        [
            ops.scan_tokens(
                part, torch.full((20,), part.shape[1], dtype=torch.int32), pieces, arena
            )
            for part in tokens.split([1, 7, 2, 30], dim=1)
        ],
        dim=1,
    )
    assert torch.equal(want, got) and torch.equal(whole, pieces)
    assert torch.equal(want, ops.scan_tokens(tokens.int(), lengths, pieces.fill_(0), arena))


def test_word_boundaries(byte_level: Any) -> None:
    """A chunk must not flag the half of a word: "rental" and "current" hold no "rent"."""
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    arena = automaton.compile_triggers([["rent"]], vocabulary)
    for text, hits in [("current rental, parent", 0), ("the RENT is", 1), ("rents are due", 1)]:
        found = events_of(arena, [byte_level(text).input_ids])[0]
        assert sum(map(bool, found)) == hits, text


def test_ops_pass_opcheck(arena: Tensor, vocabulary: automaton.Vocabulary) -> None:
    tokens = torch.tensor([[5, 6, 7], [8, 9, 10]])
    lengths = torch.tensor([3, 1], dtype=torch.int32)
    states = torch.zeros(2, dtype=torch.int32)
    opcheck(torch.ops.zerolayer.scan_tokens, (tokens, lengths, states, arena))
    overlay = automaton.compile_overlay(["45 days"], vocabulary)
    logits = torch.zeros(2, len(vocabulary.token_bytes))
    opcheck(torch.ops.zerolayer.apply_decisions, (logits, states, arena, overlay))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_overlay_lets_only_renderings_through(
    vocabulary: automaton.Vocabulary, dtype: torch.dtype
) -> None:
    """Random walks under the mask: after a lead only a rendering comes, however it is cut."""
    renderings = ["45 days", "4 5", "45 days net"]
    overlay = automaton.compile_overlay(renderings, vocabulary)
    done = automaton.done_flags(overlay)
    by_bytes = {t: i for i, t in enumerate(vocabulary.token_bytes) if t}
    rng = torch.Generator().manual_seed(0)
    seen = set()
    one = torch.ones(1, dtype=torch.int32)
    for _ in range(60):
        state = torch.full((1,), automaton.start_state(overlay), dtype=torch.int32)
        for byte in b" is ":
            token = torch.tensor([[by_bytes[bytes([byte])]]]) if bytes([byte]) in by_bytes else None
            if token is None:
                pytest.skip("this vocabulary has no token for a single byte of the lead")
            ops.scan_tokens(token, one, state, overlay, overlay)
        text = b""
        for _ in range(40):
            logits = torch.randn(1, len(vocabulary.token_bytes), generator=rng).to(dtype)
            ops.apply_decisions(logits, state, overlay, overlay)
            assert logits.isfinite().any()
            token = int(logits.float().argmax())
            text += vocabulary.token_bytes[token] or b""
            ops.scan_tokens(torch.tensor([[token]]), one, state, overlay, overlay)
            if done[int(state[0])]:
                break
        else:
            raise AssertionError(f"no end: {text!r}")
        said = text.lstrip(b" *").decode("utf-8", "replace")
        match = next(
            (r for r in sorted(renderings, key=len, reverse=True) if said.startswith(r)), ""
        )
        assert match, text
        seen.add(match)
    assert {"45 days", "4 5"} <= seen


def test_overlay_keeps_a_value_from_growing(byte_level: Any) -> None:
    """ "500,000" must not go on as "500,000,000", "500,000 million" or "5000"."""
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    overlay = automaton.compile_overlay(["USD 500,000"], vocabulary)
    for tail, allowed in [
        (",000", False),
        (" million", False),
        ("0", False),
        (".", True),
        (" a", True),
    ]:
        state = torch.full((1,), automaton.start_state(overlay), dtype=torch.int32)
        one = torch.ones(1, dtype=torch.int32)
        dead = False
        for token in byte_level(" is USD 500,000" + tail).input_ids:
            logits = torch.zeros(1, len(vocabulary.token_bytes))
            ops.apply_decisions(logits, state, overlay, overlay)
            dead = dead or bool(logits[0, token] < 0)
            ops.scan_tokens(torch.tensor([[token]]), one, state, overlay, overlay)
        assert dead is not allowed, tail


def test_steer_favours_and_forbids_nothing(byte_level: Any) -> None:
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    overlay = automaton.compile_overlay(["45 days"], vocabulary, bonus=4.0)
    state = torch.full((1,), automaton.start_state(overlay), dtype=torch.int32)
    one = torch.ones(1, dtype=torch.int32)
    for token in byte_level(" is ").input_ids:
        ops.scan_tokens(torch.tensor([[token]]), one, state, overlay, overlay)
    logits = torch.zeros(1, len(vocabulary.token_bytes))
    ops.apply_decisions(logits, state, overlay, overlay)
    assert logits.isfinite().all()
    assert (
        logits[0, byte_level("4").input_ids[0]] == 4.0
        and logits[0, byte_level("7").input_ids[0]] == 0
    )


def test_damaged_arena_is_refused(arena: Tensor) -> None:
    automaton.validate(arena)
    altered = arena.clone()
    altered[len(altered) // 2] ^= 1
    with pytest.raises(ZerolayerError, match="altered"):
        automaton.validate(altered)
    with pytest.raises(ZerolayerError, match="truncated"):
        automaton.validate(arena[:-8].clone())
    states = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="no valid header"):
        ops.scan_tokens(
            torch.zeros(1, 1, dtype=torch.int64),
            torch.ones(1, dtype=torch.int32),
            states,
            torch.zeros(512, dtype=torch.uint8),
        )
    with pytest.raises(RuntimeError, match="states holds 99999"):
        ops.scan_tokens(
            torch.zeros(1, 1, dtype=torch.int64),
            torch.ones(1, dtype=torch.int32),
            states + 99999,
            arena,
        )


def test_unknown_tokens_reset(arena: Tensor, vocabulary: automaton.Vocabulary) -> None:
    """Ids beyond the tokenizer (padded logits) and negative ids are no text."""
    states = torch.full((1,), automaton.start_state(arena), dtype=torch.int32)
    tokens = torch.tensor([[10**6, -1, len(vocabulary.token_bytes) - 1]])
    found = ops.scan_tokens(tokens, torch.tensor([3], dtype=torch.int32), states, arena)
    assert (found == -1).all() and int(states[0]) == automaton.start_state(arena)


def test_heads_are_found_in_plural_and_possessive(byte_level: Any) -> None:
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    arena = automaton.compile_triggers([["policy"], ["notice of termination"]], vocabulary)
    for text, want in [
        ("two POLICIES, a policy's end", [0, 0, 0]),
        ("notices of termination.", [1]),
        ("policys policing", [0]),
        ("polici es", []),
    ]:
        found = events_of(arena, [byte_level(text).input_ids])[0]
        assert [t for s in found for t in s] == want, text


def test_regexes_equal_python(vocabulary: automaton.Vocabulary) -> None:
    """Each pattern at every place where a match ends, by Python's own matcher."""
    patterns = [r"1[0-2]? days?", r"[^\W\d]{2}付(款|期){1,2}", r"\d{1,3}\s(a|bc?)"]
    arena = automaton.compile_triggers([[Regex(p)] for p in patterns], vocabulary)
    single = {t: i for i, t in enumerate(vocabulary.token_bytes) if t and len(t) == 1}
    rng = random.Random(5)
    pieces = ["1", "12", "１", " day", " DAYS", "付", "款", "期", "a", "é", "b", "c", " ", "\u3000"]
    seen = 0
    for _ in range(400):
        text = "".join(rng.choice(pieces) for _ in range(12))
        folded = "".join(chr(ord(c) - 0xFEE0) if 0xFF01 <= ord(c) <= 0xFF5E else c for c in text)
        data = text.encode()
        if any(bytes([b]) not in single for b in data):
            continue
        want: list[set[int]] = [set() for _ in data]
        for i, pattern in enumerate(patterns):
            for end in range(1, len(text) + 1):
                if any(re.compile(pattern, re.I).fullmatch(folded, k, end) for k in range(end)):
                    want[len(text[:end].encode()) - 1].add(i)
        assert events_of(arena, [[single[bytes([b])] for b in data]])[0] == want, text
        seen += sum(map(bool, want))
    assert seen > 50 or not single


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"(a)\1", "back-reference"),
        (r"a(?=b)", "lookahead"),
        (r"a+", "without an end"),
        (r"^a", "anchor"),
        (r"(a{1,100}){1,100}", "shorten the repeats"),
        (r"a.{30}b", "states"),
        (r"a?", "empty text"),
        (r"(a", "cannot be read"),
    ],
)
def test_other_regexes_are_refused(
    vocabulary: automaton.Vocabulary, pattern: str, message: str
) -> None:
    with pytest.raises(ZerolayerError, match=message):
        automaton.compile_triggers([[Regex(pattern)]], vocabulary)


def test_overlay_forbids_other_choices(byte_level: Any) -> None:
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    overlay = automaton.compile_overlay(["Lisbon"], vocabulary, others=["Porto", "Lisbon Court"])
    for text, allowed in [
        (" may be Porto", False),
        (" may be Lisbon.", True),
        (" may be Lisbon Court", False),
        (" is Lisbon, not", True),
        (" is in", False),
    ]:
        state = torch.full((1,), automaton.start_state(overlay), dtype=torch.int32)
        one = torch.ones(1, dtype=torch.int32)
        dead = False
        for token in byte_level(text).input_ids:
            logits = torch.zeros(1, len(vocabulary.token_bytes))
            ops.apply_decisions(logits, state, overlay, overlay)
            dead = dead or bool(logits[0, token] < 0)
            ops.scan_tokens(torch.tensor([[token]]), one, state, overlay, overlay)
        assert dead is not allowed, text


def test_flipped_bytes_never_crash(byte_level: Any) -> None:
    """With the checksum made right again, an arena is refused or runs within its tables."""
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    trigger = automaton.compile_triggers([["rent"], ["notice period"]], vocabulary)
    overlay = automaton.compile_overlay(["45 days"], vocabulary)
    rng = random.Random(1)
    passed = 0
    for arena in (trigger, overlay):
        header = 192 // 8
        for _ in range(300):
            altered = arena.clone()
            for _ in range(rng.choice([1, 2, 8])):
                altered[rng.randrange(24, len(arena))] = rng.randrange(256)
            digest = 1469598103934665603
            for word in altered.view(torch.int64)[header:].tolist():
                digest = ((digest ^ (word % 2**64)) * 1099511628211) % 2**64
            signed = digest - 2**64 if digest >= 2**63 else digest
            altered.view(torch.int64)[2] = signed
            try:
                automaton.validate(altered)
            except ZerolayerError as error:
                assert "checksum" not in str(error)
                continue
            passed += 1
            states = torch.full((1,), automaton.start_state(altered), dtype=torch.int32)
            tokens = torch.tensor([[rng.randrange(500) for _ in range(50)]])
            ops.scan_tokens(tokens, torch.tensor([50], dtype=torch.int32), states, altered)
            ops.apply_decisions(torch.zeros(1, 300), states, altered)
            automaton.event_sets(altered)
    assert passed > 20


def test_cache_rebuilds_a_damaged_file(
    byte_level: Any, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    vocabulary = automaton.Vocabulary.from_tokenizer(byte_level)
    made = cached_triggers([["rent"]], vocabulary)
    (file,) = tmp_path.rglob("*.arena")
    assert torch.equal(cached_triggers([["rent"]], vocabulary), made)
    file.write_bytes(file.read_bytes()[:-9])
    assert torch.equal(cached_triggers([["rent"]], vocabulary), made)
    assert "damaged" in caplog.text and len(file.read_bytes()) == len(made)
