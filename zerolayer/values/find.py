"""Finding typed values in running text, English and Chinese.

Every written number is read once; what stands around it (unit, currency, sign of a share) gives
it a type. Dates, clause numbers and clock times are claimed first, so that their figures are never
taken for something else. Time is linear in the text.
"""

from __future__ import annotations

import bisect
import datetime
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from zerolayer.values.fold import BARRIER, fold, lower
from zerolayer.values.numerals import (
    DIGIT_ZH,
    RUN_EN,
    RUN_ZH,
    SCALES,
    parse_chinese,
    parse_digits_zh,
    parse_english,
)
from zerolayer.values.types import (
    Choice,
    Date,
    Duration,
    Money,
    Number,
    Percent,
    Quantity,
    Range,
    Value,
    compare,
    same,
)


@dataclass(frozen=True)
class Found:
    """A value at [start, end) of the text, in code points.

    `ambiguous` names all readings where the words can be read in two ways (03/04/2027).
    """

    start: int
    end: int
    value: Value
    ambiguous: tuple[Value, ...] = ()


@dataclass(frozen=True)
class _Numeral:
    """A written number in the folded text."""

    start: int
    end: int
    value: Decimal
    kind: str  # "digits", "words", "zh"
    glued: bool = False  # a letter stands directly before it, as in RMB10 or A4
    other: Decimal | None = None  # what the parentheses say where they differ: sixty (90)
    scaled: bool = False  # its scale is written out: 1.2 million, 120万
    doubled: bool = False


@dataclass(frozen=True)
class _Typed:
    start: int
    end: int
    value: Value
    numeral: _Numeral | None = None
    ambiguous: tuple[Value, ...] = ()


# --- numerals ---------------------------------------------------------------------------------

