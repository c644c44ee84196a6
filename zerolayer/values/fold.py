"""Running text folded for finding: one spelling for what Markdown, width and wrapping vary.

Offsets of the folded text lead back to code points of the original.
"""

from __future__ import annotations

import re

# Stands where a value cannot continue: a paragraph's end, a list mark, a heading.
BARRIER = "\x1f"

_FULL_WIDTH = {c: chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)}
_SPACES = dict.fromkeys(map(ord, "\t\u00a0\u2002\u2003\u2007\u2009\u202f\u3000"), " ")
_OTHER = {
    ord("￥"): "¥", ord("−"): "-", ord("‑"): "-", ord("‐"): "-", ord("﹪"): "%",
    ord("’"): "'", ord("～"): "~", ord("〜"): "~",
}  # fmt: skip
_MAP = {**_FULL_WIDTH, **_SPACES, **_OTHER}
_DROPPED = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\r")
_LINE_MARK = re.compile(r"(?:> ?)*(?:#{1,6} |[-*+•] |(?:[-*+] +)?\d{1,3}[.)、] ?(?!\d))")
_QUOTE = re.compile(r"(?:> ?)+")
_ESCAPABLE = frozenset("\\`*_{}[]()#+-.!$%|~<>")


def is_cjk(char: str) -> bool:
    return "\u2e80" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff"


def fold(text: str) -> tuple[str, list[int]]:
    """The folded text and, for each of its characters, the offset of the original one.

    Full-width signs become half-width, runs of white space one space (none beside a Chinese
    sign where a line breaks), Markdown marks vanish. Letters keep their case.
    """
    source = text.translate(_MAP)
    out: list[str] = []
    offsets: list[int] = []
    size = len(source)

    def put(char: str, at: int) -> None:
        out.append(char)
        offsets.append(at)

    i = 0
    line_start = True
    while i < size:
        char = source[i]
        if line_start:
            line_start = False
            j = i
            while j < size and source[j] == " " and j - i < 16:
                j += 1
            mark = _LINE_MARK.match(source, j)
            # "thirty (" at the end of a line and "30) days" below are one value.
            opened = "".join(out[-2:]).rstrip().endswith("(")
            if mark and mark.group() and not opened:
                put(BARRIER, i)
                i = mark.end()
                continue
            quote = _QUOTE.match(source, j)
            if quote:
                i = quote.end()
                continue
        if char == "\n" or char == " ":
            j = i
            breaks = 0
            while j < size and (source[j] == " " or source[j] == "\n" or source[j] == "\r"):
                breaks += source[j] == "\n"
                j += 1
            line_start = breaks > 0
            if breaks > 1:
                put(BARRIER, i)
            elif out and out[-1] != " " and out[-1] != BARRIER:
                following = source[j] if j < size else ""
                beside_cjk = is_cjk(out[-1]) or is_cjk(following)
                if not (breaks and beside_cjk):
                    put(" ", i)
            i = j
            continue
        if char in "*_`~":
            before = source[i - 1] if i else " "
            after = source[i + 1] if i + 1 < size else " "
            between = before.isalnum() and after.isalnum()
            # 3*5, snake_case and 3~5 are no marks.
            kept = (
                (char == "*" and before.isdigit() and after.isdigit())
                or (char == "_" and between and before.isascii() and after.isascii())
                or (char == "~" and before != "~" and after != "~")
            )
            if kept:
                put(char, i)
            i += 1
            continue
        if char in _DROPPED:
            i += 1
            continue
        if char == "\\" and i + 1 < size and source[i + 1] in _ESCAPABLE:
            put(source[i + 1], i + 1)
            i += 2
            continue
        put(char, i)
        i += 1
    return "".join(out), offsets


def lower(text: str) -> str:
    """Lower case, character by character, so that offsets stay."""
    return "".join(low if len(low := c.lower()) == 1 else c for c in text)
