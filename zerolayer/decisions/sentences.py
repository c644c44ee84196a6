"""A text in parts that can be judged alone: clauses of a document, sentences, rows, list items.

Offsets are code points of the text as it came; folding keeps every character at its place.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from zerolayer.readings import Slot

# Longer parts are cut at white space: the work on a part grows with its length.
LONGEST_PART = 2000
# Between the parts of a name with "…".
LONGEST_GAP = 240

# A list mark or clause number opens a line or follows the end of a sentence; "(60)" alone in a
# wrapped line belongs to a value.
_MARKER = re.compile(
    r"(?:^|(?<=[\n.。!！?？:：;；]))[ \t]*"
    r"(?:[-*•+][ \t]+|#{1,6}[ \t]+|>[ \t]+|(?<!\d\.)\d{1,3}[.)][ \t]+(?=\D)|"
    r"(?:(?<=[.。!！?？:：;；]\n)|^)\(\d{1,3}\)[ \t]+|§§?[ \t]*\d+[a-z]?[ \t]+|"
    r"第[一二三四五六七八九十百零〇\d]+[条款章项][ \t\u3000]+|\|)"
)
_BREAK = re.compile(
    r"\n[ \t]*(?:\n|$)"  # blank line
    r"|(?<=[.。!！?？;；:：|])[ \t]*\n(?![ \t]*[a-z])"  # line that ended its sentence
    r"|\n(?=[ \t]*(?:[-*•+] |\d{1,3}[.)] |§|\||#|第[一二三四五六七八九十百]+条))"
)
_STOP = re.compile(
    r"[.!?][\"”’*_)\]]*[ \t\n]+(?=[\"“‘*_(\[|]*[A-Z0-9§€$£¥\u4e00-\u9fff])|[。！？]+[”’*）]*"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:cl|no|nos|art|arts|sec|para|approx|vs|mr|mrs|ms|dr|st|fig|ch|pp?|incl|max|min|resp|"
    r"ca|cf|usd?|ltd|inc|co)|\b[a-z]\.[a-z])\.$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Part:
    """One sentence, list item or table row: `text[start:end]`."""

    start: int
    end: int
    question: bool


def fold(text: str) -> str:
    """Lower case, half width, plain blanks; as long as `text`, character by character."""
    return "".join(_fold_character(c) for c in text)


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    if character in "\n\r\t\u3000\xa0":
        return " "
    if character in "’‘`":
        return "'"
    folded = unicodedata.normalize("NFKC", character).lower()
    return folded if len(folded) == 1 else character


def split(text: str) -> list[Part]:
    """The parts of `text` in order, without list marks and clause numbers."""
    cuts = {0, len(text)}
    for match in _BREAK.finditer(text):
        cuts.add(match.end())
    for match in _STOP.finditer(text):
        head = text[max(0, match.start() - 12) : match.start() + 1]
        if not _ABBREVIATION.search(head):
            cuts.add(match.end())
    marks = [(m.start(), m.end()) for m in _MARKER.finditer(text)]
    for start, end in marks:
        cuts.update((start, end))
    ordered = sorted(cuts)
    skipped = set(marks)
    parts = []
    for start, end in pairwise(ordered):
        if (start, end) in skipped or not text[start:end].strip():
            continue
        parts.extend(_bounded(text, start, end))
    return parts


def ends_sentence(text: str) -> bool:
    """Whether `text` would end its last part if a new sentence followed ("approx." does not)."""
    return len(split(text + " A")) > len(split(text))


def _bounded(text: str, start: int, end: int) -> list[Part]:
    parts = []
    while start < end:
        stop = end
        if end - start > LONGEST_PART:
            blank = text.rfind(" ", start + LONGEST_PART // 2, start + LONGEST_PART)
            stop = blank if blank > start else start + LONGEST_PART
        body = text[start:stop].rstrip(' \n\t*_"”’)）|')
        question = body.endswith(("?", "？")) or bool(re.search(r"[吗呢]$", body))
        parts.append(Part(start, stop, question))
        start = stop
    return parts


@dataclass(frozen=True)
class Cue:
    """A place where a slot is named; offsets in the whole text."""

    slot: int
    start: int
    end: int


def find_cues(folded: str, slots: tuple[Slot, ...]) -> list[Cue]:
    """Names of slots in a folded text: in order, the longest first where they overlap."""
    found: list[Cue] = []
    for index, slot in enumerate(slots):
        for name in (slot.name, *slot.also):
            for match in _name_pattern(name).finditer(folded):
                found.append(Cue(index, *match.span("cue")))
    found.sort(key=lambda c: (c.start, c.start - c.end))
    kept: list[Cue] = []
    for cue in found:
        if not kept or cue.start >= kept[-1].end:
            kept.append(cue)
        elif cue.end - cue.start > kept[-1].end - kept[-1].start:
            kept[-1] = cue
    return kept


@lru_cache(maxsize=4096)
def _name_pattern(name: str) -> re.Pattern[str]:
    """A name as a pattern whose group `cue` is the name itself.

    A name with "…" is a wording whose parts stand in one sentence in this order, at most
    LONGEST_GAP characters apart; parts in brackets must stand there too and are no part of the
    name: "(renewed) … prior to".
    """
    parts = [part.strip() for part in re.split(r"…|\.\.\.", name)]
    own = next((i for i, part in enumerate(parts) if not part.startswith("(")), 0)
    pieces = [_words_pattern(part.strip("()")) for part in parts]
    pieces[own] = f"(?P<cue>{pieces[own]})"
    return re.compile(f".{{0,{LONGEST_GAP}}}?".join(pieces), re.DOTALL)


def _words_pattern(name: str) -> str:
    """Words in any white space and emphasis, plural or possessive; hyphens count as blanks."""
    words = re.split(r"[\s\-]+", fold(name.replace("_", " ")).strip())
    pieces = []
    for word in words:
        if re.search(r"[\u3400-\u9fff]", word):
            pieces.append(r"[\s*_]*".join(re.escape(c) for c in word))
        else:
            stem = re.escape(word[:-1]) + "(?:y|ies)" if word.endswith("y") else re.escape(word)
            pieces.append(rf"{stem}(?:s|es)?(?:'s|s')?")
    body = r"[\s\-*_]+".join(pieces)
    # A Chinese name may touch a digit ("退货期限7天"); a Latin one ends where its word ends.
    before = r"(?<![a-z0-9])" if words[0][:1].isascii() else ""
    after = r"(?![a-z0-9])" if words[-1][-1:].isascii() else ""
    return before + body + after


_SUFFIX = re.compile(
    r"(?:ations?|ments?|ances?|ences?|ables?|ibles?|ings?|ions?|ers?|ors?|ies|ied|ed|es|s|ly|y|e)$"
)


def stem(word: str) -> str:
    """A crude stem: "payable", "payment" and "pays" share "pay"."""
    base = _SUFFIX.sub("", word)
    return base if len(base) >= 3 else word


def stems(folded: str) -> set[str]:
    """Stems of the English words of a folded text."""
    return {stem(word) for word in re.findall(r"[a-z]+(?:'[a-z]+)?", folded)}
