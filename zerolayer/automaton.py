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
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

import zerolayer._host as _host
from zerolayer.errors import ZerolayerError
from zerolayer.regex import REPEAT, Regex, either, literal_set, one_of, program_of, sequence
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
# What would change a value that ends in a number: "20" + ".5", "twenty" + "-five", "二十" + "八".
TAILS = (
    *(f"{sep}{d}" for sep in (",", ".", "，") for d in range(10)),
    *(f"{sep}{word}" for sep in (" ", "-") for word in (*UNITS, "hundred", *SCALES)),
    "%",
    " %",
    " percent",
    *sorted(set(DIGIT_ZH) | set("万亿千百十点余多几半")),
)
_ENDS_IN_NUMBER = re.compile(
    rf"(?:[\d{''.join(sorted(set(DIGIT_ZH) | set('万亿千百十')))}]|"
    rf"\b(?:{'|'.join((*UNITS, *TEENS, *TENS, 'hundred', *SCALES))}))$",
    re.IGNORECASE,
)
SENTENCE_ENDS = (".", "!", "?", "\n", "。", "！", "？")
_PREPOSITIONS = frozenset("of for in on at to from by with under between within per".split())
_BLANKS = (" ", "\n", "\t", "\r", "\u3000", "\u00a0")


class Vocabulary:
    """The bytes of every token id; None for control tokens, which reset the automaton.

    Args:
        dummy_prefix: the first blank of a text is the tokenizer's own (SentencePiece, WordPiece).
        spaced: every token begins with a blank that the text need not have (WordPiece).
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes | None],
        dummy_prefix: bool = False,
        spaced: bool = False,
    ) -> None:
        self.token_bytes = list(token_bytes)
        self.dummy_prefix = dummy_prefix
        self.spaced = spaced
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
            # Decoders read added tokens as all others.
            tokens[i] = read(plain.get(i, text))
        spaced = data.get("model", {}).get("type") == "WordPiece"
        return cls(tokens, spaced or _strips_prefix(data.get("decoder")), spaced)

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


def _strips_prefix(decoder: Any) -> bool:
    """Whether decoding takes away the blank before a text's first token."""
    if not isinstance(decoder, dict):
        return False
    if decoder.get("type") == "Sequence":
        return any(map(_strips_prefix, decoder.get("decoders", ())))
    if decoder.get("type") == "Metaspace":
        return bool(decoder.get("prepend_scheme", "always") != "never")
    return bool(decoder.get("type") == "Strip" and decoder.get("start", 0) > 0)


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

        def word_piece(text: str) -> bytes:
            if text.startswith(prefix):
                return text[len(prefix) :].encode()
            # Signs and Chinese characters are always tokens of their own, blank or not.
            alone = len(text) == 1 and not (text.isascii() and text.isalnum())
            return text.encode() if alone else b" " + text.encode()

        return word_piece
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


Pattern = tuple[int, list[int], bool, bool, bool]


def compile_triggers(phrases: Sequence[Sequence[str | Regex]], vocabulary: Vocabulary) -> Tensor:
    """An automaton that finds all phrases at once; uint8 arena.

    Event i stands for phrases[i], a list of surface forms and regular expressions. Case and width
    are folded, any run of white space stands for a blank; the head word of an English phrase is
    found in its plural and possessive too. A phrase that begins or ends in a Latin letter or digit
    is found as a whole word only: its event comes with the first byte after it.

    Raises:
        ZerolayerError: an empty phrase, a regular expression outside the subset, or an automaton
            that would grow too large.
    """
    return compile_patterns(patterns_of(phrases, vocabulary), vocabulary)


def patterns_of(phrases: Sequence[Sequence[str | Regex]], vocabulary: Vocabulary) -> list[Pattern]:
    """The phrases as programs for the compiler: (trigger, program, left, right, bounded)."""
    patterns: list[Pattern] = []
    for i, forms in enumerate(phrases):
        for form in forms:
            if isinstance(form, Regex):
                patterns.append((i, program_of(form, f"trigger {i}"), False, False, True))
                continue
            if not form.strip():
                raise ZerolayerError(f"trigger {i} has an empty phrase; write its text or drop it")
            patterns.append(_phrase(i, form.strip(), vocabulary.spaced))
    return patterns


