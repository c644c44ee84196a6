"""Written numbers in English and Chinese, read exactly (Decimal, never float)."""

from __future__ import annotations

import re
from decimal import Decimal

UNITS = {w: i for i, w in enumerate("zero one two three four five six seven eight nine".split())}
TEENS = {
    w: i + 10
    for i, w in enumerate(
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    )
}
TENS = {
    w: (i + 2) * 10
    for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())
}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

_WORD = "|".join([*UNITS, *TEENS, *TENS, "hundred", *SCALES])
# Longest alternatives first: "sixteen" before "six". Runs are capped; no number has 24 words.
_WORD = "|".join(sorted(_WORD.split("|"), key=len, reverse=True))
RUN_EN = re.compile(
    rf"(?<![a-z0-9])(?:half a (?=million|billion)|an? (?=hundred|thousand|million|billion))?"
    rf"(?:{_WORD})(?![a-z0-9])"
    rf"(?:(?: and | ?- ?| )(?:{_WORD}|point|and a half)(?![a-z0-9])){{0,24}}"
)
_TOKEN_EN = re.compile(rf"half a|an? (?=[hmtb])|and a half|and|point|{_WORD}")


def parse_english(text: str, after_between: bool = False) -> tuple[Decimal, int] | None:
    """The longest number that `text` (lower case) begins with, and where it ends.

    `after_between`: an "and" parts two numbers ("between one hundred and two hundred").
    """
    total, current, scale = 0, 0, 10**15
    last, pending = "start", False
    end, value = 0, Decimal(0)
    tokens = list(_TOKEN_EN.finditer(text))
    i = 0
    while i < len(tokens):
        word = tokens[i].group()
        if word == "half a":
            following = tokens[i + 1].group() if i + 1 < len(tokens) else ""
            if last != "start" or following not in SCALES:
                break
            return Decimal(SCALES[following]) / 2, tokens[i + 1].end()
        if word.strip() in ("a", "an"):
            if last != "start":
                break
            current, last = 1, "unit"
            i += 1
            continue
        if word == "and":
            if last not in ("hundred", "scale") or after_between:
                break
            pending = True
            i += 1
            continue
        if word == "and a half":
            if last == "start" or pending:
                break
            return value + Decimal("0.5"), tokens[i].end()
        if word == "point":
            digits = ""
            for token in tokens[i + 1 :]:
                if token.group() not in UNITS:
                    break
                digits += str(UNITS[token.group()])
                end = token.end()
            if not digits or last == "start" or pending:
                break
            value += Decimal(f"0.{digits}")
            scaled = _TOKEN_EN.match(text, end + 1)
            if scaled and scaled.group() in SCALES:
                return value * SCALES[scaled.group()], scaled.end()
            return value, end
        if word in UNITS:
            fits = last in ("start", "tens", "hundred", "scale") and word != "zero"
            if word == "zero":
                if last != "start":
                    break
                following = tokens[i + 1].group() if i + 1 < len(tokens) else ""
                value, end, last = Decimal(0), tokens[i].end(), "unit"
                if following != "point":
                    return value, end
                i += 1
                continue
            if not fits:
                break
            current, last = current + UNITS[word], "unit"
        elif word in TEENS or word in TENS:
            if last not in ("start", "hundred", "scale"):
                break
            current += TEENS.get(word) or TENS[word]
            last = "tens" if word in TENS else "teen"
        elif word == "hundred":
            if not 0 < current < 100 or last == "hundred":
                break
            current, last = current * 100, "hundred"
        else:
            if current == 0 or SCALES[word] >= scale or last == "start":
                break
            scale = SCALES[word]
            total, current, last = total + current * scale, 0, "scale"
        pending = False
        end, value = tokens[i].end(), Decimal(total + current)
        i += 1
    return (value, end) if end else None


_DIGITS_ZH = {
    **{c: i for i, c in enumerate("零一二三四五六七八九")},
    **{c: i for i, c in enumerate("零壹贰叁肆伍陆柒捌玖")},
    "〇": 0, "○": 0, "两": 2, "兩": 2, "貳": 2, "叄": 3, "陸": 6, "幺": 1,
}  # fmt: skip
_SMALL_ZH = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_LARGE_ZH = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
DIGIT_ZH = "".join(_DIGITS_ZH)
RUN_ZH = re.compile(
    f"[{DIGIT_ZH}{''.join(_SMALL_ZH)}{''.join(_LARGE_ZH)}廿卅]{{1,32}}"
    f"(?:点[{DIGIT_ZH}]{{1,12}}[{''.join(_LARGE_ZH)}]{{0,2}})?"
)