_DIGITS = re.compile(
    r"(?<!\d)(?<!\d[.,'])(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,3}(?:'\d{3}){1,6}|\d{1,18})(?:\.\d{1,12})?(?!\d)(?![.,']\d)"
)
_SCALE = re.compile(
    r" ?(hundred|thousand|million|billion|trillion)(?![a-z])|( ?)([百千万萬亿億佰仟]{1,3})(?![一])"
)
_REST = re.compile(r"(\d{1,4})(万|千)")
_ZH_SCALE = {"百": 100, "佰": 100, "千": 1000, "仟": 1000}
_ZH_SCALE |= {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_AND_A_HALF = re.compile(r" and a half(?![a-z])")


def _numerals(text: str) -> list[_Numeral]:
    found: list[_Numeral] = []
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        value = Decimal(match.group().replace(",", "").replace("'", ""))
        before = text[start - 1] if start else " "
        scale = _SCALE.match(text, end)
        scaled = False
        if scale:
            factor = 1
            if scale.group(1):
                factor = 100 if scale.group(1) == "hundred" else SCALES[scale.group(1)]
            else:
                for sign in scale.group(3):
                    factor *= _ZH_SCALE[sign]
            value, end, scaled = value * factor, scale.end(), True
            # 1亿2000万: the rest of a number written in two steps
            rest = _REST.match(text, end)
            if rest and _ZH_SCALE[rest.group(2)] < factor:
                value += Decimal(rest.group(1)) * _ZH_SCALE[rest.group(2)]
                end = rest.end()
        half = _AND_A_HALF.match(text, end)
        if half:
            value, end = value + Decimal("0.5"), half.end()
        glued = (before.isalpha() and before.isascii()) or before == "_"
        found.append(_Numeral(start, end, value, "digits", glued, scaled=scaled))
    for match in RUN_EN.finditer(text):
        position = match.start()
        while position < match.end():
            after_between = text[max(0, position - 8) : position] == "between "
            read = parse_english(text[position : match.end()], after_between)
            if read:
                end = position + read[1]
                found.append(_Numeral(position, end, read[0], "words"))
                position = end
            else:
                position += 1
            following = RUN_EN.search(text, position, match.end())
            if not following:
                break
            position = following.start()
    for match in RUN_ZH.finditer(text):
        read_zh = parse_chinese(match.group())
        if read_zh is not None:
            before = text[match.start() - 1] if match.start() else ""
            if not before.isdigit():
                found.append(_Numeral(match.start(), match.end(), read_zh, "zh"))
    found.sort(key=lambda n: (n.start, -n.end))
    kept: list[_Numeral] = []
    for numeral in found:
        if not kept or numeral.start >= kept[-1].end:
            kept.append(numeral)
    return _doubled(text, kept)


_OPEN = re.compile(r" ?\( ?")
_CLOSE = re.compile(r" ?\)")


def _doubled(text: str, numerals: list[_Numeral]) -> list[_Numeral]:
    """Joins thirty (30). Where the two differ the words count and both are kept."""
    result: list[_Numeral] = []
    i = 0
    while i < len(numerals):
        numeral = numerals[i]
        if i + 1 < len(numerals):
            inner = numerals[i + 1]
            opened = _OPEN.fullmatch(text, numeral.end, inner.start)
            closed = _CLOSE.match(text, inner.end) if opened else None
            if closed and (inner.kind != numeral.kind or inner.value == numeral.value):
                end = closed.end()
                value, scaled = numeral.value, numeral.scaled or inner.scaled
                scale = _SCALE.match(text, end)
                if scale and scale.group(1) and not numeral.scaled:
                    # two (2) million
                    value *= 100 if scale.group(1) == "hundred" else SCALES[scale.group(1)]
                    end, scaled = scale.end(), True
                differs = inner.value if inner.value != numeral.value else None
                result.append(
                    replace(
                        numeral, end=end, value=value, other=differs, scaled=scaled, doubled=True
                    )
                )
                i += 2
                continue
        result.append(numeral)
        i += 1
    return result


# --- dates ------------------------------------------------------------------------------------

_MONTHS = {
    name: i + 1
    for i, name in enumerate(
        "january february march april may june july august september october november "
        "december".split()
    )
}
_MONTHS |= {name[:3]: i for name, i in _MONTHS.items()}
_MONTHS["sept"] = 9
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_ORDINALS = {
    name: i + 1
    for i, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
        "twentieth".split()
    )
}
_ORDINALS |= {f"twenty-{name}": 20 + i for name, i in list(_ORDINALS.items())[:9]}
_ORDINALS |= {"thirtieth": 30, "thirty-first": 31}
_ORDINAL = "|".join(sorted(_ORDINALS, key=len, reverse=True))
_DAY = rf"(?<![a-z0-9.,])(?P<d>\d{{1,2}}(?: ?(?:st|nd|rd|th))?|{_ORDINAL})"
_ZH_NUM = rf"(?:\d{{1,2}}|[{DIGIT_ZH}十廿卅]{{1,3}})"
_DATE_PATTERNS = [
    re.compile(rf"{_DAY}(?: day)?(?: of |-| )(?P<m>{_MONTH})(?:, ?| |-| of )?(?P<y>\d{{4}})(?!\d)"),
    re.compile(
        rf"(?<![a-z])(?P<m>{_MONTH})[ -](?:the )?(?P<d>\d{{1,2}}(?: ?(?:st|nd|rd|th))?)"
        r"(?:, ?| |,? of )(?P<y>\d{4})(?!\d)"
    ),
    re.compile(r"(?<![\d.-])(?P<y>\d{4})-(?P<m>\d\d?)-(?P<d>\d\d?)(?![\d-])"),
    re.compile(r"(?<![\d./])(?P<y>\d{4})(?P<s>[./])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?)(?![\d/])"),
    re.compile(
        rf"(?P<y>(?<!\d)\d{{4}}|[{DIGIT_ZH}]{{4}}) ?年 ?(?P<m>{_ZH_NUM}) ?月 ?"
        rf"(?P<d>{_ZH_NUM}) ?[日号號]"
    ),
]
_SLASHED = re.compile(r"(?<![\d./-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?![\d/])")
# Parts of a date without a year or day: no value, but no number or duration either.
_PARTIAL = [
    re.compile(rf"(?P<y>(?<!\d)\d{{4}}|[{DIGIT_ZH}]{{4}}) ?年(?: ?{_ZH_NUM} ?月份?)?"),
    re.compile(rf"(?<![\d{DIGIT_ZH}]){_ZH_NUM} ?月(?: ?{_ZH_NUM} ?[日号])"),
    re.compile(rf"(?<![\d{DIGIT_ZH}]){_ZH_NUM} ?月"),
]
# In the original case: "persons of 18 may apply" has no month in it.
_CASED_MONTH = "|".join(sorted((name.capitalize() for name in _MONTHS), key=len, reverse=True))
_PARTIAL_CASED = re.compile(
    rf"(?<![A-Za-z0-9])(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_CASED_MONTH})\b(?: \d{{4}})?"
    rf"|(?:{_CASED_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?![\d.,]\d|\d)"
    rf"|(?:{_CASED_MONTH}) \d{{4}}(?!\d))"
)


def _day_number(text: str) -> int:
    if text in _ORDINALS:
        return _ORDINALS[text]
    digits = re.match(r"\d+", text)
    if digits:
        return int(digits.group())
    value = parse_chinese(text)
    return int(value) if value is not None else 0


def _date(year: int, month: int, day: int) -> Date | None:
    try:
        return Date(datetime.date(year, month, day).isoformat())
    except ValueError:
        return None


def _dates(text: str, cased: str) -> tuple[list[_Typed], list[tuple[int, int]]]:
    """Dates, and the spans that belong to dates (also to those that do not exist)."""
    found: list[_Typed] = []
    claimed: list[tuple[int, int]] = []
    for pattern in _DATE_PATTERNS:
        for match in pattern.finditer(text):
            year_text, month_text = match["y"], match["m"].rstrip(".")
            year = (
                int(year_text)
                if year_text[0].isdigit() and year_text.isascii()
                else (parse_digits_zh(year_text) or 0)
            )
            month = _MONTHS.get(month_text) or _day_number(month_text)
            date = _date(year, month, _day_number(match["d"]))
            claimed.append(match.span())
            if date:
                found.append(_Typed(*match.span(), date))
    for match in _SLASHED.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        claimed.append(match.span())
        by_day, by_month = _date(year, second, first), _date(year, first, second)
        # A point is only used where the day stands first.
        if match[2] == "." or by_month is None or by_day == by_month:
            by_month = None
        date = by_day or by_month
        if date:
            both = (by_day, by_month) if by_day and by_month else ()
            found.append(_Typed(*match.span(), date, ambiguous=both))
    for pattern in _PARTIAL:
        claimed += [match.span() for match in pattern.finditer(text)]
    claimed += [match.span() for match in _PARTIAL_CASED.finditer(cased)]
    return found, claimed


