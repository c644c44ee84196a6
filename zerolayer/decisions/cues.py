"""Words that turn a value into something else than a statement, in English and Chinese.

Patterns are matched against a masked sentence: folded to lower case and half width, each value of
the slot's type written as `VALUE` and each name of the slot as `SLOT`. In the notation below

    <old>  a value that is not stated here        <V>  any value
    <S>    the slot's name                        <~>  up to 60 characters without a value
    <=>    the same without a slot's name         <,>  up to 40 characters without a comma either
    <fn>   function words and the slot's name     <字> the same in Chinese

A pattern without <old> refuses every value that its match covers.
"""

from __future__ import annotations

import re
from typing import Final

VALUE: Final = "\ue000"
SLOT: Final = "\ue001"
OTHER: Final = "\ue002"  # the name of another declared slot

_FUNCTION_WORDS = (
    r"(?:(?:a|an|the|of|at|to|on|in|for|by|as|be|been|is|are|was|were|set|fixed|put|stand|come|"
    r"amount|equal|run|remain|just|exactly|simply|about|merely|figure|value|former|old|earlier|"
    rf"previous|agreed|{SLOT})[ :,]+)*"
)
_FUNCTION_CHARACTERS = rf"(?:是|为|按|以|的|写|定|每[年月周日天次]|{SLOT})*"


def _compile(*sources: str) -> tuple[re.Pattern[str], ...]:
    """Turns the notation of this module into regular expressions.

    Folding makes "，" and "；" half-width, so a class that names them means both widths.
    """
    return tuple(
        re.compile(
            re.sub(r"\[[^\]]*[，；][^\]]*\]", lambda m: m[0][:-1] + ",;]", source)
            .replace("<old>", f"(?P<old>{VALUE})")
            .replace("<V>", VALUE)
            .replace("<S>", SLOT)
            .replace("<~>", f"[^{VALUE}]{{0,60}}?")
            .replace("<=>", f"[^{VALUE}{SLOT}{OTHER}]{{0,60}}?")
            .replace("<,>", f"[^{VALUE},;，；]{{0,40}}?")
            .replace("<fn>", _FUNCTION_WORDS)
            .replace("<字>", _FUNCTION_CHARACTERS)
        )
        for source in sources
    )


_GONE = (
    r"replaced|superseded|overtaken|overridden|struck out|struck|deleted|cancelled|canceled|"
    r"withdrawn|repealed|abolished|dropped|crossed out|substituted|void|out of date|outdated|"
    r"obsolete|history|suspended|invalid|discarded|rescinded|revoked|scrapped|set aside|"
    r"no longer (?:valid|current|in force|binding|applicable)|not (?:binding|decisive|valid)"
)
_CHANGED = (
    r"set|reset|raised|lowered|changed|cut|reduced|increased|extended|shortened|fixed|moved|"
    r"amended|reworded|adjusted|corrected|revised|altered|brought|put"
)
_CHANGE = (
    r"(?:chang|mov|shift|rais|lower|cut|reduc|increas|extend|shorten|go(?:es)? (?:up|down)|went|"
    r"amend|adjust|correct|revis|alter|ris|drop|fall|grow|convert|updat|bring|brought|bump|from)"
)
_REPORTS = (
    r"(?:gives?|gave|says?|said|states?|stated|has|have|had|shows?|lists?|names?|mentions?|puts?|"
    r"speaks? of|reads?|claims?)"
)
_ZH_CHANGE = (
    r"(?:变更|更改|修改|修订|修正|更正|调整|延长|缩短|提高|降低|增加|减少|"
    r"改|变|调|升(?!级)|降|提(?![前供])|增(?!值)|减(?![收免半]))"
)
_ZH_INTO = r"(?:定为|为|成|到|至|作)"
_ZH_GONE = (
    r"(?:作废|废止|失效|暂停|停用|停止|不再|不适用|不算数|不作数|不作准|过时|过期|被取代|被替代|"
    r"被代替|被推翻|无效|撤销|撤回|划掉|删去|删除|不予采用|不采用|不成立|不采信)"
)
_ZH_TAKES = r"(?:取代|代替|替代|替换|取而代之)"

