"""Words that turn a value into something else than a statement, in English and Chinese.

Patterns are matched against a masked sentence: folded to lower case and half width, each value of
the slot's type written as `VALUE` and each name of the slot as `SLOT`. In the notation below

    <old>  a value that is not stated here        <V>  any value
    <S>    the slot's name                        <~>  up to 60 characters without a value
    <=>    the same without the slot's name       <fn> function words and the slot's name
"""

from __future__ import annotations

import re
from typing import Final

VALUE: Final = "\ue000"
SLOT: Final = "\ue001"
OTHER: Final = "\ue002"  # the name of another declared slot

_FUNCTION_WORDS = (
    r"(?:(?:a|an|the|of|at|to|on|in|for|by|as|be|is|are|set|stand|come|amount|equal|run|just|"
    rf"exactly|simply|about|only|merely|figure|value|former|old|earlier|previous|{SLOT})[ :,]+)*"
)
_FUNCTION_CHARACTERS = rf"(?:是|为|按|以|的|写|定|{SLOT})*"


def _compile(*sources: str) -> tuple[re.Pattern[str], ...]:
    """Turns the notation of this module into regular expressions."""
    return tuple(
        re.compile(
            source.replace("<old>", f"(?P<old>{VALUE})")
            .replace("<V>", VALUE)
            .replace("<S>", SLOT)
            .replace("<~>", f"[^{VALUE}]{{0,60}}?")
            .replace("<=>", f"[^{VALUE}{SLOT}{OTHER}]{{0,60}}?")
            .replace("<fn>", _FUNCTION_WORDS)
            .replace("<字>", _FUNCTION_CHARACTERS)
        )
        for source in sources
    )


_GONE = (
    r"replaced|superseded|overtaken|overridden|struck out|struck|deleted|cancelled|canceled|"
    r"withdrawn|repealed|abolished|dropped|crossed out|substituted|void|out of date|outdated|"
    r"obsolete|history|suspended|invalid"
)
_CHANGED = (
    r"set|reset|raised|lowered|changed|cut|reduced|increased|extended|shortened|fixed|moved|"
    r"amended|reworded"
)
_ZH_CHANGE = r"(?:变更|更改|修改|修订|调整|延长|缩短|提高|降低|增加|减少|改|变|调|升|降)"
_ZH_INTO = r"(?:定为|为|成|到|至|作)"
_ZH_GONE = (
    r"(?:作废|取消|废止|失效|暂停使用|停用|不再|不适用|不算数|不作数|过时|过期|取代|代替|替代|"
    r"无效|撤销|撤回|划掉|删去)"
)

# A value that a clause names as replaced, refused or laid to a source that has lost.
OLD: Final = _compile(
    rf"<old><~>\b(?:is|are|was|were|be|has been|have been|being)(?: hereby| now| thereby)? "
    rf"(?:{_GONE})\b",
    r"<old><~>\b(?:do|does|did) not (?:apply|count|hold|bind|matter)\b",
    r"<old><~>\bno longer (?:applies|apply|holds?|counts?|stands?|valid|in force)\b",
    rf"<old><~>\b(?:is|are) (?:now )?(?:{_CHANGED}) (?:to|at|as)\b<~><V>",
    r"<old><~>\b(?:gives? way to|becomes?|makes? way for)\b<=><V>",
    r"\b(?:replac|substitut|exchang|swap)\w*\b<~><old><~>\b(?:by|with|for)\b<~><V>",
    r"<V><~>\b(?:replaces?|supersedes?|takes? the place of|overrides?|displaces?)\b<~><old>",
    r"\b(?:instead of|in place of|in lieu of|rather than|no more(?! and| than| or)|"
    r"no longer(?! than| and| or)|as opposed to|as against)\b[^,;\ue000]{0,40}?<old>",
    r"(?:\bnot|n't|\bnever|\bneither|\bnor|\bcannot)[ :]+<fn><old>",
    r"<old>[^,;\ue000]{0,24}?\b(?:is|are|was|were) (?:not|no longer|never)\b ?"
    r"(?:the|a|an|our|your|what|right|correct|in force|valid|so|\ue001)",
    r"\bfrom <fn><old><~>\b(?:to|down to|up to)\b<~><V>",
    r"\b(?:had been|used to be|formerly|previously|originally|up to now|until now|once)[:,]? "
    r"<fn><old>",
    r"<old>[^,;\ue000]{0,30}\b(?:as before|until now|up to now|so far|previously|formerly)\b",
    r"\b(?:where|which|it|that) (?:was|were) <fn><old>",
    r"\b(?:old|former|earlier|before)[:,] ?<fn><old>",
    r"\bstill (?:gives?|says?|states?|has|have|shows?|lists?|names?|mentions?|puts?)\b<~><old>",
    r"\b(?:do not|don't|never) (?:go by|rely on|use|follow|trust|look at|take|mind|quote)\b"
    r"<~><old>",
    r"\b(?:ignore|disregard|forget|set aside|pay no attention to)\b<~><old>",
    r"\b(?:may|might|could|will) (?:well )?have (?:seen|read|heard|found)\b<~><old>",
    r"<old><=>\b(?:but|yet|however)\b(?! not)<=><V>",
    rf"<old><~>由<~><V><~>(?:取代|代替|替代|替换)",
    rf"(?:以|用)<~><V><~>(?:取代|代替|替代|替换)<~><old>",
    rf"<V>[^\ue000，。；]{{0,6}}(?:取代|代替|替代)<~><old>",
    rf"<old><~>{_ZH_CHANGE}+{_ZH_INTO}<~><V>",
    r"(?:取消|废止|撤销|删去|不再按|不再是|不再为)<~><old>",
    rf"<old><~>{_ZH_GONE}",
    r"(?:而非|不是|并非|而不是|绝非|非)<字><old>",
    r"(?:别看|不要看|别按|不要按|别用|别信|忽略|不必理会|无视)<~><old>",
    r"(?:见过|看到过|看过|听说过)<~><old>",
    r"<old><=>[，,；;]?(?:但是|但|可是|不过|然而|而)<=><V>",
)