# --- what is no value -------------------------------------------------------------------------

_REFERENCE = re.compile(
    r"(?:§§? ?|(?<![a-z])(?:clauses?|sections?|articles?|art\.|paragraphs?|para\.?|chapters?|"
    r"annex(?:es)?|schedules?|appendix|appendices|exhibits?|pages?|pp?\.|parts?|no\.|nos\.|"
    r"footnotes?|figures?|tables?|wards?|rooms?|versions?) ?(?:no\.? ?)?#?)"
    r"\d{1,6}(?:\.\d{1,3}){0,4}(?![\d%])(?! ?-?(?:%|per|hour|day|business|working|week|month|year))"
    r"(?:\([a-z0-9]{1,4}\)){0,3}"
    r"(?:(?:, | and | or | to |-|–)\d{1,4}(?:\.\d{1,3}){0,3}(?![\d,.]\d)(?! ?[a-z%]))*"
    rf"|第 ?[\d{DIGIT_ZH}十百千]{{1,8}}(?:[.]\d{{1,3}}){{0,3}}"
    r"(?: ?[条款项章节页部分编号次个批期季天日周月年、至到和-]+ ?(?:第 ?\d{1,4})?)?"
    r"|(?<!\d)\d{1,2}:\d\d(?::\d\d)?(?!\d)(?: ?[ap]\.?m\.?)?"
    r"|(?<!\d)\d{1,2} ?[ap]\.?m\.?(?![a-z])"
    r"|\[\^?\d{1,3}\]"
    r"|(?<![\d.])24/7(?!\d)"
    r"|(?<![\d.])\d{1,3}(?:\.\d{1,3}){2,5}(?!\d)"
)

# --- units ------------------------------------------------------------------------------------

_UNIT_EN = re.compile(
    r"(?P<half> and a half)?(?: ?- ?| )?"
    r"(?:(?P<business>business|working|banking|bank|work)[ -]|"
    r"(?:calendar|consecutive|full|clear|natural|whole|complete|more|further|additional|straight"
    r"|successive|extra|civil)[ -]){0,3}"
    r"(?P<unit>seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?|months?|"
    r"quarters?|years?|yrs?|h)(?![a-z0-9])(?P<ahalf> and a half(?![a-z]))?"
)
_UNITS_EN = {
    "second": "second", "sec": "second", "minute": "minute", "min": "minute", "hour": "hour",
    "hr": "hour", "h": "hour", "day": "day", "week": "week", "month": "month",
    "quarter": "quarter", "year": "year", "yr": "year",
}  # fmt: skip
_UNIT_ZH = re.compile(
    r" ?(?P<pre>个半)?"
    r"(?P<unit>个? ?(?:完整)?(?:工作日|营业日|银行日|工作天)|个? ?(?:自然日|日历日|日历天|连续日)"
    r"|个? ?(?:整)?(?:小时|钟头)|个? ?星期|个? ?礼拜|个? ?季度|个? ?整?月"
    r"|周(?!年|[一二三四五六日末岁])|天|日(?!元|圆|元|币|本)|周年|年(?!级|代|龄|月)|分钟|秒钟?|分(?=钟))"
    r"(?P<half>半(?!价|数|年|成|径))?"
)
_UNITS_ZH = [
    ("工作", "business day"), ("营业日", "business day"), ("银行日", "business day"),
    ("自然日", "day"), ("日历", "day"), ("连续日", "day"), ("小时", "hour"), ("钟头", "hour"),
    ("星期", "week"), ("礼拜", "week"), ("周年", "year"), ("季度", "quarter"), ("月", "month"),
    ("周", "week"), ("天", "day"), ("日", "day"), ("年", "year"), ("分钟", "minute"),
    ("秒", "second"),
]  # fmt: skip
_HALF = Decimal("0.5")
_HALF_UNITS = re.compile(
    r"半(?P<zh>年|个月|天|个?小时)(?!度)"
    r"|(?<![a-z])half an? (?P<en>year|month|day|hour|week)(?![a-z])"
    r"|(?<![a-z])half-(?P<en2>day)(?![a-z])"
)
_HALF_NAMES = {"年": "year", "个月": "month", "天": "day", "小时": "hour", "个小时": "hour"}
# 同一天, 每一天, 有一天: no length of time
_NO_COUNT = frozenset("同某每这那任第有统另前当")


def _duration(text: str, n: _Numeral) -> _Typed | None:
    if n.glued or (n.start and text[n.start - 1] in "第/"):
        return None
    match = _UNIT_EN.match(text, n.end)
    if match:
        name = match["unit"]
        name = name if name in _UNITS_EN else name.removesuffix("s")
        count = n.value + (_HALF if match["half"] or match["ahalf"] else 0)
        if name == "fortnight":
            return _Typed(n.start, match.end(), Duration(count * 2, "week"), n)
        unit = _UNITS_EN[name]
        if name == "h" and n.kind != "digits":
            return None
        if match["business"]:
            if unit != "day":
                return None
            unit = "business day"
        return _typed_duration(n, n.start, match.end(), count, unit)
    match = _UNIT_ZH.match(text, n.end)
    if not match:
        return None
    signs = match["unit"].replace(" ", "")
    unit = next(unit for sign, unit in _UNITS_ZH if sign in signs)
    if signs == "月" and match["pre"] is None:
        return None  # 3月 is March
    if unit == "year" and signs == "年" and n.kind == "digits" and 1000 <= n.value <= 9999:
        return None
    if n.kind == "zh" and n.value == 1 and n.start and text[n.start - 1] in _NO_COUNT:
        return None
    count = n.value
    if match["half"] or match["pre"]:
        count += _HALF
    return _typed_duration(n, n.start, match.end(), count, unit)