# A value that a clause names as replaced, refused or laid to a source that has lost.
OLD: Final = _compile(
    rf"<old><~>\b(?:is|are|was|were|be|has been|have been|being|been)"
    rf"(?: hereby| now| thereby| since| already| therefore)* (?:{_GONE})\b",
    r"<old><~>\b(?:do|does|did) (?:not|no longer) (?:apply|count|hold|bind|matter|prevail|stand)\b",
    r"<old><~>\b(?:doesn't|don't|didn't) (?:apply|count|hold|bind|matter|prevail|stand)\b",
    r"<old><~>\b(?:no longer|cease[sd]? to) (?:appl(?:y|ies)|holds?|counts?|stands?)\b",
    r"<old><~>\b(?:lapses?|falls away|ends here|has lost)\b",
    rf"<old><=>\b(?:is|are) (?:now |hereby )?(?:{_CHANGED}) (?:to|at|as)\b<~><V>",
    r"<old><~>\b(?:gives? way to|makes? way for|yields? to)\b<~><V>",
    r"\b(?:replac|substitut|exchang|swap)\w*\b<~><old><~>\b(?:by|with|for)\b<~><V>",
    r"<V>(?![^\ue000]*\bwhich the\b)<~>"
    r"\b(?:replaces?|supersedes?|takes? the place of|overrides?|displaces?)\b<~><old>",
    r"\b(?:instead of|in place of|in lieu of|rather than|no more(?! and| than| or)|"
    r"no longer(?! than| and| or)|as opposed to|as against)\b<,><old>",
    r"(?:\bnot|n't|\bnever|\bneither|\bnor|\bcannot)[ :,]+<fn><old>",
    r"<old>[^,;\ue000]{0,24}?\b(?:is|are|was|were) (?:not|no longer|never)\b ?"
    r"(?:the|a|an|our|your|what|right|correct|in force|valid|so|\ue001)",
    r"<old>[^,;\ue000]{0,24}?\b(?:isn't|aren't|wasn't)\b",
    rf"\b{_CHANGE}\w*\b<~>\bfrom <fn><old><~>\b(?:to|down to|up to|into)\b<~><V>",
    r"\bfrom <fn><old><~>\b(?:to|down to|up to)\b<~><V>",
    r"\b(?:had been|used to be|formerly|previously|originally|up to now|until now|once)[:,]? "
    r"<fn><old>",
    r"<old><,>\b(?:as before|until now|up to now|so far|any ?more)\b",
    r"<old><,>\b(?:previously|formerly)\b(?![:,]? ?<fn><V>)",
    r"<old><,>,? which\b<~>\b(?:overrides?|overrode|supersedes?d?|replaces?d?|displaces?d?)\b",
    r"\b(?:where|which|it|that) (?:was|were) <fn><old>",
    r"\b(?:old|former|earlier|before|previous)[:,] ?<fn><old>",
    rf"\bstill {_REPORTS}\b<~><old>",
    r"\b(?:do not|don't|never) (?:go by|rely on|use|follow|trust|look at|take|mind|quote|be misled|"
    r"be guided)\b<~><old>",
    r"\b(?:ignore|disregard|forget|set aside|pay no (?:attention|heed) to|leave aside|"
    r"never mind)\b<~><old>",
    r"\b(?:may|might|could|will|must) (?:well )?have (?:seen|read|heard|found|come across)\b<~><old>",
    r"\b(?:claims? that|notion|idea|rumou?r|belief|impression|assumption)\b<,><old>",
    rf"\b(?:although|though|even though|even if|while|whereas|granted)\b<=>\b{_REPORTS}\b"
    r"<~><old><~>[,;]<~><V>",
    r"<old><=>\b(?:but|yet|however)\b(?! (?:not|never|no)\b)<=><V>",
    r"<old><=>\b(?:but|yet|however)\b<=>\b(?:the|that|this) [^,;\ue000]{0,30}"
    r"\b(?:says?|has|gives?|fixes|prevails|puts)\b<=><V>",
    rf"<old><~>(?:由|被|改由|改以)<~><V><~>{_ZH_TAKES}",
    rf"(?:以|用|由)<~><V><~>{_ZH_TAKES}<~><old>",
    rf"(?<!由)<V>[^\ue000，。；]{{0,6}}{_ZH_TAKES}<~><old>",
    rf"<old><~>{_ZH_CHANGE}{{1,3}}{_ZH_INTO}{{0,2}}[^，。；\ue000]{{0,8}}<V>",
    r"(?:取消|废止|撤销|删去|删除|不再按|不再是|不再为|代替|取代|替代)[^，。；\ue000]{0,12}<old>",
    rf"<old><~>{_ZH_GONE}",
    r"<old>[^，。；\ue000]{0,12}(?:取消|停止执行)(?!<~><V>)",
    r"(?:而非|不是|并非|而不是|绝非|不再是|不为|不等于|非)<字><old>",
    r"(?:请勿|切勿|勿|别|不要|不能|不可|不应)(?:把|将|以)[^\ue000，。；]{0,8}<old>[^\ue000，。；]{0,6}(?:当|视|作)",
    r"(?:别看|不要看|别按|不要按|别用|别信|忽略|不必理会|无视|勿按|勿以|不要以|别管|不看)<~><old>",
    r"(?:见过|看到过|看过|听说过|看到的)<~><old>",
    r"(?:虽然?|尽管|固然)[^\ue000]{0,40}<old><~>[，,；;]?<~><V>",
    r"<old><=>[，,；;]?(?:但是|但|可是|不过|然而|而)(?!非|不是|且|并非)<=><V>",
)