# A former value; counts as replaced only where the sentence states another value of the slot.
FORMER: Final = _compile(
    r"\b(?:was|were|has been|have been)\b <fn><old>",
    r"(?:原来|原先|原本|本来|原|以前|之前|过去|此前|平时|曾经|曾|旧)[^\ue000，。；]{0,10}<old>",
    rf"<old><~>\b(?:now|from now on|here)\b[^,;\ue000]{{0,20}}<V>",
    r"<old><~>(?:现为|现改|现在是|现定为|今为)[^，。；\ue000]{0,8}<V>",
)

# A value is supposed, not stated.
SUPPOSED: Final = _compile(
    r"\b(?:suppose|supposing|imagine|assume|assuming|what if|let us say|let's say|as if|"
    r"hypothetically|pretend)\b[^;]{0,200}?<old>",
    r"(?:^|[,.:] ?)had (?:they|we|you|he|she|it|i|the \w+|both|one)\b[^;]{0,200}?<old>",
    r"(?:^|[,.:] ?)(?:were|should) (?:it|the|this|that|a|an|your|our|\ue001)\b[^;]{0,200}?<old>",
    r"\bonly (?:with|if|at|for)\b[^;]{0,120}?<old>[^;]{0,60}\bwould\b",
    r"\b(?:if|unless|whether)\b[^,;]{0,120}?\b(?:is|are|was|were|be|came to|amounted to|had been|"
    r"became|stood at|ran for|should)\b[^,;\ue000]{0,40}<old>",
    r"\b(?:if|unless)\b[^,;]{0,120}?<old>[^;]{0,60}\b(?:would|were|was)\b",
    r"(?:如果|假如|假设|假定|假使|若|要是|倘若|即使|即便|万一|就算|设想)[^，。；;,\ue000]{0,40}"
    r"(?:是|为|成|到|有|等于|定)[^，。；;,\ue000]{0,8}<old>",
    r"(?:假如|假设|假定|设想|要是)[^，。；;,]{0,60}<old>",
    r"(?:是不是|是否|会不会|有没有)[^，。；\ue000]{0,12}<old>",
)

# The whole part of the sentence denies what it names.
DENIED: Final = _compile(
    r"\b(?:nobody|no one|none of|would be wrong|is wrong to|not true|not the case|not correct|"
    r"incorrect|mistaken|mistake to|false|untrue)\b",
    r"\bno (?:source|paper|document|clause|text|page|one)s?\b[^.;]{0,40}\b(?:gives?|says?|states?|"
    r"mentions?|names?|supports?|promis\w+|fix\w*)\b",
    r"没有人|没人|无人|从未|从没|不对|不正确|错误|误解|有误|弄错|搞错|并不成立|不属实|没有(?:任何)?(?:资料|文件|条款)",
)