def _typed_duration(n: _Numeral, start: int, end: int, count: Decimal, unit: str) -> _Typed:
    both: tuple[Value, ...] = ()
    if n.other is not None:
        both = (Duration(count, unit), Duration(n.other, unit))
    return _Typed(start, end, Duration(count, unit), n, both)


# --- money ------------------------------------------------------------------------------------

ISO_CODES = (
    "USD EUR GBP CNY JPY CHF CAD AUD NZD HKD SGD TWD KRW INR SEK NOK DKK PLN CZK HUF RON BGN "
    "TRY ILS ZAR BRL MXN ARS CLP COP PEN THB MYR IDR PHP VND AED SAR QAR RUB UAH EGP NGN KES MOP"
).split()
_PREFIXES = {
    "us$": "USD", "usd$": "USD", "a$": "AUD", "au$": "AUD", "c$": "CAD", "ca$": "CAD",
    "hk$": "HKD", "nt$": "TWD", "s$": "SGD", "nz$": "NZD", "$": "USD", "€": "EUR", "£": "GBP",
    "¥": "CNY", "rmb": "CNY", "cn¥": "CNY", "rmb¥": "CNY", "人民币": "CNY", "人民币¥": "CNY",
    "￡": "GBP", "美元": "USD", "欧元": "EUR", "英镑": "GBP", "港币": "HKD", "₹": "INR",
    "jp¥": "JPY", "₩": "KRW",
}  # fmt: skip
_PREFIXES |= {code.lower(): code for code in ISO_CODES}
_PREFIX = re.compile(
    "(?:" + "|".join(re.escape(p) for p in sorted(_PREFIXES, key=len, reverse=True)) + ")[ :]?$"
)
_NAMES = {
    "u.s. dollar": "USD", "us dollar": "USD", "united states dollar": "USD",
    "american dollar": "USD", "canadian dollar": "CAD", "australian dollar": "AUD",
    "hong kong dollar": "HKD", "singapore dollar": "SGD", "dollar": "USD", "euro": "EUR",
    "british pound": "GBP", "pounds sterling": "GBP", "pound sterling": "GBP", "pound": "GBP",
    "yuan renminbi": "CNY", "chinese yuan": "CNY", "yuan": "CNY", "renminbi": "CNY",
    "rmb": "CNY", "yen": "JPY", "japanese yen": "JPY", "swiss franc": "CHF",
    "indian rupee": "INR", "us$": "USD", "€": "EUR", "£": "GBP",
}  # fmt: skip
_NAMES |= {code.lower(): code for code in ISO_CODES}
_NAMES_ZH = {
    "美元": "USD", "美金": "USD", "欧元": "EUR", "英镑": "GBP", "日元": "JPY", "港元": "HKD",
    "港币": "HKD", "瑞士法郎": "CHF", "澳元": "AUD", "加元": "CAD", "加拿大元": "CAD",
    "新加坡元": "SGD", "新台币": "TWD", "韩元": "KRW", "卢布": "RUB",
}  # fmt: skip
_SUFFIX = re.compile(
    r"(?P<short>(?:k|m|mn|mio|bn)(?![a-z]))?(?:(?: ?- ?| )?(?P<name>"
    + "|".join(re.escape(name) for name in sorted(_NAMES, key=len, reverse=True))
    + r")(?:s|'s)?(?![a-z])"
    + r"| ?(?P<zh>"
    + "|".join(sorted(_NAMES_ZH, key=len, reverse=True))
    + r")(?:整|正)?| ?(?P<yuan>元|圆|圓|块钱?)(?:(?P<jiao>[\d"
    + DIGIT_ZH
    + r"])角(?:(?P<fen>[\d"
    + DIGIT_ZH
    + r"])分)?)?(?:整|正)?(?: ?人民币)?)?"
)
_SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "bn": 10**9}


