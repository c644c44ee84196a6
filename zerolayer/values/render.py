"""Ways to write a value, the plainest first. Every one of them reads back as the same value."""

from __future__ import annotations

import datetime
from decimal import Decimal

from zerolayer.errors import ZerolayerError
from zerolayer.values.numerals import write_chinese, write_english
from zerolayer.values.types import (
    Choice,
    Date,
    Duration,
    Money,
    Number,
    Percent,
    Quantity,
    Range,
    Text,
    Value,
    plain,
)

LANGUAGES = ("en", "zh")
_LARGEST = 10**12  # beyond it numbers are written in figures only
_UNITS_ZH = {
    "second": ["秒"], "minute": ["分钟"], "hour": ["小时"], "day": ["天", "日"],
    "business day": ["个工作日"], "week": ["周", "个星期"], "month": ["个月"],
    "quarter": ["个季度"], "year": ["年"],
}  # fmt: skip
_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "CNY": "¥"}
_NAMES = {
    "USD": ("US dollar", "US dollars"), "EUR": ("euro", "euros"),
    "GBP": ("pound sterling", "pounds sterling"), "CNY": ("yuan", "yuan"), "JPY": ("yen", "yen"),
    "CHF": ("Swiss franc", "Swiss francs"),
}  # fmt: skip
_NAMES_ZH = {
    "CNY": "元", "USD": "美元", "EUR": "欧元", "GBP": "英镑", "JPY": "日元", "HKD": "港元",
    "CHF": "瑞士法郎",
}  # fmt: skip
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_FORMAL = str.maketrans("一二三四五六七八九十百千", "壹贰叁肆伍陆柒捌玖拾佰仟")
_YEAR_SIGNS = str.maketrans("0123456789", "〇一二三四五六七八九")


def renderings(value: Value, language: str) -> list[str]:
    """The ways to write a value in "en" or "zh", in its own unit, without doubles."""
    if language not in LANGUAGES:
        raise ZerolayerError(f'the language of a rendering must be "en" or "zh", not {language!r}')
    return list(dict.fromkeys(_renderings(value, language == "zh")))


def _renderings(value: Value, zh: bool) -> list[str]:
    if isinstance(value, Range):
        return _range(value, zh)
    if isinstance(value, Duration):
        return _duration_zh(value) if zh else _duration(value)
    if isinstance(value, Money):
        return _money_zh(value) if zh else _money(value)
    if isinstance(value, Percent):
        return _percent(value, zh)
    if isinstance(value, Date):
        return _date(value, zh)
    if isinstance(value, Number):
        word = _words(value.number, zh)
        # Alone, "one" is a pronoun, and a Chinese numeral needs its counting word.
        return [plain(value.number), *([word] if word and not zh and value.number != 1 else [])]
    if isinstance(value, Quantity):
        return [f"{plain(value.amount)} {value.unit}"]
    assert isinstance(value, Choice | Text)
    return [value.text]


def _words(number: Decimal, zh: bool) -> str | None:
    if number != number.to_integral_value() or not 0 <= number < _LARGEST:
        return None
    return write_chinese(int(number)) if zh else write_english(int(number))


def _grouped(number: Decimal, cents: bool = False) -> str:
    whole, _, fraction = plain(number).partition(".")
    if cents or fraction:
        fraction = fraction.ljust(2, "0")
    return f"{int(whole):,}" + (f".{fraction}" if fraction else "")


def _duration(value: Duration) -> list[str]:
    unit = value.unit if value.count == 1 else value.unit + "s"
    figure, word = plain(value.count), _words(value.count, False)
    result = [f"{figure} {unit}"]
    if word:
        result += [f"{word} {unit}", f"{word} ({figure}) {unit}"]
    if value.unit == "business day":
        result += [text.replace("business", "working") for text in result]
    return result


def _duration_zh(value: Duration) -> list[str]:
    figure, word = plain(value.count), _words(value.count, True)
    if word == "二":
        word = "两"
    result = []
    units = _UNITS_ZH[value.unit]
    year = value.unit == "year" and 1000 <= value.count <= 9999  # 2025年 is a calendar year
    if not year:
        result += [figure + unit for unit in units]
    if word:
        result += [word + unit for unit in units]
        formal = "二" if word == "两" else word
        result += [f"{formal}（{figure}）{unit}" for unit in units]
    return result or [f"{figure} {value.unit}s"]