def compile_patterns(patterns: Sequence[Pattern], vocabulary: Vocabulary) -> Tensor:
    """The arena of `patterns_of`'s patterns."""
    try:
        made = _host.compile_triggers(list(patterns), vocabulary.native, vocabulary.dummy_prefix)
    except ValueError as error:
        raise ZerolayerError(
            f"triggers cannot be compiled: {error}; shorten repeats, or write alternatives out"
        ) from error
    return from_bytes(made)


def _phrase(trigger: int, form: str, spaced: bool) -> Pattern:
    words = re.findall(r"\s+|[A-Za-z]+|.", form, re.DOTALL)
    places = [k for k, word in enumerate(words) if word.isascii() and word.isalpha()]
    head = _head(words, places)
    blank = literal_set(_BLANKS)
    parts: list[list[int]] = []
    for k, word in enumerate(words):
        if word.isspace():
            parts.append([*blank, REPEAT, 1, -1])
        elif k in places:
            inflect = k == head or k == len(words) - 1
            parts.append(
                either([_letters(f) for f in _inflected(word)]) if inflect else _letters(word)
            )
        else:
            parts.append(_letters(word))
        if spaced and not word.isalnum() and not word.isspace():
            parts.append([*blank, REPEAT, 0, -1])
    return trigger, sequence(parts), _is_word(form[0]), _is_word(form[-1]), False


def _letters(text: str) -> list[int]:
    return sequence([one_of([(ord(c), ord(c))]) for c in text])


def _head(words: list[str], places: list[int]) -> int:
    """The head of an English noun phrase: the word before its first preposition, else the last."""
    for before, at in pairwise(places):
        if words[at].lower() in _PREPOSITIONS:
            return before
    return places[-1] if places else -1


def _inflected(word: str) -> list[str]:
    """The word, its regular plural, and the possessives of both."""
    low = word.lower()
    forms = {word, word + "s"}
    if low.endswith(("s", "x", "z", "ch", "sh")):
        forms.add(word + "es")
    if len(low) > 1 and low.endswith("y") and low[-2] not in "aeiou":
        forms.add(word[:-1] + "ies")
    marks = ("'", "\u2019")
    return sorted(
        forms
        | {f + mark + "s" for f in forms for mark in marks}
        | {f + mark for f in forms for mark in marks if f.lower().endswith("s")}
    )


def _is_word(c: str) -> bool:
    return c.isascii() and c.isalnum()


def compile_overlay(
    renderings: Sequence[str],
    vocabulary: Vocabulary,
    bonus: float | None = None,
    leads: Sequence[str] = LEADS,
    others: Sequence[str] = (),
) -> Tensor:
    """An overlay for the text that follows a trigger; uint8 arena.

    Text without a value passes freely. After a lead (" is", "：") a rendering has to follow;
    elsewhere a value may begin only as one of the renderings. Once a rendering is complete, what
    follows must not change it ("500,000" may not go on with ",000" or " million").

    Args:
        renderings: ways to say the settled value; the white space in them is literal.
        bonus: None forbids everything else (enforce); a number of nats favours the renderings.
        others: further values that must not begin at a word's start unless as a rendering: a
            slot's other choices, names of months.

    Raises:
        ZerolayerError: no rendering.
    """
    texts = [r for r in renderings if r]
    if not texts:
        raise ZerolayerError("an overlay needs at least one rendering")
    made = _host.compile_overlay(
        [t.encode() for t in texts],
        [t.encode() for t in texts if _ENDS_IN_NUMBER.search(t)],
        [v.encode() for v in (*VALUE_STARTS, *others) if v],
        [x.encode() for x in leads],
        [t.encode() for t in TAILS],
        vocabulary.native,
        bonus or 0.0,
    )
    return from_bytes(made)


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


def from_bytes(data: bytes) -> Tensor:
    """An arena's bytes as a tensor."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _bytes(arena: Tensor) -> Any:
    return arena.contiguous().numpy()


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


def info(arena: Tensor) -> dict[str, Any]:
    """Number of states, classes, exceptions and triggers, bytes, bytes per state, layout, start
    and reset state."""
    return dict(_host.info(_bytes(arena)))