def _money(text: str, cased: str, n: _Numeral) -> _Typed | None:
    start, end, amount = n.start, n.end, n.value
    currency = None
    window = text[max(0, start - 12) : start]
    prefix = _PREFIX.search(window)
    if prefix:
        name = prefix.group().rstrip(" :")
        at = start - len(prefix.group())
        before = text[at - 1] if at else " "
        written = cased[at : at + len(name)]
        # Codes count in capitals only ("try 5"), and never as the end of a word.
        if not (name.isalpha() and name.isascii()) or written.isupper():
            currency = _PREFIXES[name] if not (before.isalpha() and before.isascii()) else None
        elif name == "rmb":
            currency = "CNY"
        if currency:
            start = at
    elif n.glued:
        return None
    match = _SUFFIX.match(text, end)
    if match:
        suffix = None
        if match["name"]:
            name = match["name"]
            written = cased[match.start("name") : match.end("name")]
            if name.upper() not in ISO_CODES or written.isupper():
                suffix = _NAMES[name]
        elif match["zh"]:
            suffix = _NAMES_ZH[match["zh"]]
        elif match["yuan"]:
            suffix = "CNY"
        if match["short"] and n.kind == "digits" and (currency or suffix):
            amount *= _SHORT[match["short"]]
            end = match.end("short")
        if suffix and (currency in (None, suffix) or match["yuan"]):
            currency = currency or suffix
            for part, worth in (("jiao", "0.1"), ("fen", "0.01")):
                sign = match[part]
                if sign:
                    digit = Decimal(sign) if sign.isascii() else parse_chinese(sign) or Decimal(0)
                    amount += digit * Decimal(worth)
            end = match.end()
    if currency is None:
        return None
    both: tuple[Value, ...] = ()
    if n.other is not None:
        both = (Money(amount, currency), Money(n.other, currency))
    return _Typed(start, end, Money(amount, currency), n, both)


# --- percent ----------------------------------------------------------------------------------

_PERCENT = re.compile(
    r" ?(?:(?P<percent>%|per ?cents?(?![a-z])|percent(?:age)? ?points?(?![a-z])|percent(?![a-z])"
    r"|pct(?![a-z])|个百分点)|-(?P<hyphen>per ?cent(?![a-z]))"
    r"|(?P<mille>‰|per mille(?![a-z]))"
    r"|(?P<cheng>成(?P<half>半)?(?![员本为立功交品果年分熟长都人套就效])))"
)
_FRACTION_ZH = re.compile(
    rf"([百千万])分之 ?([{DIGIT_ZH}十百千]{{1,8}}(?:点[{DIGIT_ZH}]{{1,8}})?"
    rf"|\d{{1,6}}(?:\.\d{{1,6}})?)"
)
_AGAIN = re.compile(r" ?\( ?\d[\d.]{0,8} ?[%‰] ?\)")
_HALVES = re.compile(r"(?<![a-z-])(?:one )?half(?![a-z-])(?! an? )|一半|半数")


def _percent(text: str, n: _Numeral) -> _Typed | None:
    match = _PERCENT.match(text, n.end)
    if not match or n.glued:
        return None
    value = n.value
    if match["cheng"]:
        if value > 10:
            return None
        value = (value + (_HALF if match["half"] else 0)) * 10
    elif match["mille"]:
        value /= 10
    both: tuple[Value, ...] = ()
    if n.other is not None and not match["cheng"]:
        both = (Percent(value), Percent(n.other))
    return _Typed(n.start, match.end(), Percent(value), n, both)


def _fractions_zh(text: str) -> list[_Typed]:
    found = []
    for match in _FRACTION_ZH.finditer(text):
        value = (
            Decimal(match[2])
            if match[2][0].isdecimal() and match[2][0].isascii()
            else (parse_chinese(match[2]))
        )
        if value is None:
            continue
        parts = {"百": 1, "千": 10, "万": 100}[match[1]]
        end = match.end()
        again = _AGAIN.match(text, end)
        found.append(_Typed(match.start(), again.end() if again else end, Percent(value / parts)))
    return found


# --- physical quantities ----------------------------------------------------------------------

_QUANTITY = re.compile(
    r" ?-?(?P<unit>mg|µg|μg|mcg|kg|g|ml|cl|l|km|cm|mm|m|kwh|kw|mb|gb|tb|iu|°c|℃"
    r"|milligrams?|micrograms?|kilograms?|grams?|millilit(?:re|er)s?|lit(?:re|er)s?"
    r"|kilomet(?:re|er)s?|met(?:re|er)s?|毫克|微克|千克|公斤|克|毫升|升|公里|千米|厘米|毫米|米)"
    r"(?![a-z0-9²³])"
)
_QUANTITIES = {
    "milligram": "mg", "microgram": "µg", "mcg": "µg", "μg": "µg", "kilogram": "kg", "gram": "g",
    "millilitre": "ml", "milliliter": "ml", "litre": "l", "liter": "l", "kilometre": "km",
    "kilometer": "km", "metre": "m", "meter": "m", "毫克": "mg", "微克": "µg", "千克": "kg",
    "公斤": "kg", "克": "g", "毫升": "ml", "升": "l", "公里": "km", "千米": "km", "厘米": "cm",
    "毫米": "mm", "米": "m", "℃": "°C", "°c": "°C", "kwh": "kWh", "kw": "kW", "mb": "MB",
    "gb": "GB", "tb": "TB", "iu": "IU",
}  # fmt: skip


def _quantity(text: str, n: _Numeral) -> _Typed | None:
    match = _QUANTITY.match(text, n.end)
    if not match or n.glued:
        return None
    name = match["unit"]
    unit = _QUANTITIES.get(name) or _QUANTITIES.get(name.removesuffix("s")) or name
    return _Typed(n.start, match.end(), Quantity(n.value, unit), n)


# --- numbers ----------------------------------------------------------------------------------

