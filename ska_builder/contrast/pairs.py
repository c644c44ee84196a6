"""Contrast pairs from the data files, filled at random and counterbalanced.

consistency, bound, precedence: four pairs a group, so that neither the order of the values nor a
fondness for one of them can win. prohibition, requirement, definition: two pairs a group, the
condition holds or it does not, and the continuations change places.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

COUNTERBALANCED = ("consistency", "bound", "precedence")
WRITTEN = ("prohibition", "requirement", "definition")

NAMES = {
    "company": [
        "Larkfield Foods", "Ostrander Glass", "Bellweather Press", "Corvane Tools", "Halden & Ruiz",
        "Mirefield Dairy", "Northgate Cycles", "Sunter Marine", "Tolliver Print", "Yarrow Textiles",
        "Arbeck Foundry", "Copperline Radio", "Eastmoor Nurseries", "Garrick Freight",
    ],
    "person": [
        "Ada Brook", "Ben Carver", "Chiara Dorn", "Dele Okafor", "Eve Larsen", "Farid Haddad",
        "Greta Holm", "Hugo Pires", "Ines Marek", "Jonas Weil", "Kaya Demir", "Lena Fox",
        "Milo Grant", "Nadia Petrov", "Owen Rhys", "Priya Nair", "Rosa Vidal", "Tom Sato",
    ],
    "place": [
        "Aarhus", "Bergamo", "Cork", "Delft", "Evora", "Fulda", "Ghent", "Haifa", "Izmir", "Kaunas",
        "Leeds", "Malmo", "Nantes", "Ostrava", "Porto", "Riga", "Seville", "Turku", "Utrecht",
    ],
    "colour": ["red", "blue", "green", "yellow", "grey", "white", "black", "brown", "orange"],
    "weekday": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
}  # fmt: skip
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()


@dataclass(frozen=True)
class Pair:
    """Two continuations of one context; `good` conforms to the rule, `bad` does not."""

    kind: str
    rule: str
    context: str
    good: str
    bad: str
    template: str
    group: str


@cache
def _data(name: str) -> Any:
    folder = resources.files("ska_builder.contrast").joinpath("data")
    return yaml.safe_load(folder.joinpath(f"{name}.yaml").read_text("utf-8"))


@cache
def neutral_text() -> str:
    """Neutral text of the project, for thresholds and the KL term."""
    folder = resources.files("ska_builder.contrast").joinpath("data")
    return folder.joinpath("neutral_en.txt").read_text("utf-8")


def generate_all(seed: int, per_template: int) -> list[Pair]:
    """Pairs of all six kinds; the same for the same seed."""
    return [p for kind in (*COUNTERBALANCED, *WRITTEN) for p in generate(kind, seed, per_template)]


def generate(kind: str, seed: int, per_template: int) -> list[Pair]:
    """Pairs of one kind: `per_template` groups from each subject or entry."""
    rng = random.Random(f"{kind} {seed}")
    make: dict[str, Callable[[random.Random, int], list[Pair]]] = {
        "consistency": _consistency,
        "bound": _bound,
        "precedence": _precedence,
    }
    if kind in make:
        return [p for n in range(per_template) for p in make[kind](rng, n)]
    return [p for n in range(max(1, per_template // 4)) for p in _written(kind, rng, n)]


def _fill(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return " ".join(text.split())


def _names(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(NAMES[name]) for name in ("company", "person", "place")}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _article(text: str) -> str:
    """`a` before a vowel letter becomes `an`; the data are written with `a`."""
    words = text.split(" ")
    for i, word in enumerate(words[:-1]):
        if (word == "a" or (word == "A" and i == 0)) and words[i + 1].strip('*“"')[
            :1
        ].lower() in "aeio":
            words[i] = word + "n"
    return " ".join(words)


def values(kind: str, rng: random.Random, count: int = 2, unit: str = "") -> list[str]:
    """Different values of one type in one notation, ascending where the type has an order."""
    if kind in ("colour", "weekday", "person", "place"):
        return rng.sample(NAMES[kind], count)
    while True:
        scale = rng.choice([1, 1, 1, 2, 5])
        numbers = sorted({rng.randint(2, 30) * scale for _ in range(count)})
        if len(numbers) == count:
            break
    if kind == "duration":
        period = rng.choice(["days", "days", "weeks", "months", "years", "hours", "minutes"])
        if max(numbers) <= 20 and rng.random() < 0.4:
            return [f"{WORDS[n]} {period}" for n in numbers]
        return [f"{n} {period}" for n in numbers]
    if kind == "money":
        times = rng.choice([1, 10, 50, 100, 1000])
        form = rng.choice(["{} euros", "{} dollars", "EUR {}", "USD {}", "${}", "{} pounds", "€{}"])
        return [form.format(f"{n * times:,}") for n in numbers]
    if kind == "percent":
        form = rng.choice(["{}%", "{} percent", "{} %"])
        return [form.format(n) for n in numbers]
    if kind == "date":
        month, year = rng.choice(MONTHS), rng.randint(2019, 2031)
        days = sorted(rng.sample(range(1, 29), count))
        form = rng.choice(["{d} {m} {y}", "{m} {d}, {y}", "{d} {m}"])
        return [form.format(d=d, m=month, y=year) for d in days]
    if kind == "time":
        return [
            f"{h}:{rng.choice(['00', '15', '30', '45'])}" for h in rng.sample(range(6, 23), count)
        ]
    if max(numbers) <= 20 and rng.random() < 0.4:
        return [f"{WORDS[n]} {unit}".strip() for n in numbers]
    return [f"{n} {unit}".strip() for n in numbers]


def _consistency(rng: random.Random, n: int) -> list[Pair]:
    data = _data("consistency")
    pairs = []
    for j, subject in enumerate(data["subjects"]):
        names = _names(rng) | {"s": subject["s"], "d": subject["d"]}
        one, two = values(subject["type"], rng)
        rule = _article(_fill(rng.choice(data["rules"]), names))
        lead = _capital(_fill(rng.choice(data["leads"]), names))
        intro = _fill(rng.choice(data["intros"]), names)
        other = rng.choice(subject["other"])
        group = f"consistency-{j}-{n}"
        for main, side in ((one, two), (two, one)):
            facts = [subject["main"].replace("{v}", main), other.replace("{v}", side)]
            for ordered in (facts, facts[::-1]):
                context = " ".join(part for part in (intro, *ordered, lead) if part)
                pairs.append(
                    Pair(
                        "consistency",
                        rule,
                        context,
                        f" {main}.",
                        f" {side}.",
                        f"consistency-{j}",
                        group,
                    )
                )
    return pairs


def _bound(rng: random.Random, n: int) -> list[Pair]:
    data = _data("bound")
    pairs = []
    for j, subject in enumerate(data["subjects"]):
        low, limit, high = values(subject["type"], rng, 3, subject.get("unit", ""))
        forms = rng.choice(data["rules"])
        frame, lead, names = rng.choice(data["frames"]), rng.choice(data["leads"]), _names(rng)
        group = f"bound-{j}-{n}"
        for form, good, bad in ((forms[0], low, high), (forms[1], high, low)):
            rule = _capital(_article(_fill(form, {"s": subject["s"], "t": limit})))
            for x, y in ((low, high), (high, low)):
                context = f"{frame} {lead}"
                context = _fill(context, names | {"s": subject["s"], "x": x, "y": y})
                pairs.append(
                    Pair(
                        "bound",
                        rule,
                        _article(context),
                        f" {good}.",
                        f" {bad}.",
                        f"bound-{j}",
                        group,
                    )
                )
    return pairs


def _precedence(rng: random.Random, n: int) -> list[Pair]:
    data = _data("precedence")
    pairs = []
    for j, kinds in enumerate(data["kinds"]):
        form, saying = rng.choice(data["rules"]), rng.choice(data["sayings"])
        statement = rng.choice(data["clauses"])
        clause, lead = statement["clause"], rng.choice([statement["clause"], statement["also"]])
        closer, frame, names = rng.choice(data["closers"]), rng.choice(data["frames"]), _names(rng)
        one, two = values(statement["type"], rng, 2, statement.get("unit", ""))
        first, second = kinds if rng.random() < 0.5 else kinds[::-1]
        group = f"precedence-{j}-{n}"
        start = lead if closer.endswith((",", ":")) else _capital(lead)
        for high, low in ((first, second), (second, first)):
            rule = _fill(form, {"a": high, "b": low})
            said = {first: one, second: two}
            facts = [
                _fill(saying, {"k": k, "c": clause, "v": said[k]}) + "." for k in (first, second)
            ]
            for ordered in (facts, facts[::-1]):
                context = _fill(" ".join([frame, *ordered, closer, start]), names)
                pairs.append(
                    Pair(
                        "precedence",
                        rule,
                        context,
                        f" {said[high]}.",
                        f" {said[low]}.",
                        f"precedence-{j}",
                        group,
                    )
                )
    return pairs


def _written(kind: str, rng: random.Random, n: int) -> list[Pair]:
    pairs = []
    for j, entry in enumerate(_data(kind)):
        names = _names(rng)
        names |= {name: rng.choice(options) for name, options in entry.get("slots", {}).items()}
        for case in entry["cases"]:
            pairs.append(
                Pair(
                    kind,
                    _fill(entry["rule"], names),
                    _fill(case["context"], names),
                    " " + _fill(case["good"], names),
                    " " + _fill(case["bad"], names),
                    f"{kind}-{j}",
                    f"{kind}-{j}-{n}",
                )
            )
    return pairs
