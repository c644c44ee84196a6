"""Content terms of a text: stems, pairs of Chinese signs and notions, each affirmed or denied.

"Uninsured", "without insurance" and 未保价 give the term with a minus before it, so that a case and
its opposite do not look alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from zerolayer.decisions import cues, thesaurus
from zerolayer.decisions.sentences import fold
from zerolayer.decisions.sentences import stem as crude_stem

NOTION: Final = 0.8  # weight of a notion; the word itself weighs 1
UNIT: Final = 0.5  # of a unit of time, which names some slots ("hourly rate")
SIGN: Final = 0.4  # weight of a single Chinese sign
_POLITE: Final = frozenset(
    "hi hello hey good please more less soon often double anyway before remember "
    " thanks thank know ok okay sorry fine right "
    "also need want like just really actually maybe perhaps let see tell say said read heard true "
    "think sure great yes well again could happen case instead comparison question ask asked one "
    "ones own same other another still already even only us me mine him her them here there now "
    "today come came go get got make made take give given put thing things way lot bit else "
    "something anything someone somebody anybody whoever whatever allowed possible counted "
    "figure answer told been being since because though while until within during per each "
    "hold holds apply applies valid these those such both either".split()
)
_NEGATORS: Final = frozenset(
    "no not never without non isn aren don doesn won can't cannot didn wasn haven hasn neither "
    "nor none except excluding".split()
)
# "without a note from the doctor" denies both; what a new clause says is not denied.
_ENDS_DENIAL: Final = frozenset(
    "and or but is are was were has have had do does did can could will would shall should must "
    "may i we you he she they it how what when where which if to for in on at by with".split()
)
_WORD: Final = re.compile(r"[a-z]+(?:[-'][a-z]+)*|[,.;:!?]")
_UN: Final = re.compile(r"^un(?=\w{2,}(?:ed|en|able|orn)$)")
_ZH_RUN: Final = re.compile(r"[\u4e00-\u9fff]+")
_ZH_LIGHT: Final = frozenset(
    "费价收期限额率数量天日周月年元块多少个件张份本次最更共约前后上下中里内外人用"
)
_IRREGULAR: Final = dict(
    pair.split(":")
    for pair in """
        sent:send bought:buy lent:lend kept:keep paid:pay lost:lose stolen:steal stole:steal
        broken:break broke:break brought:bring taken:take took:take left:leave went:go gone:go
        came:come sold:sell made:make given:give gave:give got:get met:meet slept:sleep spoke:speak
        wrote:write written:write drove:drive driven:drive flew:fly flown:fly ate:eat eaten:eat
        froze:freeze frozen:freeze grew:grow grown:grow children:child men:man women:woman
        people:person wives:wife knives:knife halves:half feet:foot teeth:tooth worn:wear torn:tear
        hidden:hide stuck:stick travelling:travel travelled:travel switched:switch said:say
        told:tell held:hold
    """.split()
)
_UNITS: Final = {
    word: word.removesuffix("s")
    for word in "minute minutes hour hours day days week weeks month months year years".split()
}
_GREETING: Final = re.compile(r"\bgood (?:morning|afternoon|evening|day)\b")
_FREE: Final = re.compile(
    r"\bwithout (?:any )?(?:paying|charge|cost|fee)s?\b|\b(?:no|free of) (?:charge|cost)\b|"
    r"\bfor nothing\b"
)
_ZH_DROPPED: Final = re.compile(
    r"小时|大家|大概|大约|多大|大小|不好意思|没问题|没关系|没错|不过|不用|无论|非常|未来|不同|请问|你好|您好|谢谢|麻烦|知道|明白|好的|"
    r"如果|要是|万一|假如|那么|那就|或者|还是|可以|能不能|是不是|有没有|什么时候|什么|怎么|怎样|多少钱|"
    r"多少|多久|多长时间|时间|一下|一个|一张|一份|之内|以内|之前|之后|以后|的话|我们|你们|他们|咱们|"
    r"这个|那个|这种|那种|就是|一共|总共|刚才|再说|说一遍|"
    r"[的是在就对时而言仅只每各为了有几吗呢吧啊呀哦嘛与及和或我你您他她它这那也还都又再要想请给让把被将从到"
    r"会能可得着过很太钱应该须并且但却因所以其此即为]"
)
_ZH_PER: Final = re.compile(r"[每按](小时|天|日|周|月|年|晚|次|公里|公斤)")
_ZH_NEGATOR: Final = re.compile(r"没有|未|没|不|无|非")


def stem(word: str) -> str:
    """A stem that also joins "travel" and "travellers", "arrive" and "arrival"."""
    word = _IRREGULAR.get(word, word)
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-3] + "y" if word.endswith("ies") else word[:-1]
    base = crude_stem(crude_stem(word))
    if len(base) > 5 and base.endswith("al") and base != "personal":  # a person is none
        base = base[:-2]
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeious":
        base = base[:-1]
    return base


def _notions() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for i, group in enumerate(thesaurus.ENGLISH):
        for root in dict.fromkeys(map(stem, group)):
            found[root] = (*found.get(root, ()), f"#{i}")
    return found


def _antonyms() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one, other in thesaurus.ANTONYMS:
        one, other = (stem(w) if w.isascii() else w for w in (one, other))
        found[one] = (*found.get(one, ()), other)
        found[other] = (*found.get(other, ()), one)
    return found


_NOTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_notions())
_ANTONYMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_antonyms())
_GENERIC: Final = frozenset({*cues.GENERIC, *_POLITE, *map(stem, cues.GENERIC - {"under"})})


@lru_cache(maxsize=4096)
def terms(text: str) -> Mapping[str, float]:
    """Terms of a text with their weights; a denied one begins with "-"."""
    folded = fold(text)
    found: dict[str, float] = {}
    _english(folded, found)
    _chinese(folded, found)
    return MappingProxyType(found)


def _english(folded: str, found: dict[str, float]) -> None:
    folded = _FREE.sub(" free ", _GREETING.sub(" ", folded))
    for pattern, word in thesaurus.IDIOMS:
        folded = pattern.sub(f" {word} ", folded)
    denied, begun = 0, False  # words that a negation may still reach; whether it has met one
    for token in _WORD.findall(re.sub(r"\be-", "e", folded)):
        if not token[0].isalpha():
            denied = 0
            continue
        if "-" in token and denied <= 0:
            found[token.replace("-", "")] = 1.0  # "two-room" against "three-room"
        for word in re.sub(r"'(?:s|re|ll|ve|d|m)$", "", token).split("-"):
            if word in _NEGATORS or word.endswith("n't"):
                denied, begun = 4, False
                continue
            if begun and word in _ENDS_DENIAL:
                denied = 0
            root = _UN.sub("", word)
            sign = "-" if denied > 0 or root != word else ""
            if root in _UNITS:
                found[_UNITS[root]] = UNIT
            elif len(root) >= 3 and root not in _GENERIC:
                begun = True
                root = stem(root)
                found[sign + root] = 1.0
                for notion in _NOTIONS.get(root, ()):
                    found[sign + notion] = NOTION
            denied -= word not in ("a", "an", "the", "of", "from")


def _chinese(folded: str, found: dict[str, float]) -> None:
    kept = _ZH_DROPPED.sub(" ", folded)
    for match in _ZH_RUN.finditer(kept):
        run = match[0]
        negators = list(_ZH_NEGATOR.finditer(run))
        spans = {n.end() for n in negators}
        skipped = {i for n in negators for i in range(n.start(), n.end())}
        for i, sign in enumerate(run):
            if i in skipped:
                continue
            minus = "-" if any(end <= i < end + 2 for end in spans) else ""
            if sign not in _ZH_LIGHT:
                found.setdefault(minus + sign, SIGN)
            if i + 1 < len(run) and i + 1 not in skipped:
                found[minus + run[i : i + 2]] = 1.0
    for unit in _ZH_PER.findall(folded):
        found[f"每{unit}"] = UNIT
    for i, group in enumerate(thesaurus.CHINESE):
        for word in group:
            at = folded.find(word)
            if at >= 0:
                minus = "-" if _ZH_NEGATOR.search(folded[max(0, at - 2) : at]) else ""
                found[f"{minus}#zh{i}"] = NOTION


def notions(word: str) -> tuple[str, ...]:
    """The notions that a term stands for."""
    return _NOTIONS.get(word.removeprefix("-"), ())


def opposite(term: str) -> str:
    """The denied form of an affirmed term, and back."""
    return term[1:] if term.startswith("-") else "-" + term


def opposites(term: str) -> tuple[str, ...]:
    """Terms that a text with this one excludes: the denied form, and antonyms."""
    return (opposite(term), *_ANTONYMS.get(term, ()))