_PRONOUN_BEFORE = re.compile(
    r"(?:^|[^a-z])(?:the|this|that|no|any|every|each|which|another|some|new|first|last|other|only|"
    r"right|wrong|old|for|of|is|as|by)(?: [a-z]+)? ?$"
)
_NO_NOUN_AFTER = re.compile(
    r" ?(?:$|[^ a-z(]| (?:$|[^a-z(])| (?:of|in|or|and|who|that|which|is|was|has|to|for|on|another|"
    r"with|side|party|by|from|can|may|must|will|should|kind|more|point|thing|way|i|you|we|they|the|"
    r"it|a|an|under|at|if|where|when|day|time|hand|needs?|could|would|case|word|calendar|last)"
    r"(?![a-z]))"
)
_COUNTER_ZH = re.compile(
    r" ?(?:个(?!工作|月|星期|小时|自然|人)|片|粒|颗|岁|周岁|次|种|人|名|位|份|度|"
    r"摄氏度|℃|°|张|台|家|件|项|支|瓶|盒|滴|毫克|毫升|克|倍|辆|套|笔|户|本|枚|箱|级|口|层|间|支|袋|包|米|公里|平方)"
)
_COUNTER_ONE_ZH = re.compile(r" ?(?:片|粒|颗|岁|周岁|支|瓶|盒|滴|袋|包|摄氏度|℃|台|辆|倍)")
_STATED_ZH = re.compile(r"(?:为|是|[:到达至过于]|\|) ?$")
_CLOSED_ZH = re.compile(r" ?(?:$|[。,;!?)|、\x1f]|[就,])")
_CODE_BEFORE = re.compile(r"(?:[a-z0-9][-/#.]|[#@&=/_])$")
_RANGE_BEFORE = re.compile(r"(?<![a-z0-9.\-/#])\d{1,6}(?:\.\d{1,4})?-$")
_CODE_AFTER = re.compile(r"[/_@#]\w|-[a-z]*\d")
_RANGE_AFTER = re.compile(r"-\d{1,6}(?:\.\d{1,4})?(?![a-z0-9\-/#]|\.\d)")
_NEGATIVE = re.compile(r"(?:(?:^|[ (:|为至])-|(?<![a-z])minus |零下|负) ?$")


def _number(text: str, n: _Numeral) -> _Typed | None:
    if n.glued:
        return None
    before, after = text[max(0, n.start - 24) : n.start], text[n.end : n.end + 24]
    if n.kind == "digits":
        if after[:1].isascii() and after[:1].isalpha() and not _QUANTITY.match(text, n.end):
            return None
        # 6-8 is a range, 555-1234-567 and A-30 are codes.
        if _CODE_BEFORE.search(before) and not _RANGE_BEFORE.search(before):
            return None
        if _CODE_AFTER.match(after) and not (_RANGE_AFTER.match(after) and before[-1:] != "-"):
            return None
        if before[-1:] == "-" and after[:1] == "-":
            return None
    elif n.kind == "words":
        if (
            n.value == 1
            and not n.doubled
            and (_PRONOUN_BEFORE.search(before) or _NO_NOUN_AFTER.match(after))
            and not re.match(r" (?:tablets?|capsules?|pills?|degrees?|drops?)", after)
        ):
            return None
        if after.startswith("-") and not re.match(r"-(?:year|tablet)", after):
            return None
    else:
        if before.endswith("第"):
            return None
        stated = _STATED_ZH.search(before) and _CLOSED_ZH.match(after)
        counted = (_COUNTER_ONE_ZH if n.value == 1 else _COUNTER_ZH).match(after)
        if not (stated or counted or n.doubled):
            return None
    start, value = n.start, n.value
    negative = _NEGATIVE.search(before)
    if negative:
        sign = negative.group().lstrip(" (:|为至" if "-" in negative.group() else "")
        start, value = start - len(sign), -value
    both: tuple[Value, ...] = ()
    if n.other is not None:
        both = (Number(n.value), Number(n.other))
    return _Typed(start, n.end, Number(value), n, both)


# --- ranges and lists -------------------------------------------------------------------------

_TO = re.compile(r" ?(?:-|–|—|--|~) ?| to | up to | through |至|到| ?- ?")
_AND = re.compile(r" and |和|与")
_BETWEEN = re.compile(r"(?:(?<![a-z])between |在|介于) ?$")
_OR = re.compile(r" or | and |,? or | ?或(?:者)? ?|和|及")
_COMMA = re.compile(r", ?|、")
# "raised from 30 to 45 days" replaces one value by another.
_CHANGED = re.compile(
    r"(?:chang|rais|extend|lower|reduc|cut|increas|shorten|amend|mov|goes|went|ris|fall|grow|grew|"
    r"drop|prolong|adjust|modif|replac|改|调|延长|缩短|提高|降低|变更|上调|下调|增加|减少)[^.;。]{0,60}"
    r"(?:from|由|从|自) ?$"
)


def _with(value: Value, number: Decimal) -> Value | None:
    """The same kind of value with another number."""
    if isinstance(value, Duration):
        return Duration(number, value.unit)
    if isinstance(value, Money):
        return Money(number, value.currency)
    if isinstance(value, Percent):
        return Percent(number)
    if isinstance(value, Quantity):
        return Quantity(number, value.unit)
    return Number(number) if isinstance(value, Number) else None