# A former value; counts as replaced only where the sentence states another value of the slot.
FORMER: Final = _compile(
    r"\b(?:was|were|has been|have been)\b <fn><old>",
    r"(?:原来|原先|原本|本来|原|以前|之前|过去|此前|先前|平时(?!的)|曾经|曾|旧|起初)[^\ue000，。；]{0,14}<old>",
    r"<old><~>\b(?:now|from now on|here|henceforth|new)\b<,><V>",
    r"<old><~>(?:现为|现改|现在是|现定为|今为|改定|新的?)[^，。；\ue000]{0,8}<V>",
)

# A value is supposed or asked about, not stated.
SUPPOSED: Final = _compile(
    r"\b(?:suppose|supposing|imagine|assuming|what if|as if|picture|hypothetically|pretend|"
    r"(?:let us|let's|if we) (?:say|assume|suppose|take|imagine)|say that|"
    r"for the sake of argument)\b[^;]*",
    r"(?:^|[,.:] ?)(?:please )?assume\b[^;]*",
    r"(?:^|[,.:] ?)had (?:they|we|you|he|she|it|i|the \w+|both|one|\ue001)\b[^;]*",
    r"(?:^|[,.:] ?)(?:were|should) (?:it|the|this|that|a|an|your|our|we|they|you|\ue001)\b[^;]*",
    r"\bonly (?:with|if|at|for)\b[^;]{0,120}?<old>[^;]{0,60}\bwould\b",
    r"\b(?:if|unless|whether|in case(?! of\b)|provided|once)\b[^,;]{0,120}?\b(?:is|are|was|were|be|came to|"
    r"amounted to|had been|became|stood at|ran for|should|reads?|really|turns? out|equals?|"
    r"makes? it)\b[^,;\ue000]{0,40}<old>",
    r"\b(?:if|unless)\b[^,;]{0,120}?<old>[^;]{0,60}\b(?:would|were|was)\b",
    r"\b(?:wonder|ask(?:ing|ed|s)?|unsure|not sure|not certain|check|doubt)\b[^;,]{0,40}\b"
    r"(?:if|whether|that)\b[^;]*",
    r"\b(?:would|could|might) (?:then |also |well )?(?:be|have been|amount to|come to)\b<,><old>",
    r"(?:如果|假如|假设|假定|假使|若|要是|倘若|即使|即便|万一|就算|设想|哪怕)[^，。；;,\ue000]{0,40}"
    r"(?:是|为|成|到|有|等于|定|改|变)[^，。；;,\ue000]{0,8}<old>",
    r"(?:假如|假设|假定|设想|要是|试想|就算|哪怕)[^，。；;,]{0,60}<old>",
    r"(?:是不是|是否|会不会|有没有|能不能|可否)[^，。；\ue000]{0,12}<old>",
    r"(?:只有|除非)[^，。；\ue000]{0,20}<old>[^。；]{0,12}(?:才|否则)",
)