def _money(value: Money) -> list[str]:
    code, amount = value.currency, _grouped(value.amount)
    result = [f"{code} {amount}"]
    if code in _SYMBOLS:
        result.append(f"{_SYMBOLS[code]}{amount}")
    if code in _NAMES:
        name = _NAMES[code][value.amount != 1]
        result.append(f"{amount} {name}")
    millions = value.amount / 10**6
    if value.amount >= 10**6 and millions * 100 == (millions * 100).to_integral_value():
        result.append(f"{code} {plain(millions)} million")
        if code in _SYMBOLS:
            result.append(f"{_SYMBOLS[code]}{plain(millions)} million")
    cents = _grouped(value.amount, cents=True)
    result.append(f"{code} {cents}")
    if code in _SYMBOLS:
        result.append(f"{_SYMBOLS[code]}{cents}")
    word = _words(value.amount, False)
    if word and code in _NAMES:
        result.append(f"{word} {_NAMES[code][value.amount != 1]}")
    return result


def _money_zh(value: Money) -> list[str]:
    code, figure, grouped = value.currency, plain(value.amount), _grouped(value.amount)
    name = _NAMES_ZH.get(code)
    if name is None:
        return [f"{code} {grouped}"]
    cny = code == "CNY"
    short = []
    for scale, sign in ((10**8, "亿"), (10**4, "万")):
        scaled = value.amount / scale
        if scaled >= 1 and scaled * 100 == (scaled * 100).to_integral_value():
            short = [f"{plain(scaled)}{sign}{name}"]
            break
    figures = [f"{grouped}{name}", f"{figure}{name}"]
    result = [*short, *figures]
    if cny:
        result = [f"人民币{text}" for text in short] + result
        result += [f"人民币{text}" for text in figures]
        result += [f"{grouped}元人民币", f"¥{grouped}"]
    word = _words(value.amount, True)
    if word and value.amount > 0:
        result.append(f"{word}{name}")
        if cny:
            result.append(f"人民币{word.translate(_FORMAL)}元整")
    return result


def _percent(value: Percent, zh: bool) -> list[str]:
    figure = plain(value.percent)
    if zh:
        whole, _, fraction = figure.partition(".")
        result = [f"{figure}%"]
        if value.percent >= 0 and int(whole) < 10**4:
            words = write_chinese(int(whole))
            if fraction:
                words += "点" + "".join("零一二三四五六七八九"[int(c)] for c in fraction)
            result.append(f"百分之{words}")
        return result
    word = _words(value.percent, False)
    result = [f"{figure}%", f"{figure} %", f"{figure} percent", f"{figure} per cent"]
    return result + ([f"{word} percent", f"{word} per cent"] if word else [])


def _date(value: Date, zh: bool) -> list[str]:
    day = datetime.date.fromisoformat(value.iso)
    if zh:
        year = f"{day.year:04d}"
        return [
            f"{year}年{day.month}月{day.day}日",
            value.iso,
            f"{year.translate(_YEAR_SIGNS)}年{write_chinese(day.month)}月{write_chinese(day.day)}日",
        ]
    month = _MONTHS[day.month - 1]
    suffix = "th" if 10 < day.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return [
        f"{day.day} {month} {day.year:04d}",
        f"{month} {day.day}, {day.year:04d}",
        value.iso,
        f"{day.day}{suffix} {month} {day.year:04d}",
    ]


def _range(value: Range, zh: bool) -> list[str]:
    low, high = value.low, value.high
    result: list[str] = []
    if isinstance(low, Duration) and isinstance(high, Duration) and low.unit == high.unit:
        figure, words = plain(low.count), _words(low.count, zh)
        for text in _renderings(high, zh):
            in_figures = text[0].isdigit()
            start = figure if in_figures else words
            if start is None or "(" in text or "（" in text:
                continue
            result.append(f"{start}至{text}" if zh else f"{start} to {text}")
            if in_figures and not zh:
                result.append(f"{start}–{text}")
    elif isinstance(low, Number) and isinstance(high, Number):
        ends = plain(low.number), plain(high.number)
        result = ["至".join(ends)] if zh else [" to ".join(ends), "–".join(ends)]
    if not result:
        lows, highs = _renderings(low, zh), _renderings(high, zh)
        joint = "至" if zh else " to "
        result = [f"{a}{joint}{b}" for a, b in zip(lows[:1], highs[:1], strict=True)]
    return result