def _amount(value: Value) -> Decimal | None:
    if isinstance(value, Duration):
        return value.count
    if isinstance(value, Money | Quantity):
        return value.amount
    if isinstance(value, Percent):
        return value.percent
    return value.number if isinstance(value, Number) else None


def _inherit(text: str, items: list[_Typed | _Numeral]) -> list[_Typed | _Numeral]:
    """Gives bare numbers of a range or list the unit that is said once: 12, 24 or 36 months."""
    for i in range(len(items) - 2, -1, -1):
        bare, typed = items[i], items[i + 1]
        if isinstance(bare, _Typed) or bare.glued or not isinstance(typed, _Typed):
            continue
        numeral = typed.numeral
        if numeral is None or numeral.start != typed.start:
            # With the currency in front only a range hands nothing back: "3 to USD 5".
            continue
        gap = text[bare.end : typed.start]
        is_to = _TO.fullmatch(gap) is not None
        is_between = bool(_AND.fullmatch(gap)) and bool(
            _BETWEEN.search(text[max(0, bare.start - 12) : bare.start])
        )
        chained = _COMMA.fullmatch(gap) and i + 2 < len(items) and isinstance(items[i + 2], _Typed)
        if chained:
            later = items[i + 2]
            between = text[typed.end : later.start]
            chained = typed.end == numeral.end and bool(
                _OR.fullmatch(between) or _COMMA.fullmatch(between)
            )
        if gap == "、":
            chained = True
        if not (is_to or is_between or _OR.fullmatch(gap) or chained):
            continue
        if not (is_to or is_between) and (
            1000 <= bare.value <= 9999 and bare.kind == "digits" and typed.value.type != "money"
        ):
            continue
        value = bare.value
        amount = _amount(typed.value)
        if amount is None:
            continue
        # 5至10万元 and $1–2 million: the scale is said once
        if isinstance(typed.value, Percent) and numeral.value:
            value = value * amount / numeral.value
        elif bare.kind != "words" and not bare.scaled and is_to and value < 1000 <= amount:
            mantissa = re.match(r"[\d.]+", text[numeral.start : numeral.end])
            if numeral.scaled and mantissa and Decimal(mantissa.group()) > value:
                value = value * numeral.value / Decimal(mantissa.group())
            elif bare.kind == "zh":
                scale = re.search(r"[万亿]$", text[numeral.start : numeral.end])
                if scale and value < numeral.value / _ZH_SCALE[scale.group()]:
                    value *= _ZH_SCALE[scale.group()]
        inherited = _with(typed.value, value)
        if inherited is not None:
            items[i] = _Typed(bare.start, bare.end, inherited, bare)
    return items


def _ranges(text: str, items: list[_Typed]) -> list[_Typed]:
    result: list[_Typed] = []
    i = 0
    while i < len(items):
        low = items[i]
        if i + 1 < len(items):
            high = items[i + 1]
            gap = text[low.end : high.start]
            before = text[max(0, low.start - 80) : low.start]
            joined = _TO.fullmatch(gap) or (_AND.fullmatch(gap) and _BETWEEN.search(before[-12:]))
            if (
                joined
                and low.value.type in ("duration", "money", "percent", "number", "quantity")
                and compare(low.value, high.value) == -1
                and not _CHANGED.search(before)
            ):
                result.append(_Typed(low.start, high.end, Range(low.value, high.value)))
                i += 2
                continue
        result.append(low)
        i += 1
    return result


_INNER = re.compile(r" ?\( ?")


def _merged(text: str, items: list[_Typed]) -> list[_Typed]:
    """Joins a value and its repetition in parentheses, and 1 year 6 months."""
    result: list[_Typed] = []
    for item in items:
        if result:
            last = result[-1]
            gap = text[last.end : item.start]
            closed = _CLOSE.match(text, item.end)
            if closed and _INNER.fullmatch(gap) and same(last.value, item.value):
                result[-1] = replace(last, end=closed.end())
                continue
            a, b = last.value, item.value
            if (
                isinstance(a, Duration)
                and isinstance(b, Duration)
                and gap in ("", " ", "零", "又")
                and (a.unit, b.unit) in (("year", "month"), ("week", "day"))
                and b.count < (12 if b.unit == "month" else 7)
            ):
                count = a.count * (12 if b.unit == "month" else 7) + b.count
                result[-1] = replace(last, end=item.end, value=Duration(count, b.unit))
                continue
        result.append(item)
    return result


# --- public -----------------------------------------------------------------------------------


