"""Token automata: a vocabulary's bytes, triggers, and overlays for settled values.

The compiler is C++ (`zerolayer._host`); an arena is an opaque row of bytes that
`torch.ops.zerolayer.scan_tokens` and `apply_decisions` run on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from zerolayer import _host
from zerolayer.errors import ZerolayerError
from zerolayer.values.numerals import DIGIT_ZH, SCALES, TEENS, TENS, UNITS

# Texts after which a value has to follow at once.
LEADS = (" is", " are", " amounts to", " equals", ":", "：", "是", "为")
# Beginnings of any value; letters count at a word's start alone.
VALUE_STARTS = (
    *"0123456789",
    *(chr(ord("０") + d) for d in range(10)),
    "$",
    "€",
    "£",
    "¥",
    "￥",
    *(w for group in (UNITS, TEENS, TENS, SCALES) for w in group),
    *(w.capitalize() for group in (UNITS, TEENS, TENS) for w in group),
    "USD",
    "EUR",
    "GBP",
    "CNY",
    "人民币",
    "百分之",
    *sorted(set(DIGIT_ZH) | set("十百千万亿")),
)
# What would change a value that ends in a digit.
TAILS = (
    *(f"{sep}{d}" for sep in (",", ".", "，") for d in range(10)),
    *(f" {scale}" for scale in SCALES),
    "%",
    " %",
    " percent",
    *"万亿千百十",
)
SENTENCE_ENDS = (".", "!", "?", "\n", "。", "！", "？")
_FULL_WIDTH = {chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)}
_BLANKS = (" ", "\n", "\t", "\r", "\u3000", "\u00a0")


class Vocabulary:
    """The bytes of every token id; None for control tokens, which reset the automaton."""

    def __init__(self, token_bytes: Sequence[bytes | None]) -> None:
        self.token_bytes = list(token_bytes)
        self.native = _host.Vocabulary(self.token_bytes)
        ends = {mark.encode()[-1] for mark in SENTENCE_ENDS}
        # By the last byte alone, as a token may hold only the end of a sign's UTF-8.
        self.sentence_ends = frozenset(
            i for i, t in enumerate(self.token_bytes) if t and t[-1] in ends
        )
        self.value_starts = frozenset(
            i for i, t in enumerate(self.token_bytes) if t and _may_begin_value(t)
        )

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, logits_width: int | None = None) -> Vocabulary:
        """Read a Hugging Face fast tokenizer: byte-level BPE, byte fallback with SentencePiece's
        space sign, or WordPiece.

        Args:
            logits_width: width of the model's logits; ids beyond the tokenizer are no text.

        Raises:
            ZerolayerError: a tokenizer without a fast backend, or of an unknown kind.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ZerolayerError(
                f"{type(tokenizer).__name__} has no fast tokenizer; load it with use_fast=True"
            )
        data = json.loads(backend.to_str())
        read = _reader(data)
        control = {int(t["id"]) for t in data.get("added_tokens", ()) if t.get("special")}
        plain = {int(t["id"]): t["content"] for t in data.get("added_tokens", ())}
        table = backend.get_vocab(with_added_tokens=True)
        size = max(logits_width or 0, max(table.values(), default=-1) + 1)
        tokens: list[bytes | None] = [None] * size
        for text, i in table.items():
            if i in control:
                continue
            tokens[i] = plain[i].encode() if i in plain else read(text)
        return cls(tokens)

    def fingerprint(self) -> str:
        """Hash over all tokens' bytes; a pack fits tokenizers that agree in it."""
        digest = hashlib.sha256()
        for token in self.token_bytes:
            digest.update(b"\xff" if token is None else len(token).to_bytes(4, "little") + token)
        return digest.hexdigest()[:32]


_WORDS = frozenset(v.lower() for v in VALUE_STARTS if v.isascii() and v.isalpha())
_SIGNS = tuple(v for v in VALUE_STARTS if not (v.isascii() and v.isalpha()))
_FIRST_BYTES = frozenset(v.encode()[:n] for v in _SIGNS for n in range(1, len(v.encode())))


def begins_value(text: str) -> bool | None:
    """Whether a text, from a word's start on, begins a value; None while it may become one."""
    text = text.lstrip()
    if text.startswith(_SIGNS):
        return True
    if text.endswith("\ufffd"):  # a character that is not complete yet
        return None
    word = re.match(r"[A-Za-z]*", text)[0].lower()  # type: ignore[index]
    if len(word) < len(text):
        return word in _WORDS
    return None if any(w.startswith(word) for w in _WORDS) else False


def _may_begin_value(token: bytes) -> bool:
    if token in _FIRST_BYTES:
        return True
    text = token.decode("utf-8", "ignore")
    # Letters count at a word's start alone: after a blank, or as a capital.
    return bool(text.strip()) and not text[:1].islower() and begins_value(text) is not False


def _reader(data: dict[str, Any]) -> Any:
    """How a token's text becomes bytes, decided by the tokenizer's own description."""
    steps = json.dumps([data.get("pre_tokenizer"), data.get("decoder")])
    model = data.get("model", {})
    if "ByteLevel" in steps:
        table = _byte_level()
        return lambda text: (
            bytes(table[c] for c in text) if all(c in table for c in text) else text.encode()
        )
    if model.get("type") == "WordPiece":
        prefix = model.get("continuing_subword_prefix", "##")
        return lambda text: (
            text[len(prefix) :].encode() if text.startswith(prefix) else b" " + text.encode()
        )
    if model.get("type") in ("BPE", "Unigram"):
        return _sentencepiece
    raise ZerolayerError(
        f"tokenizer of kind {model.get('type')!r} is unknown; "
        "byte-level BPE, SentencePiece and WordPiece are supported"
    )


