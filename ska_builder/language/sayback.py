"""A reading in plain words, in the language of its rule."""

from __future__ import annotations

from typing import Any

from zerolayer.readings import Reading
from zerolayer.values import renderings, value_from_json

_EN = {
    "<=": "at most {}",
    "<": "less than {}",
    ">=": "at least {}",
    ">": "more than {}",
    "=": "exactly {}",
}
_DATE_EN = {
    "<=": "no later than {}",
    "<": "before {}",
    ">=": "no earlier than {}",
    ">": "after {}",
    "=": "on {}",
}
_ZH = {"<=": "不超过{}", "<": "低于{}", ">=": "不低于{}", ">": "高于{}", "=": "等于{}"}
_DATE_ZH = {"<=": "不迟于{}", "<": "早于{}", ">=": "不早于{}", ">": "晚于{}", "=": "为{}"}
_REFERENCE = {
    "en": {
        "sources": "must match the sources",
        "first": "must stay as first stated",
        "turns": "must stay the same from turn to turn",
    },
    "zh": {
        "sources": "须与资料一致",
        "first": "须与首次表述一致",
        "turns": "在各轮对话中须保持不变",
    },
}
_ACTION = {
    "en": {
        "observe": "it is recorded",
        "steer": "the answer is steered",
        "enforce": "the rule is enforced",
        "repair": "the answer is repaired",
        "stop": "the answer is stopped",
    },
    "zh": {"observe": "记录", "steer": "引导", "enforce": "强制", "repair": "更正", "stop": "停止"},
}
_TIE = {
    "en": {
        "later date": "the later date",
        "earlier date": "the earlier date",
        "higher rank": "the higher rank",
    },
    "zh": {"later date": "日期在后者", "earlier date": "日期在前者", "higher rank": "级别较高者"},
}


def say_back(reading: Reading) -> str:
    """One sentence that says how a norm was understood."""
    zh = reading.language == "zh"
    lang = "zh" if zh else "en"
    said = _chinese(reading) if zh else _english(reading)
    exceptions = reading.details.get("except") or reading.details.get("unless")
    if exceptions:
        said += f"，{'、'.join(exceptions)}除外" if zh else f", except: {'; '.join(exceptions)}"
    if reading.action:
        said += (
            f"；违反时：{_ACTION[lang][reading.action]}"
            if zh
            else f"; if not, {_ACTION[lang][reading.action]}"
        )
    end = "。" if zh else "."
    said = said.rstrip(end)
    return (said[0].upper() + said[1:] if not zh else said) + end


def _written(data: Any, lang: str, type_: str) -> str:
    if isinstance(data, dict):
        type_ = (
            "duration"
            if "count" in data
            else "percent"
            if "percent" in data
            else "money"
            if "currency" in data
            else "quantity"
        )
    value = value_from_json(type_ if type_ != "text" else "text", data)
    said = renderings(value, lang)[0]
    if isinstance(data, dict) and data.get("of"):
        said = f"{data['of']}的{said}" if lang == "zh" else f"{said} of the {data['of']}"
    return said


def _value(reading: Reading) -> str:
    assert reading.slot is not None
    lang, type_ = reading.language, reading.slot.type
    data, operator = reading.details["value"], reading.details["operator"]
    if operator == "between":
        low, high = (_written(v, lang, type_) for v in data)
        return f"在{low}至{high}之间" if lang == "zh" else f"between {low} and {high}"
    if operator == "in":
        values = [_written(v, lang, type_) for v in data]
        return f"只能是{'、'.join(values)}之一" if lang == "zh" else f"one of {', '.join(values)}"
    table = {"en": (_EN, _DATE_EN), "zh": (_ZH, _DATE_ZH)}[lang][type_ == "date"]
    return table[operator].format(_written(data, lang, type_))


def _english(reading: Reading) -> str:
    d, kind = reading.details, reading.kind
    if kind == "definition":
        return f'"{d["term"]}" means {d["meaning"]}'
    if kind == "consistency":
        assert reading.slot is not None
        return f"the {reading.slot.name} ({reading.slot.type}) {_REFERENCE['en'][d['reference']]}"
    if kind == "bound":
        assert reading.slot is not None
        when = f", when: {d['when']}" if "when" in d else ""
        return f"the {reading.slot.name} ({reading.slot.type}) must be {_value(reading)}{when}"
    if kind == "prohibition":
        return f"no answer may do this: {d['act']}"
    if kind == "requirement":
        head = f"when this holds: {d['when']}, then" if "when" in d else "every time,"
        return f"{head} in the same {d['within']}: {d['then']}"
    parts = []
    if d.get("order"):
        parts.append("the order of sources is " + ", then ".join(d["order"]))
    ties = d.get("ties") or ([d["tie"]] if "tie" in d else [])
    if ties:
        parts.append("of equal sources " + ", then ".join(_TIE["en"][t] for t in ties) + " decides")
    if "unresolved" in d:
        parts.append(
            "what stays tied is asked about"
            if d["unresolved"] == "ask"
            else "what stays tied is contested"
        )
    return "; ".join(parts)


def _chinese(reading: Reading) -> str:
    d, kind = reading.details, reading.kind
    if kind == "definition":
        return f"「{d['term']}」是指{d['meaning']}"
    if kind == "consistency":
        assert reading.slot is not None
        return f"{reading.slot.name}{_REFERENCE['zh'][d['reference']]}"
    if kind == "bound":
        assert reading.slot is not None
        when = f"（条件：{d['when']}）" if "when" in d else ""
        return f"{reading.slot.name}须{_value(reading)}{when}"
    if kind == "prohibition":
        return f"不得：{d['act']}"
    if kind == "requirement":
        where = {"sentence": "同一句", "paragraph": "同一段", "answer": "同一回答"}[d["within"]]
        head = f"遇到「{d['when']}」时，" if "when" in d else ""
        return f"{head}须在{where}中：{d['then']}"
    parts = []
    if d.get("order"):
        parts.append("依据的先后为" + "、".join(d["order"]))
    ties = d.get("ties") or ([d["tie"]] if "tie" in d else [])
    if ties:
        parts.append("同级时以" + "、再以".join(_TIE["zh"][t] for t in ties) + "为准")
    if "unresolved" in d:
        parts.append("仍分不出高下的，" + ("请询问" if d["unresolved"] == "ask" else "视为有争议"))
    return "；".join(parts)