class _Claims:
    """Disjoint spans that later readings may not touch."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        merged: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self._spans = merged
        self._starts = [start for start, _ in merged]

    def touch(self, start: int, end: int) -> bool:
        i = bisect.bisect_left(self._starts, end) - 1
        return i >= 0 and self._spans[i][1] > start


def _longest(items: list[_Typed]) -> list[_Typed]:
    """The longest of overlapping readings, in order of position."""
    kept: list[_Typed] = []
    for item in sorted(items, key=lambda t: (t.start, -t.end)):
        if kept and item.start < kept[-1].end:
            if item.end - item.start > kept[-1].end - kept[-1].start:
                kept[-1] = item
        else:
            kept.append(item)
    return kept


def _choices(text: str, choices: Sequence[str]) -> list[_Typed]:
    by_key: dict[str, str] = {}
    for choice in choices:
        key = lower(fold(choice)[0]).strip()
        if key:
            by_key.setdefault(key, choice)
    if not by_key:
        return []
    keys = sorted(by_key, key=len, reverse=True)
    parts = [
        (r"(?<![a-z0-9])" if re.match(r"[a-z0-9]", key) else "")
        + re.escape(key)
        + (r"(?![a-z0-9])" if re.search(r"[a-z0-9]$", key) else "")
        for key in keys
    ]
    pattern = re.compile("|".join(parts))
    return [_Typed(m.start(), m.end(), Choice(by_key[m.group()])) for m in pattern.finditer(text)]


def find_values(
    text: str,
    types: Collection[str] | None = None,
    choices: Sequence[str] = (),
    language: str | None = None,
) -> list[Found]:
    """All values of the given types (None: every type) in the text, in order of position.

    Spans enclose a value as written, without Markdown and, for a number, without its unit; those
    of one type never overlap. A number inside another value is no number, except that an age is
    both: where `types` names "number", "18 years" gives 18, too. A bare number in a range or list
    has the unit that is said once ("12, 24 or 36 months" are three durations).

    `choices` are found where types is None or names "choice". Quantities with a physical unit are
    only found where `types` names "quantity". "half" and 一半 are 50 percent only where `types` is
    just "percent" and `language` is given, for in running text they are seldom a value.
    """
    cased, offsets = fold(text)
    folded = lower(cased)
    wanted = None if types is None else frozenset(types)

    dates, claimed = _dates(folded, cased)
    claimed += [match.span() for match in _REFERENCE.finditer(folded)]
    fractions = _fractions_zh(folded)
    claims = _Claims(claimed + [(f.start, f.end) for f in fractions])

    items: list[_Typed | _Numeral] = []
    quantities = wanted is not None and "quantity" in wanted
    for numeral in _numerals(folded):
        if claims.touch(numeral.start, numeral.end):
            continue
        typed = (
            _percent(folded, numeral)
            or _money(folded, cased, numeral)
            or _duration(folded, numeral)
            or (_quantity(folded, numeral) if quantities else None)
        )
        items.append(typed or numeral)
    items += fractions
    items += [
        _Typed(m.start(), m.end(), _half_duration(m))
        for m in _HALF_UNITS.finditer(folded)
        if not (
            m.start()
            and (
                folded[m.start() - 1] in "个年月天时周大过多" or RUN_ZH.match(folded, m.start() - 1)
            )
        )
    ]
    if wanted == frozenset({"percent"}) and language is not None:
        items += [
            _Typed(m.start(), m.end(), Percent(Decimal(50))) for m in _HALVES.finditer(folded)
        ]
    items.sort(key=lambda item: item.start)
    items = _inherit(folded, _forward(folded, items))

    typed_items: list[_Typed] = []
    ages: list[_Typed] = []
    for item in items:
        if isinstance(item, _Typed):
            typed_items.append(item)
            value, numeral_ = item.value, item.numeral
            if isinstance(value, Duration) and value.unit == "year" and numeral_ is not None:
                ages.append(_Typed(numeral_.start, numeral_.end, Number(numeral_.value)))
        else:
            number = _number(folded, item)
            if number is not None:
                typed_items.append(number)
    found = _ranges(folded, _merged(folded, _longest(typed_items))) + dates
    if wanted is not None and "number" in wanted:
        found += _ranges(folded, ages)
    if choices and (wanted is None or "choice" in wanted):
        found += _choices(folded, choices)
    if wanted is not None:
        found = [item for item in found if item.value.type in wanted]
    found.sort(key=lambda item: (item.start, item.end))
    return [
        Found(offsets[item.start], offsets[item.end - 1] + 1, item.value, item.ambiguous)
        for item in found
        if BARRIER not in folded[item.start : item.end]
    ]


def _half_duration(match: re.Match[str]) -> Duration:
    name = match["zh"] or match["en"] or match["en2"]
    unit = _HALF_NAMES.get(name, name)
    return Duration(Decimal(6), "month") if unit == "year" else Duration(_HALF, unit)


def _forward(text: str, items: list[_Typed | _Numeral]) -> list[_Typed | _Numeral]:
    """Gives the high end of a range the currency said in front: USD 1,000 to 2,000."""
    for i in range(len(items) - 1):
        typed, bare = items[i], items[i + 1]
        if isinstance(bare, _Typed) or not isinstance(typed, _Typed) or bare.glued:
            continue
        numeral = typed.numeral
        if numeral is None or numeral.start == typed.start or not isinstance(typed.value, Money):
            continue
        gap = text[typed.end : bare.start]
        between = _AND.fullmatch(gap) and _BETWEEN.search(
            text[max(0, typed.start - 12) : typed.start]
        )
        if typed.end == numeral.end and (_TO.fullmatch(gap) or between):
            value = typed.value
            if bare.scaled and not numeral.scaled and numeral.value < 1000 and not between:
                mantissa = re.match(r"[\d.]+", text[bare.start : bare.end])
                if mantissa and Decimal(mantissa.group()):
                    factor = bare.value / Decimal(mantissa.group())
                    items[i] = replace(typed, value=Money(numeral.value * factor, value.currency))
            items[i + 1] = _Typed(bare.start, bare.end, Money(bare.value, value.currency), bare)
    return items