# A denial reaches from one of these to the next, over values on both sides of it.
TURN: Final = re.compile(
    r"[;；]|\b(?:but|yet|however|instead|rather|actually|in fact)\b|(?:而是|其实|实际|但|应为|应当?是|正确的)"
)
CLAUSE: Final = re.compile(TURN.pattern + "|[,，]")
# Denies the values around it, as far as it reaches.
DENIED: Final = _compile(
    r"\b(?:nobody|no one|none of|would be wrong|is wrong to|not true|not the case|not correct|"
    r"incorrect|mistaken|mistake (?:to|that)|error (?:to|that)|false|untrue|not right|would be a mistake|misread|myth|"
    r"there is no|there's no|it is not that)\b",
    r"\bno (?:source|paper|document|clause|text|page|one|party|side)s?\b[^.;]{0,40}\b(?:gives?|says?|"
    r"states?|mentions?|names?|supports?|promis\w+|fix\w*|agree\w*|provid\w+)\b",
    r"\b(?:cannot|can't|can not|could not|couldn't|did not|didn't|nowhere)\b[^.;\ue000]{0,20}\b"
    r"(?:find|found|see|seen|read|confirm\w*|verif\w+)\b[^.;\ue000]{0,20}\b(?:that|any|an?)\b",
    r"没有人|没人|无人|从未|从没|不对|不正确|错误|误解|有误|弄错|搞错|并不成立|不属实|是错的|谁也没"
    r"|没有(?:任何|哪|一)?[份个条处]?(?:资料|文件|条款|一方|约定|规定|说过|写)|未曾|并未|并没有|不能说|不能把|不应把|不可把",
)

# The sentence says that nothing can be said: no conclusion can follow in it.
OPEN: Final = _compile(
    r"\bwhich (?:one |of (?:them|the two|these|those) |value |figure |source )?(?:\ue001 )?"
    r"(?:holds|applies|counts|prevails|governs|is right|is correct|is in force)\b",
    r"\b(?:is|are|remains?|stays?|leave (?:it|this)) (?:still |left )?open\b",
    r"\b(?:cannot|can't|can not|could not|unable to|not able to|not possible to|impossible to)\b"
    r"(?: be)?[^.,;]{0,20}\b(?:giv\w+|tell|sa(?:y|id)|answer\w*|determin\w+|nam\w+|decid\w+|"
    r"settl\w+|stat\w+|confirm\w*|resolv\w+)\b",
    r"\b(?:contested|undecided|unresolved|not settled|unclear|no rule)\b",
    r"没法回答|无法回答|无法确定|不能确定|难以确定|无法判断|哪个为准|以哪|未决|尚无定论|有争议|没有规则|"
    r"需要有人确认|有待确认|请询问",
)
# The sentence reports that the sources disagree; a conclusion may follow in it.
DISAGREE: Final = _compile(
    r"\b(?:disagree\w*|differ|differs|contradict\w*|conflict\w*|inconsistent|not consistent|"
    r"at odds|diverge\w*|discrepanc\w+|disput\w+|not agree|do not match|ambiguous)\b",
    r"说法不一|不一致|矛盾|争议|分歧|冲突|不确定|各不相同|不相同|不统一|出入|说法不同|各执一词",
)
# The sentence draws a conclusion.
CONCLUSION: Final = _compile(
    r"\b(?:so|therefore|thus|hence|accordingly|prevails?|takes? precedence|overrides?|governs|"
    r"controls|beats|outranks|comes first|ranks? (?:higher|highest|first|above)|supersedes?|"
    r"is higher|in force|binding|the answer)\b",
    r"因此|所以|为准|优先|答案|应以|故",
)

# Several slots, then their values in the same order.
IN_ORDER: Final = _compile(
    r"\b(?:respectively|in (?:this|that|the same) order|in turn)\b|分别|依次",
)
JOINS: Final = re.compile(r"^(?:[\s,，、:：*&]|\band\b|\bthe\b|\bas well as\b|和|与|及|以及|跟)*$")
CONNECTS: Final = re.compile(
    r"^[\s*_|]*(?:(?:is|are|of|:|amounts? to|comes? to|stands? at|runs? for|at|remains?|equals?|=|"
    r"has been set (?:to|at)|is set at|is fixed at|为|是|：|定为|即|共|不超过|可达)\s?){1,2}[\s*_|]*$"
)

