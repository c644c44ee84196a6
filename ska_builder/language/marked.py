"""Marked text: prose as one string in which marks stand around bold and quoted words.

`⟦…⟧` are bold words, `⟪…⟫` quoted ones; both name slots, terms and phrases. A mark around a value
or around a word of grammar ("must **not** exceed **30 days**") is emphasis and taken off.
"""
# ruff: noqa: E501 - a pattern stands on one line, so that it can be compared with its neighbours

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from ska_builder.language.words import WORDS
from zerolayer.values import find_values

MARK = re.compile(r"[⟦⟪]([^⟦⟪⟧⟫]*)[⟧⟫]")
_QUOTED = re.compile(
    r"\"([^\"\n]*?)\"|“([^“”]*?)”|「([^「」]*?)」|『([^『』]*?)』|„([^„“”]*?)[“”]|«([^«»]*?)»"
)
_EMPHASIS = re.compile(
    r"(?:must|may|shall|should|can|do|does|is|are|will)?\s*(?:not|never|no|only|always|all|any|must|shall|may|and|or|"
    r"later|earlier|newer|older|higher|lower|first|unless|except|before|after|at least|at most|no later than|within)"
    r"|不得|必须|严禁|禁止|须|应当|不|仅|只能|至少|至多|务必|一律",
    re.IGNORECASE,
)
_INLINE = MarkdownIt("commonmark")


def inline(markdown: str) -> str:
    """Markdown of one block as marked text; line breaks stay."""
    tokens = _INLINE.parseInline(markdown)
    parts: list[str] = []
    for token in tokens[0].children or [] if tokens else []:
        if token.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif token.type == "strong_open":
            parts.append("⟦")
        elif token.type == "strong_close":
            parts.append("⟧")
        elif token.type in ("text", "code_inline", "text_special"):
            parts.append(token.content)
    return mark("".join(parts))


def mark(text: str) -> str:
    """Marks for quotation marks, and for the `**` that CommonMark leaves beside 「 and the like."""
    text = re.sub(r"\*\*([^*\n]+?)\*\*", r"⟦\1⟧", text)
    text = _QUOTED.sub(lambda m: f"⟪{next(g for g in m.groups() if g is not None)}⟫", text)
    text = re.sub(r"⟪\s*⟦([^⟦⟧⟪⟫]*)⟧\s*⟫|⟦\s*⟪([^⟦⟧⟪⟫]*)⟫\s*⟧", lambda m: f"⟪{m[1] or m[2]}⟫", text)
    return MARK.sub(_kept, text)


def _kept(match: re.Match[str]) -> str:
    inside = match[1].strip()
    if not inside:
        return ""
    values = find_values(inside)
    is_value = any(v.start == 0 and v.end == len(inside) for v in values)
    return inside if is_value or _EMPHASIS.fullmatch(inside) else match[0]


def plain(text: str) -> str:
    """Marked text without its marks."""
    return re.sub(r"[⟦⟪⟧⟫]", "", text)


def marks(text: str) -> list[str]:
    """The marked words, in order."""
    return [m[1].strip() for m in MARK.finditer(text)]


_END = re.compile(r"[。！？!?]|\.(?![\w.,;])|…(?=\s|$)")
_CLOSERS = "」』”\"')）⟧⟫]"
_ABBREVIATION = re.compile(
    r"(?:^|[\s(（⟦⟪])(?:" + "|".join(re.escape(a) for a in WORDS["abbreviations"]) + r"|[A-Z])$",
    re.IGNORECASE,
)


def split(text: str) -> list[tuple[int, str]]:
    """(offset, sentence) of marked text. No end inside brackets or quotation marks, after an
    abbreviation, or before a word that goes on in lower case."""
    found: list[tuple[int, str]] = []
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if end <= start:
            continue
        while end < len(text) and text[end] in _CLOSERS:
            end += 1
        before, rest = text[start:end], text[end:]
        if _open(before) or (
            match[0] == "." and not _full_stop(before, text[start : match.start()], rest)
        ):
            continue
        found.append((start, before))
        start = end
    if text[start:].strip():
        found.append((start, text[start:]))
    trimmed = [(at + len(s) - len(s.lstrip()), s.strip()) for at, s in found]
    return [(at, s) for at, s in trimmed if plain(s).strip(" .。")]


def _open(text: str) -> bool:
    return any(text.count(a) > text.count(b) for a, b in ("()", "（）", "⟦⟧", "⟪⟫", "「」", "“”"))


def _full_stop(sentence: str, word: str, rest: str) -> bool:
    following = rest.lstrip()
    if not following:
        return True
    if not rest[0].isspace() and not _chinese(rest[0]) and rest[0] not in "⟦⟪":
        return False
    if _ABBREVIATION.search(word):
        # "Inc." or "etc." may close a sentence, but only before a capital that begins another.
        return bool(re.search(r"\b(?:etc|inc|ltd|co|a\.m|p\.m)$", word, re.IGNORECASE)) and bool(
            re.match(r"[⟦⟪]|(?:The|An?|If|When|Never|Do|No|On|Of|Where|Any)\b", following)
        )
    return not following[0].islower()


def _chinese(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or character in "，。；：、「」（）《》“”"


_GRAMMAR_EN = re.compile(
    r"\b(?:the|an?|must|shall|may|not|be|is|are|means?|of|or|and|to|in|when|if|than|over|has|have|at|by|"
    r"never|do|no|on|for|with|any|it|as|one|only|within|prevails?|ask|first|then|unless|except)\b",
    re.IGNORECASE,
)
_GRAMMAR_ZH = re.compile(
    r"须|不得|应当|应|必须|是指|系指|视为|为准|优先|不超过|时|的|以|为|由|一律|可|至|但|除|严禁|禁止|勿|或|与|和|在|于|是|将|请|不"
)


def language(text: str) -> str:
    """ "en" or "zh": the language of a sentence's grammar, whatever its terms are in."""
    bare = MARK.sub(" ", text)
    english = len(_GRAMMAR_EN.findall(bare))
    chinese = len(_GRAMMAR_ZH.findall(bare))
    if english == chinese:
        return "zh" if re.search(r"[\u3400-\u9fff]", plain(text)) and not english else "en"
    return "en" if english > chinese else "zh"


def unbroken(sentence: str) -> str:
    """A sentence on one line: a break is a blank in English and nothing in Chinese."""
    if "\n" not in sentence:
        return re.sub(r"[ \t]+", " ", sentence.strip())
    joint = " " if language(sentence) == "en" else ""
    return re.sub(r"[ \t]+", " ", re.sub(r"[ \t]*\n[ \t]*", joint, sentence.strip()))