def _sentencepiece(text: str) -> bytes:
    if re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", text):
        return bytes([int(text[3:5], 16)])
    return text.replace("\u2581", " ").encode()


@cache
def _byte_level() -> dict[str, int]:
    """GPT-2's map from printable signs to bytes."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in shown}
    extra = 0
    for b in range(256):
        if b not in shown:
            table[chr(256 + extra)] = b
            extra += 1
    return table


def compile_triggers(phrases: Sequence[Sequence[str]], vocabulary: Vocabulary) -> Tensor:
    """An automaton that finds all phrases at once; uint8 arena.

    Event i stands for phrases[i], a list of surface forms. Case and width are folded, any run of
    white space stands for a blank, an English plural or possessive ending is taken. A phrase that
    begins or ends in a Latin letter or digit is found as a whole word only: its event comes with
    the first byte after it.

    Raises:
        ZerolayerError: an empty phrase, or more states than the format has room for.
    """
    compiled = []
    for i, forms in enumerate(phrases):
        for form in forms:
            if not form.strip():
                raise ZerolayerError(f"trigger {i} has an empty phrase")
            compiled.append(_phrase(i, form.strip()))
    try:
        return _arena(_host.compile_triggers(compiled, vocabulary.native))
    except ValueError as error:
        raise ZerolayerError(f"triggers cannot be compiled: {error}") from error


def _phrase(
    trigger: int, form: str
) -> tuple[int, list[tuple[list[bytes], bool, bool]], bool, bool]:
    positions: list[tuple[list[bytes], bool, bool]] = []
    for piece in re.findall(r"\s+|.", form, re.DOTALL):
        if piece.isspace():
            positions.append(([b.encode() for b in _BLANKS], True, False))
            continue
        forms = {piece, piece.lower(), piece.upper()}
        forms |= {_FULL_WIDTH[f] for f in list(forms) if f in _FULL_WIDTH}
        positions.append(([f.encode() for f in sorted(forms)], False, False))
    left, right = _is_word(form[0]), _is_word(form[-1])
    if right and form[-1].isalpha():
        endings = ["s", "S", "es", "'s", "\u2019s", "s'", "s\u2019"]
        positions.append(([e.encode() for e in endings], False, True))
    return trigger, positions, left, right


def _is_word(c: str) -> bool:
    return c.isascii() and c.isalnum()


def compile_overlay(
    renderings: Sequence[str],
    vocabulary: Vocabulary,
    bonus: float | None = None,
    leads: Sequence[str] = LEADS,
) -> Tensor:
    """An overlay for the text that follows a trigger; uint8 arena.

    Text without a value passes freely. After a lead (" is", "：") a rendering has to follow;
    elsewhere a value may begin only as one of the renderings. Once a rendering is complete, what
    follows must not change it ("500,000" may not go on with ",000" or " million").

    Args:
        renderings: ways to say the settled value; the white space in them is literal.
        bonus: None forbids everything else (enforce); a number of nats favours the renderings.

    Raises:
        ZerolayerError: no rendering.
    """
    texts = [r.encode() for r in renderings if r]
    if not texts:
        raise ZerolayerError("an overlay needs at least one rendering")
    made = _host.compile_overlay(
        texts,
        [v.encode() for v in VALUE_STARTS],
        [x.encode() for x in leads],
        [t.encode() for t in TAILS],
        vocabulary.native,
        bonus or 0.0,
    )
    return _arena(made)


class Stream:
    """One sequence's place in an arena, stepped on the host a token at a time.

    Same as `scan_tokens` on a stream of one, without the cost of an op call. `state`, int32 [1],
    lies where `apply_decisions` can read it.
    """

    def __init__(self, arena: Tensor) -> None:
        self.arena = arena
        self.state = torch.zeros(1, dtype=torch.int32)
        self._watcher = _host.Watcher(arena.numpy(), self.state.numpy())

    @property
    def place(self) -> int:
        """The state as a number; setting it moves the stream there."""
        return int(self._watcher.state)

    @place.setter
    def place(self, state: int) -> None:
        self._watcher.state = state

    @property
    def ended(self) -> bool:
        """Whether an overlay has ended here."""
        return bool(self._watcher.ended)

    def step(self, token: int) -> int:
        """Take one token; the event that it ends, or −1."""
        return int(self._watcher.step(token))


def _arena(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _bytes(arena: Tensor) -> bytes:
    return arena.numpy().tobytes()


def validate(arena: Tensor) -> None:
    """The full check of an arena from outside: checksum, then every offset, index and row.

    Raises:
        ZerolayerError: what is wrong with it.
    """
    error = _host.validate(_bytes(arena))
    if error:
        raise ZerolayerError(f"{error}; build the pack again with ska-build")


def event_sets(arena: Tensor) -> list[list[int]]:
    """The triggers of each event that `scan_tokens` may return."""
    return [list(s) for s in _host.event_sets(_bytes(arena))]


def start_state(arena: Tensor) -> int:
    """The state before the first token."""
    return int(_host.info(_bytes(arena))["start"])


def done_flags(arena: Tensor) -> bytes:
    """One byte per state; 1 where an overlay has ended."""
    return bytes(_host.done_flags(_bytes(arena)))


def info(arena: Tensor) -> dict[str, int]:
    """Number of states and classes, bytes, start and reset state."""
    return dict(_host.info(_bytes(arena)))