# The sentence reports that the sources disagree, or that nothing can be said.
UNRESOLVED: Final = _compile(
    r"\b(?:disagree|differ|contradict\w*|conflict\w*|inconsistent|not consistent|contested|"
    r"undecided|unresolved|not settled|unclear|at odds|diverge)\b",
    r"\bwhich (?:one |of (?:them|the two|these) |value |figure )?(?:\ue001 )?"
    r"(?:holds|applies|counts|prevails|is right|is correct)\b",
    r"\b(?:is|are|remains?|stays?) open\b",
    r"\b(?:cannot|can't|can not|could not|unable to|not able to|not possible to|impossible to)\b"
    r"[^.;]{0,20}\b(?:give|tell|say|answer|determine|name|decide|settle|state|confirm)\b",
    r"说法不一|不一致|没法回答|无法回答|无法确定|不能确定|难以确定|矛盾|争议|分歧|冲突|不确定|"
    r"哪个为准|以哪|未决|各不相同|不相同|不统一",
)

# The sentence draws the conclusion of an answer.
CONCLUSION: Final = _compile(
    r"\b(?:so|therefore|thus|hence|accordingly|prevails?|takes precedence|in force|applies|"
    r"binding|answer|valid)\b",
    r"因此|所以|故|应为|为准|答案|有效的|适用|优先",
)

# Several slots, then their values in the same order.
IN_ORDER: Final = _compile(
    r"\b(?:respectively|in (?:this|that|the same) order|in turn)\b|分别|依次",
)

# What follows speaks of the slot of the sentence before it.
REFERENCE: Final = _compile(
    r"^(?:(?:and|so|then|here|yes|well|namely|currently)[,:]? )*"
    r"(?:it|this|that|they|these|the (?:answer|figure|period|term|value|amount|limit|date|rate|"
    r"number|deadline)|答案|该|此|其|这|它|为|是|即|共)",
    rf"^(?:in total |exactly |just |up to |at most |about )?{VALUE}",
)

# A phrase that limits a clause to one case.
LIMITED: Final = re.compile(
    r"\b(?:only|alone|solely|exclusively|merely|apart|separately)\b|仅|只(?:限|就|对|适用|是|在)|单就|专指|单独"
)
LEADING_CASE: Final = re.compile(
    r"^(?:but |and |yet |however, )?"
    r"((?:for|in|at|on|with|during|when|where|if|to|concerning|regarding|as regards)\b.*)$"
)
UNIVERSAL: Final = re.compile(r"\b(?:each|every|any|all)\b|每|各|任何|所有|一切")
LEADING_CASE_ZH: Final = re.compile(r"^((?:在|对于|对|就|如|若|当|仅|只|凡).*?(?:时|的|，|,|中|里|下|言))")
TRAILING_CASE: Final = re.compile(
    r"\b(?:for|in|to|at) [^,;.\ue000\ue001]{1,60} (?:only|alone)\b|"
    r"\b(?:only|solely|exclusively) (?:for|in|to|at|if|when|where) [^,;.\ue000\ue001]{1,60}|"
    r"\((?:[^()]{1,40} only|only [^()]{1,40})\)|[（(]?仅(?:限|适用于|就|对)[^，。；）)\ue000\ue001]{1,30}"
)
# Words around a case in a question that leave the case out: "samples aside", "不含样品".
LEAVES_OUT_BEFORE: Final = re.compile(
    r"(?:except(?:ing)?(?: for)?|exclud\w+|without|other than|apart from|aside from|not(?: for)?|"
    r"no|leaving out|but)(?: the| a| an| any)?\s*$|(?:不含|除了?|除去|非|不包括|不是|不算|撇开)[^，。]{0,3}$"
)
LEAVES_OUT_AFTER: Final = re.compile(
    r"^\w*\s*(?:aside|excluded|apart|excepted|not included|left out)\b|^.{0,2}(?:除外|以外|之外|不算|另计)"
)

# Head nouns that many slots share: alone they do not name a slot.
GENERIC: Final = frozenset(
    "period term time limit date day deadline interval fee rate amount cap threshold length sum "
    "value price number age dose maximum minimum highest lowest level place point window hour "
    "the a an of for to in on at by per and or is are be what which how long much many must may "
    "can do does when from with within it i my we our you your have has get after before that "
    "this there if not no".split()
)
HEAD_NOUNS: Final = (
    r"(?:period|term|time|limit|date|deadline|interval|fee|rate|cap|threshold|length|sum|"
    r"guarantee|deposit|rent|allowance|age|dose|interest|insured|deductible|temperature)"
)