# What follows speaks of the slot of the sentence before it.
REFERENCE: Final = _compile(
    r"^(?:(?:and|so|then|here|yes|well|namely|currently|in fact|instead|rather)[,:]? )*"
    r"(?:it|this|that|they|these|the (?:correct |right )?(?:answer|figure|period|term|value|amount|"
    r"limit|date|rate|number|deadline))\b",
    r"^(?:而是|应该?是|应为|答案|该|此|其|这|它|为|是|即|共)",
    rf"^(?:in total |exactly |just |up to |at most |about )?{VALUE}",
)

# A phrase that limits a clause to one case, in so many words.
LIMITED: Final = re.compile(
    r"\b(?:only|alone|solely|exclusively|merely|apart|separately|specifically)\b|"
    r"仅|只(?:限|就|对|适用|是|在)|单就|专指|单独"
)
LEADING_CASE: Final = re.compile(
    r"^(?:but |and |yet |however,? )?"
    r"((?:for|in|at|on|with|during|when|where|if|to|concerning|regarding|as regards|as for)\b.*)$"
)
CONDITION: Final = re.compile(
    r"^(?:but |and )?(?:if|when|whenever|where|should|once)\b|^(?:如|若|当)"
)
UNIVERSAL: Final = re.compile(r"\b(?:each|every|any|all)\b|每|各|任何|所有|一切")
LEADING_CASE_ZH: Final = re.compile(
    r"^((?:在|对于|对|就|如|若|当|仅|只|凡|单就|限)[^，,]*?(?:时|的|而言|来说|，|,|中|里|下))"
)
TRAILING_CASE: Final = re.compile(
    r"\b(?:for|in|to|at) [^,;.\ue000\ue001]{1,60} (?:only|alone)\b|"
    r"\b(?:only|solely|exclusively) (?:for|in|to|at|if|when|where) [^,;.\ue000\ue001]{1,60}|"
    r"\((?:[^()]{1,40} only|only [^()]{1,40})\)|"
    r"[（(]?(?:仅|只)(?:限于?|适用于|就|对)[^，。；）)\ue000\ue001]{1,30}"
)
# Words around a case in a question that leave the case out: "samples aside", "不含样品".
LEAVES_OUT_BEFORE: Final = re.compile(
    r"(?:except(?:ing)?(?: for)?|exclud\w+|without|other than|apart from|aside from|not(?: for)?|"
    r"no|leaving out|but|outside)(?: of)?(?: the| a| an| any)?\s*$|"
    r"(?:不含|除了?|除去|非|不包括|不是|不算|撇开|不在)[^，。]{0,3}$"
)
LEAVES_OUT_AFTER: Final = re.compile(
    r"^\w*\s*(?:aside|excluded|apart|excepted|not included|left out)\b|"
    r"^.{0,2}(?:除外|以外|之外|不算|另计|不计)"
)

# Head nouns that many slots share, and words without content: alone they name no case, no slot.
GENERIC: Final = frozenset(
    "period term time limit date day deadline interval fee rate amount cap threshold length sum "
    "value price number age dose maximum minimum highest lowest level place point window hour "
    "the a an of for to in on at by per and or is are be was were what which how long much many "
    "must may can do does did when from with within it i my we our you your have has get gets "
    "after before that this there if not no only alone apart so as than then they them their he "
    "she who whom will would should could shall about into over under up down out one two any "
    "each every all some most".split()
)
GENERIC_ZH: Final = re.compile(
    r"[的是在就对时而言仅只每各为了有多少几什么怎样吗呢，。、（）()和与及或我您你们]"
)
HEAD_NOUNS: Final = (
    r"(?:period|term|time|limit|date|deadline|interval|fee|rate|cap|threshold|length|sum|"
    r"guarantee|deposit|rent|allowance|age|dose|interest|insured|deductible|temperature|charge|"
    r"price|notice|discount|penalty|premium|salary|budget|quota)"
)