def parse_digits_zh(text: str) -> int | None:
    """A numeral written digit by digit: 二〇二五 is 2025."""
    if not text or any(c not in _DIGITS_ZH for c in text):
        return None
    return int("".join(str(_DIGITS_ZH[c]) for c in text))


def parse_chinese(text: str) -> Decimal | None:
    """A whole Chinese numeral, common or formal: 三十, 一百二十, 壹佰贰拾万, 七点五; else None."""
    whole, point, fraction = text.partition("点")
    factor = 1
    while point and fraction and fraction[-1] in _LARGE_ZH:
        factor *= _LARGE_ZH[fraction[-1]]
        fraction = fraction[:-1]
    value = _whole_chinese(whole)
    if value is None:
        return None
    result = Decimal(value)
    if point:
        if any(c not in _DIGITS_ZH for c in fraction) or not fraction:
            return None
        result += Decimal("0." + "".join(str(_DIGITS_ZH[c]) for c in fraction))
    return result * factor


def _whole_chinese(text: str) -> int | None:
    if not text:
        return None
    text = text.replace("廿", "二十").replace("卅", "三十")
    if all(c in _DIGITS_ZH for c in text):
        # 二五 is no way to write a number in running text; 二〇二五 is a year or a code.
        return _DIGITS_ZH[text] if len(text) == 1 else parse_digits_zh(text)
    total = section = 0
    digit: int | None = None
    small, large = 10**4, 10**12
    zero = False
    previous = 0  # unit of the last sign, for the short form 一百二 = 120
    for c in text:
        if c in _DIGITS_ZH:
            if digit is not None and digit != 0:
                return None
            digit = _DIGITS_ZH[c]
            zero = zero or digit == 0
            continue
        if c in _SMALL_ZH:
            unit = _SMALL_ZH[c]
            if unit >= small:
                return None
            if digit in (None, 0):
                if unit != 10 or (section % 100 and digit is None):
                    return None
                digit = 1
            section += (digit or 0) * unit
            small = previous = unit
        else:
            unit = _LARGE_ZH[c]
            section += digit or 0
            if section == 0:
                return None
            if unit >= large:
                if unit == 10**8 and total and total < 10**8:  # 一万亿
                    total = (total + section) * unit
                else:
                    return None
            else:
                total += section * unit
            section, small, large, previous = 0, 10**4, unit, unit
        digit, zero = None, False
    if digit:
        short = previous // 10 if previous > 10 and not zero else 1
        section += digit * short
    return total + section


_SIGNS = "零一二三四五六七八九"


def write_chinese(number: int) -> str:
    """A whole number below 10^12 in common Chinese numerals: 30 is 三十, 1050 一千零五十."""
    if number == 0:
        return "零"
    parts: list[str] = []
    gap = False
    for exponent, large in ((8, "亿"), (4, "万"), (0, "")):
        section = number // 10**exponent % 10**4
        if section == 0:
            gap = bool(parts)
            continue
        text = ""
        hole = False
        for unit, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
            digit = section // unit % 10
            if digit == 0:
                hole = hole or bool(text)
                continue
            text += ("零" if hole else "") + _SIGNS[digit] + sign
            hole = False
        if parts and (gap or section < 1000):
            text = "零" + text
        parts.append(text + large)
        gap = False
    result = "".join(parts)
    return result[1:] if result.startswith("一十") else result


def write_english(number: int) -> str:
    """A whole number below 10^12 in words: 45 is forty-five, 250 two hundred and fifty."""
    if number == 0:
        return "zero"
    parts: list[str] = []
    for name, scale in (("billion", 10**9), ("million", 10**6), ("thousand", 10**3)):
        if number >= scale:
            parts.append(f"{_below_thousand(number // scale % 1000)} {name}")
            number %= scale
    if number:
        rest = _below_thousand(number)
        parts.append(f"and {rest}" if parts and number < 100 else rest)
    return " ".join(parts)


def _below_thousand(number: int) -> str:
    small = {v: w for d in (UNITS, TEENS, TENS) for w, v in d.items()}
    text = ""
    if number >= 100:
        text = f"{small[number // 100]} hundred"
        number %= 100
        if not number:
            return text
        text += " and "
    if number in small:
        return text + small[number]
    return text + f"{small[number // 10 * 10]}-{small[number % 10]}"
