"""The norm grammar for Chinese sentences (marked text, see `marked.py`)."""
# ruff: noqa: E501 - a pattern stands on one line, so that it can be compared with its neighbours

from __future__ import annotations

import re

from ska_builder.language.bounds import Norm, compared, listed, norms_of, terms
from ska_builder.language.english import chain
from ska_builder.language.marked import MARK, marks, plain
from ska_builder.language.words import SPEAKER_ZH

NAME = r"(?P<name>[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫])"
# A word of obligation, and none of the nouns that hold its character (须知, 要求, 申请, 应急, 取得).
_MUST = (
    r"(?:(?:一律|均|都)?(?:必须|应该|应当|务必|须要|需要|须(?!知)|(?<![响供对适反相感报答])应(?![急付收用聘对答激届税季邀])|"
    r"(?<![必急刚内])需(?!求)|(?<![重主需必摘概次纪])要(?![求约点件素闻领])|(?<![获取所不值觉记使难])得(?![到出知])|(?<![申邀聘提])请(?![求假示客]))|一律)"
)
_NOT = r"(?:一律不得|均不得|都不得|也不得|不得|严禁|禁止|不许|不准|不可以|不可|不能|切勿|请勿|勿|不应当|不应|不要|绝不|决不|不允许|不会|不予|不宜)"


def name(text: str) -> str:
    """A name as readings hold it."""
    return plain(text).strip(" 　，。；：、").strip().lower()


def clean(text: str) -> str:
    return plain(text).strip(" 　，。；：,;")


# --- exceptions -------------------------------------------------------------------------------

_EXCLUDED = r"(?:除外|例外|不在此限|不受此限|不受此限制|不适用本条|不适用|不受本条限制)"
_TRAILING = (
    re.compile(
        rf"^(?P<main>.+?)[，；,]\s*(?:但是|但|然而|不过|惟)\s*(?:对于|对|属于|如果|如)?(?P<what>.+?)(?:者)?(?:的情形|的情况)?{_EXCLUDED}$"
    ),
    re.compile(rf"^(?P<main>.+?)[，,（(]\s*(?P<what>[^，（(]+?){_EXCLUDED}[)）]?$"),
    re.compile(r"^(?P<main>.+?)[，,]\s*除非(?P<what>.+)$"),
    re.compile(r"^(?P<main>.+?)[，,]\s*除(?P<what>.+?)(?:之外|以外|外)$"),
    re.compile(r"^(?P<main>.+?)[，,]\s*(?:但是|但)(?P<what>.+)$"),
)
_LEADING = (
    re.compile(r"^除非(?P<what>.+?)[，,]\s*(?:否则)?(?P<main>.+)$"),
    re.compile(r"^除了?(?P<what>.+?)(?:之外|以外|外)[，,]?\s*(?P<main>.+)$"),
    re.compile(
        r"^(?:未经|没有|未获|未取得|未得到|未征得|无|不经)(?:过)?(?P<what>[^，,]+?)[，,]\s*(?P<main>.+)$"
    ),
    re.compile(
        r"^(?:未经|未获|未取得|未征得)(?P<what>[^，,]+?)(?P<main>(?:一律|均|任何人)?(?:不得|严禁|禁止).+)$"
    ),
)
_MIDDLE = re.compile(
    r"^(?P<head>.+?)[，,]\s*除(?P<what>[^，]+?)(?:之外|以外|外)[，,]\s*(?P<tail>.+)$"
)
_ONLY = re.compile(
    r"^(?:只有|仅在|只在|只有在)(?P<what>.+?)(?:时|的情况下|后)?[，,]\s*(?:才|方)(?:能|可以|可|得|允许)?(?P<act>.+)$"
)
_AFTER_ONLY = re.compile(
    r"^(?P<what>(?:经|在|须经|待)?.+?)(?:后|时)?[，,]?\s*(?:方可|才可以|才可|才能|方能|方得)(?P<act>.+)$"
)


def things(text: str) -> list[str]:
    """The entries of an exception: a list of things one by one, a clause as a whole."""
    text = clean(text)
    if re.search(r"的$", text) and not re.search(r"的、", text):
        return [text]
    if "、" in text:
        pieces = re.split(r"、|(?<=.{2})(?:以及|及|和|或者|或)(?=.{2})", text)
        return [p.strip() for p in pieces if p.strip()]
    if re.search(r"是|有|已|为|被|经|同意|说明|约定|规定|要求|批准|确认|能|在", text):
        return [text]
    return [p for p in re.split(r"(?<=.{2})(?:以及|及|和|或者|或)(?=.{2})", text) if p]


def split_exceptions(text: str, prohibits: bool) -> list[tuple[str, list[str], list[str]]]:
    """Ways to part a clause into (main, exceptions, marked words in them), the likeliest first."""
    ways: list[tuple[str, list[str], list[str]]] = []
    for pattern in (*_LEADING, *_TRAILING):
        match = pattern.match(text)
        if not match:
            continue
        if pattern is _LEADING[2] and not prohibits:
            continue
        what = match["what"]
        if pattern is _TRAILING[1] and re.match(r"除", what):
            continue
        ways.append((match["main"], things(what), marks(what)))
    match = _MIDDLE.match(text)
    if match:
        ways.insert(
            0, (f"{match['head']}，{match['tail']}", things(match["what"]), marks(match["what"]))
        )
    return ways


# --- definitions ------------------------------------------------------------------------------

_ALSO = re.compile(
    r"[，,（(]\s*(?:以下简称为?|以下称为?|下称|又称为?|也称为?|亦称为?|也叫做?|又叫做?|简称为?|或称|又名|亦作|英文为)\s*[:：]?(?P<names>[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫](?:[、和或与][⟦⟪][^⟦⟪⟧⟫]+[⟧⟫])*)\s*[)）]?[，,]?"
)
_MEANS = re.compile(
    rf"^(?P<lead>[^，。；⟦⟪]*?)(?:[，,])?{NAME}(?:一词|这一概念|一语)?\s*[，,]?\s*(?:系指|是指|指的是|指|即为|即是|即|意为|意即|意指|定义为|系|就是|是|包括|包含|：|:|——)\s*[：:，]?(?P<meaning>.+)$"
)
_DEEMED = re.compile(
    rf"^(?P<meaning>.+?)[，,]?\s*(?:一律|均|都|即|可|应当|应|也|即可)?(?:被)?(?:视同为|视同|视为|认定为|认作|属于|称为|称作|叫做|叫作|算作|算是|构成|即为|即属|当作|是为|统称为|统称|简称|谓之|为)\s*{NAME}$"
)
_PLAIN = re.compile(
    r"^(?:本[\u4e00-\u9fff]{1,4}所称(?:的)?)?(?P<name>[\u4e00-\u9fffA-Za-z]{2,16}?)(?:，)?(?:是指|系指|指的是)(?P<meaning>.+)$"
)


def definition(text: str) -> Norm | None:
    also: list[str] = []
    start = MARK.search(text)
    head = text
    if start:
        match = _ALSO.match(text, start.end())
        if match:
            also, head = marks(match["names"]), text[: start.end()] + text[match.end() :]
    found = _MEANS.match(head)
    if found and (
        not found["lead"] or re.search(r"所称的?$|所谓的?$|称$|中$|里$|下$|内$", found["lead"])
    ):
        verb = head[found.end("name") : found.start("meaning")]
        loose = (
            re.fullmatch(r"[，,\s]*(?:即|是|系|就是|包括|包含|：|:|——|指)[：:，\s]*", verb)
            is not None
        )
        quoted = found["name"].startswith("⟪")
        if not loose or (
            quoted
            and not re.match(r"[^，]*?(?:不得|必须|须)", found["meaning"][:3])
            and not compared(head, "zh")
        ):
            return _defined(found["name"], found["meaning"], also)
        if loose and quoted and re.search(r"即|指", verb):
            return _defined(found["name"], found["meaning"], also)
    found = _DEEMED.match(text)
    if (
        found
        and len(found["meaning"]) > 1
        and not re.search(_NOT + "$|不$|须$|必须$|应$", clean(found["meaning"]))
    ):
        return Norm(
            "definition",
            details={
                "term": name(found["name"]),
                "meaning": clean(re.sub(r"^凡(?:是)?", "", found["meaning"])),
            },
            also=also,
        )
    found = _PLAIN.match(text)
    if found and not marks(text):
        return _defined(found["name"], found["meaning"], [])
    return None


def _defined(term: str, meaning: str, also: list[str]) -> Norm:
    return Norm("definition", details={"term": name(term), "meaning": clean(meaning)}, also=also)


# --- precedence -------------------------------------------------------------------------------

_OVER = r"(?:的)?(?:效力|地位|位阶|层级|级别|顺位|适用)?(?:应当|应|须|均|都|总是|始终|一律)?(?:优先适用于|优先于|优于|高于|先于|大于|胜过|取代|优先|排在|压过|覆盖|凌驾于)"
_UNDER = (
    r"(?:的)?(?:效力|地位|位阶|层级)?(?:应当|应|须)?(?:低于|让位于|服从于|服从|后于|次于|劣后于)"
)
_DIFFER = r"(?:不一致|不同|不符|冲突|矛盾|抵触|有出入|有冲突|有矛盾|相冲突|相抵触|相矛盾|发生冲突|出现矛盾|有差异|存在差异|存在冲突|打架)"
_WINS = r"(?:为准|算数|为主|为依据|优先适用|优先|有效|为先|说了算)"
_PAIR = re.compile(
    rf"^(?:如果|如|若|当|凡)?(?P<a>[^，。；]+?)(?:和|与|跟|及|、)(?P<b>[^，。；]+?)(?:之间)?(?:的?(?:规定|内容|约定|表述|记载|说法|条款|数值|价格)?)?(?:有)?(?:相互|互相|彼此|相)?{_DIFFER}(?:的|时|之处|的地方|的时候)?(?:，|,)?\s*(?:应当|应|须|一律|均|则)?(?:以|按|按照)?(?P<win>[^，。；]+?)(?:中)?(?:的?(?:规定|内容|记载|约定|表述))?{_WINS}$"
)
_LEAD_IF = re.compile(
    rf"^(?:如果|如|若|当|凡|在)?(?:各|这些|几份|多份|相关)?[^，。；：]{{0,12}}?(?:{_DIFFER}|说法不一|并存|竞合)(?:的|时|的时候|的情况下|之处)?[，,]\s*"
)
_LOOK = re.compile(
    r"^(?:应当|应|须|按)?(?:首先|先|优先|第一|首选)(?:以|看|查|依据|依|参照|适用|按照|按|采用|采信|参考)(?P<rest>.+)$"
)
_RANKING = re.compile(
    r"^(?:[^：:，。]*?)(?:次序|顺序|顺位|排序|排列|先后|优先级|位阶|依次|从高到低)[^：:，。；]*?(?:[:：]|为|是)(?:依次为|依次是)?\s*(?P<rest>.+)$"
)
_TOP = re.compile(
    r"^(?:应当?|须)?(?:以)?(?P<a>[^，。；]+?)(?:的?效力)?(?:为先|最为?优先|最优先|优先|第一|居首|排在?首位|最高|在先|为首)[，,；;]\s*(?P<rest>(?:其次|再次|然后|之后|接着|再|最后|第二).+)$"
)
_NEXT = r"[，,；;、]?\s*(?:再次|再|其次|然后|随后|接着|而后|之后|次之|最后|末|第二|第三|第四|最终)(?:才)?(?:是|看|查|以|依据|依|参照|适用|按照|按|采用|采信|参考|为)?"


def _member(text: str) -> str:
    text = re.sub(r"^(?:\d+[.、)）]|[（(]\d+[)）]|[一二三四五六][、.])\s*", "", text.strip())
    text = re.sub(r"^(?:以|由|是|为|看|在)(?=.{2})", "", clean(text))
    text = re.sub(r"^(?:其次|再次|最后|然后|随后|第[二三四])?(?:是|为|看|以)?(?=.{2})", "", text)
    text = re.sub(r"^(?:其|该)(?=.{2})", "", text)
    return name(
        re.sub(
            r"(?:为准|为先|优先|次之|最末|最后|居后|之前|之上|前面|前|的效力|的规定|垫底)$",
            "",
            text,
        )
    )


def members(text: str) -> list[str]:
    if ">" in text or "＞" in text:
        pieces = re.split(r"[>＞]", text)
    elif "\x1e" in text:
        pieces = text.split("\x1e")
    else:
        pieces = re.split(_NEXT + r"|[，,、；;]|→", text)
    return [m for m in (_member(p) for p in pieces if p) if m]


def order(text: str) -> list[str] | None:
    """The order of kinds that a clause states, highest first."""
    text = text.strip(" 。")
    match = _PAIR.match(text)
    if match:
        a, b, win = name(match["a"]), name(match["b"]), _member(match["win"])
        if win in ("后者", "后面的"):
            win = b
        elif win in ("前者", "前面的"):
            win = a
        if win == b or (win != a and (win in b or b in win)):
            return [b, a]
        if win == a or win in a or a in win:
            return [a, b]
    if re.search(r"[>＞]", text) and not re.search(r"[<=]|\d", text):
        return members(re.sub(r"^[^:：>＞]*[:：]", "", text))
    for body in dict.fromkeys((text, _LEAD_IF.sub("", text, count=1))):
        match = _RANKING.match(body)
        if match and ("\x1e" in text or len(members(match["rest"])) > 1):
            return members(match["rest"])
        top = _TOP.match(body)
        if top:
            return [_member(top["a"]), *members(top["rest"])]
        look = _LOOK.match(body)
        if look and len(members(look["rest"])) > 1:
            return members(look["rest"])
        pairs = _pairs(body)
        if pairs:
            return chain(pairs)
    return None


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    lower = ""
    for piece in re.split(r"[，,；;]", text):
        piece = re.sub(r"^(?:而|且|并且|同时|又)\s*", "", piece.strip())
        match = re.search(rf"(?P<over>{_OVER})|(?P<under>{_UNDER})", piece)
        if not match:
            continue
        if not piece[: match.start()] and not lower:
            continue
        if terms(piece) and any(t.type in ("money", "percent", "duration") for t in terms(piece)):
            return []
        left = _member(piece[: match.start()]) or lower
        left = lower if left in ("后者", "它", "其") and lower else left
        rest = [_member(x) for x in re.split(rf"{_OVER}|和|与|及|、", piece[match.end() :])]
        rest = [r for r in rest if r]
        if not left or not rest or re.search(_NOT, left) or rest[0] in ("适用", "考虑", "处理"):
            continue
        if match["under"]:
            pairs += [(r, left) for r in rest]
            lower = left
            continue
        for item in rest:
            pairs.append((left, item))
            left = item
        lower = rest[-1]
    return pairs


_TIES = (
    (
        "later date",
        re.compile(
            r"(?:日期|时间|签署|生效|发布|出具|签订|制定|成文|落款)[^，。；]{0,8}?(?:在后|较后|靠后|后者|晚|较晚|新|近|最近|居后|后)|最新|较新|最近|新版|较晚|最晚|晚的|新的|后签|后出|在后|后发|后订|后来|较近"
        ),
    ),
    (
        "earlier date",
        re.compile(
            r"(?:日期|时间|签署|生效|发布|出具|签订|制定|成文|落款)[^，。；]{0,8}?(?:在先|在前|较先|较前|靠前|早|居前|先|前)|最早|较早|旧版|早的|旧的|先签|先出|在先|在前|先发|先订"
        ),
    ),
    (
        "higher rank",
        re.compile(
            r"(?:级别|层级|位阶|等级|效力等级|职级|机关|机构|法院|行政级别)[^，。；]{0,8}?(?:较?高|上级|更高)|上级|较高者|级别高|高的"
        ),
    ),
)
_TIE_CUE = re.compile(
    rf"同级|同一|同类|同等|同种|相同|版本|两份|两个|同为|并列|同样|{_WINS}|的(?:优先|有效)|仍相同|一样|再以|再看"
)


def tie(text: str) -> str | None:
    """The tie rule that a clause states."""
    bare = plain(text)
    if not _TIE_CUE.search(bare) or (marks(text) and not re.search(r"为准|算数|优先", bare)):
        return None
    if re.search(r"不得|必须|记载|首次", bare) and not re.search(
        r"同级|同一(?:层级|级别|种类|类)|同类", bare
    ):
        return None
    body = (
        re.sub(
            r"^[^，]*?(?:同级|同一|同类|同等|同种|相同|一样|版本不同|两份|两个)[^，]*，", "", bare
        )
        or bare
    )
    hits = [(m.start(), label) for label, pattern in _TIES if (m := pattern.search(body))]
    if not hits and body != bare:
        hits = [(m.start(), label) for label, pattern in _TIES if (m := pattern.search(bare))]
    return min(hits)[1] if hits else None


_LEFT = re.compile(
    r"仍|还是|依然|依旧|无法|不能|难以|分不出|如有疑问|有疑问|否则|其余|不能确定|判断不了|未能|如还|平局|并列|存疑|不明|疑义|没有结果|还不"
)
_ASK = re.compile(
    r"询问|请示|问清|求证|提问|发问|咨询|请求说明|问用户|问客户|请用户|再问|(?:，|应|须|请|则|就)问"
)
_CONTESTED = re.compile(r"争议|存疑|未决|待定|有分歧")


def unresolved(text: str, after_tie: bool = False) -> str | None:
    """What a clause says is to be done with what stays tied."""
    bare = plain(text)
    if not (_LEFT.search(bare) or after_tie):
        return None
    if _ASK.search(bare):
        return "ask"
    return "contested" if _CONTESTED.search(bare) else None


# --- consistency ------------------------------------------------------------------------------

_SAME = re.compile(
    r"一致|相同|相符|吻合|保持不变|不变|不得(?:变更|改变|更改|变动|修改|变|前后不一|不一致|偏离|背离|违背|与[^，。；]{1,16}(?:不同|不一致|不符|矛盾|抵触|有出入))|为准|照抄|照录|如实|必须是[^，。；]{0,12}(?:那一个|那个|所载|记载|所写|写明)|对应|遵照|依照|按照|依据|不能(?:变|改)|不可(?:变更|更改)|前后统一|保持统一|有效的"
)
_CONTRADICTS = re.compile(
    rf"^(?:(?:{SPEAKER_ZH})[，,]?)?{_NOT}(?:说出|说|给出|陈述|引用|报出|报|使用|写|提供|称)(?:与[^，。；⟦⟪]+?(?:不同|不一致|不符|矛盾|抵触|相抵触|相矛盾)的)?{NAME}?(?P<rest>.*)$"
)


def _slots(text: str) -> list[str]:
    found: list[str] = []
    last: int | None = None
    for match in MARK.finditer(text):
        if last is not None and not re.fullmatch(
            r"\s*(?:、|和|及|与|以及)\s*", text[last : match.start()]
        ):
            break
        found.append(name(match[1]))
        last = match.end()
    return found


_SUBJECT = re.compile(
    rf"^(?P<s>(?:(?!须|应|不得|不能).)+?)(?:{_MUST}|不得|不能|不可|只能|仅限|可以|可|为|是|至少|至多|最多|最少|最高|最低|最长|最短|不超过|不少于|不多于|不低于|不高于|不迟于|不早于|不短于|不长于|自首次|以|一律|限于|控制在|介于|在)"
)


def _subject(text: str) -> str | None:
    body = re.sub(r"^(?:自|从)[^，]+?起(?:算|计算)?，", "", plain(text))
    match = _SUBJECT.match(body)
    if not match:
        return None
    subject = re.sub(r"^(?:任何|每一|所有|各|凡)(?=.{2})", "", match["s"].strip(" ，"))
    subject = re.sub(r"(?:的|一般|原则上|均|都|总共|共计|合计)$", "", subject)
    if (
        not subject
        or re.match(r"如|若|当|凡|一旦", subject)
        or "，" in subject
        or len(subject) > 20
        or re.fullmatch(SPEAKER_ZH, subject)
    ):
        return None
    return subject.lower()


def _also_in(text: str) -> tuple[str, list[str]]:
    start = MARK.search(text)
    match = _ALSO.match(text, start.end()) if start else None
    if not match or not start:
        return text, []
    return text[: start.end()] + text[match.end() :], marks(match["names"])


def whole(text: str) -> Norm | None:
    """A norm that is read before its exceptions are parted off."""
    return definition(text)


def consistency(text: str) -> Norm | None:
    contradicts = _CONTRADICTS.match(text)
    if (
        contradicts
        and contradicts["name"]
        and (re.search(r"不同|不一致|不符|矛盾|抵触|没有|未", plain(text)))
    ):
        return Norm("consistency", [name(contradicts["name"])], {"reference": _reference(text)})
    text, also = _also_in(text)
    same = _SAME.search(MARK.sub(lambda m: "X" * len(m[0]), text))
    if not same:
        return None
    slots = _slots(text[: same.end()])
    start = MARK.search(text)
    if start and start.start() > same.start():
        slots = []
    if not slots:
        subject = _subject(text)
        if subject is None or not re.search(
            r"一致|相符|相同|不变|为准|吻合|不得(?:变更|改变|更改)", same[0]
        ):
            return None
        slots = [subject]
    return Norm("consistency", slots, {"reference": _reference(plain(text))}, also=also)


def _reference(text: str) -> str:
    if re.search(
        r"首次|最初|第一次|起初|一开始|先前|最先|此前|之前(?:说|提|给|约|承诺)|初次|前文|原先|开头",
        text,
    ):
        return "first"
    if re.search(r"各轮|轮次|每一轮|每轮|对话|会话|聊天|前后各|多轮|全程|交谈", text):
        return "turns"
    if re.search(
        r"(?:不得|不能|不可)(?:变更|改变|更改|变动|修改|变)$|保持不变$", text.strip(" 。")
    ) and not re.search(r"与|合同|记录|资料|原文", text):
        return "first"
    return "sources"


# --- bounds -----------------------------------------------------------------------------------

_CHOICE = re.compile(
    r"(?:(?P<only>只能|仅能|只可|仅可|仅限|限于|限|只限于|只限|只有|应当?从|须从|必须从|从)(?:为|是|选用|选择|采用|使用|在|以|填写|通过)?|(?P<be>(?:必须|应当|应|须|可以|可)?(?:为|是|选用|采用|选择|通过)))"
    r"(?:以下(?:之一|选项)?[：:]?)?(?P<list>[^。；]+?)(?P<one>(?:三者|两者|四者|二者|其中)?(?:之一|中的一种|中的一个|中选择(?:一种|一个)?|中选取|中任选(?:其一)?|其中之一|中择一|这[两三四]种|[两三四]种))?$"
)


def bound(text: str) -> list[Norm]:
    text, also = _also_in(text)
    when = None
    condition = re.match(
        r"^(?:当|如果|如|若|凡|对于|对|就)?(?P<c>[^，⟦⟪]+?)(?P<m>时|的时候|的情况下|的|，)，?(?P<rest>.*[⟦⟪].*)$",
        text,
    )
    first = MARK.search(text)
    if (
        first
        and condition
        and (condition["m"] != "的" or re.match(r"，", text[condition.end("m") :]))
        and condition.start("rest") <= first.start()
    ):
        head = text[: condition.start("rest")]
        if "，" in head and not re.match(r"(?:自|从)[^，]+?起|本|在本", head):
            when = clean(
                re.sub(
                    r"(?:时|的时候|的情况下|的)?，?$",
                    "",
                    re.sub(r"^(?:当|如果|如|若|凡)", "", head),
                )
            )
            text = condition["rest"]
    made = _choices(text)
    if made is None:
        made = []
        if not re.match(_NOT, text) or first:
            found = compared(text, "zh")
            if (
                found
                and all(c.operator == "=" for c in found)
                and re.search(r"一致|为准|相同", text)
            ):
                found = []
            if (
                re.match(_NOT, text)
                and found
                and not re.search(r"[⟧⟫]$", text[: found[0].at].rstrip())
            ):
                found = []
            for position, operator, value, type_, doubtful in norms_of(text, found, "zh"):
                slots = _slots_at(text, position, made)
                if not slots:
                    break
                details = {"operator": operator, "value": value}
                _from(text, type_, details)
                made += [
                    Norm("bound", [s], dict(details), type=type_, ambiguous=doubtful) for s in slots
                ]
    for norm in made:
        norm.also = also
        if when:
            norm.details["when"] = when
    return made


def _from(text: str, type_: str, details: dict[str, object]) -> None:
    per = re.search(r"每(?:人)?(?:天|日|周|月|年|次|季度|小时|人|单|件|晚)", MARK.sub("", text))
    if per:
        details["per"] = per[0]
    start = re.search(
        r"(?:自|从)(?P<a>[^，。；]+?)(?:之日)?起|(?:在|于)(?P<b>[^，。；⟦⟪\d]{2,20}?)(?:之后|后)",
        plain(text),
    )
    if type_ == "duration" and start:
        details["from"] = clean(start["a"] or start["b"])


def _slots_at(text: str, position: int, made: list[Norm]) -> list[str]:
    before = [m for m in MARK.finditer(text) if m.end() <= position + 1]
    if before:
        if made and name(before[-1][1]) != made[-1].names[0] and len(before) > 1:
            return [name(before[-1][1])]
        if made:
            return [made[-1].names[0]]
        return _slots(text[: position + 1])
    if made:
        return [made[-1].names[0]]
    subject = _subject(text)
    if subject:
        return [subject]
    head = plain(text[:position]).strip(" ，")
    if head and len(head) <= 16 and "，" not in head and not re.fullmatch(SPEAKER_ZH, head):
        return [head.lower()]
    return [name(m) for m in marks(text)][:1]


def _choices(text: str) -> list[Norm] | None:
    first = MARK.search(text)
    shown = MARK.sub(lambda m: "⟦" + "x" * (len(m[0]) - 2) + "⟧", text)
    found = _CHOICE.search(shown, first.end() if first else 0)
    if not found:
        return None
    body = text[found.start("list") : found.end("list")]
    explicit = bool(found["only"] or found["one"])
    if (
        not re.search(r"或|、|和|/|，", body)
        or len(body) > 200
        or re.search(r"之间|以内|以上|以下|不得|须", body)
    ):
        return None
    if not explicit and not re.search(r"或", body):
        return None
    made = listed(body)
    if made is None or len(made[0]) < 2:
        return None
    values, type_, doubtful = made
    if type_ == "choice" and (any(len(m) > 16 for m in values) or (not explicit and terms(body))):
        return None
    slots = _slots(text[: found.start("list")])
    if not slots:
        subject = _subject(text)
        if subject is None:
            return None
        slots = [subject]
    return [
        Norm("bound", [s], {"operator": "in", "value": values}, type=type_, ambiguous=doubtful)
        for s in slots
    ]


# --- prohibitions and requirements ------------------------------------------------------------

_FORBID = re.compile(rf"^(?P<front>.*?)(?P<not>{_NOT})(?:再)?(?P<act>.+)$")


def prohibition(text: str) -> Norm | None:
    bare = clean(text)
    for pattern in (_ONLY, _AFTER_ONLY):
        match = pattern.match(bare)
        if match and not re.search(_NOT, bare):
            what = re.sub(r"^(?:须经|经|在|待)", "", match["what"])
            what, subject = clean(what), ""
            return Norm(
                "prohibition",
                details={"act": _without_speaker(subject + clean(match["act"]))},
                exceptions=[what],
            )
    match = _FORBID.match(bare)
    if not match:
        return None
    front, act = match["front"], match["act"]
    front = (
        re.sub(r"(?:一律|均|都|也|绝对|在任何情况下|任何情况下|任何时候|，)+$", "", front)
        if not front.endswith("，")
        else front
    )
    details: dict[str, str] = {}
    if "，" in front:
        condition, _, subject = front.rpartition("，")
        subject = _without_speaker(re.sub(r"(?:一律|均|都|也)$", "", subject))
        if re.fullmatch(r"(?:在)?任何(?:情况|时候|情形)下?|无论如何", condition):
            front = ""
        else:
            front = condition + "，"
            when = re.sub(
                r"^(?:当|如果|如|若|凡|一旦|在)|(?:时|的时候|的情况下|的|后)$", "", condition
            )
            details["when"] = clean(when)
    else:
        front, subject = "", _without_speaker(front)
    act = f"{front}{subject}{act}"
    return Norm("prohibition", details={"act": clean(act), **details})


def _without_speaker(text: str) -> str:
    return re.sub(rf"^(?:{SPEAKER_ZH})(?:中|里)?(?:一律|均|都|也|在任何情况下)?[，,]?", "", text)


_WITHIN = re.compile(
    r"[，,]?(?:并)?(?:须|应当|应|必须|要)?(?P<must>)在?同一(?:个)?(?:句话?|句子|段落?|段话|回答|回复|答复|条回复)(?:的)?(?:中|里|内|之内|里面)?[，,]?|[，,]?在(?:该|本|同)(?:句|段)(?:话)?(?:中|里|内)[，,]?"
)
_COND = re.compile(
    r"^(?:当|如果|如|倘若|若|假如|凡是|凡|一旦|每当|每次|只要|在)?(?P<when>.+?)(?:的?时候|的情况下|之时|时|的话|的|后|之后|之前)?[，,]\s*(?:则|就|便|那么)?(?P<then>.+)$"
)
_HAS_COND = re.compile(
    r"^(?:当|如果|如|倘若|若|假如|凡是|凡|一旦|每当|每次|只要)|(?:时候|情况下|时|的话|的|后)[，,]|^(?:提及|提到|谈及|谈到|涉及|说到|讲到|介绍|承诺|引用|推荐)"
)


def requirement(text: str) -> Norm | None:
    bare = clean(text)
    within = "answer"
    place = _WITHIN.search(bare)
    if place:
        within = "sentence" if "句" in place[0] else "paragraph" if "段" in place[0] else "answer"
        must = re.search(_MUST, place[0])
        joint = "，" if place[0].startswith(("，", ",")) else ""
        bare = bare[: place.start()] + joint + (must[0] if must else "") + bare[place.end() :]
        bare = re.sub(r"，，+", "，", bare).strip("，")
    condition = _COND.match(bare)
    if condition and _HAS_COND.search(bare):
        for comma in re.finditer(r"[，,]", bare):
            then = _then(re.sub(r"^(?:则|就|便|那么)", "", bare[comma.end() :]), bool(place))
            if then:
                when = re.sub(
                    r"^(?:当|如果|如|倘若|若|假如|凡是|凡|一旦|每当|每次|只要)",
                    "",
                    bare[: comma.start()],
                )
                when = re.sub(r"(?:的?时候|的情况下|的情形下|之时|时|的话|的)$", "", when)
                return Norm(
                    "requirement", details={"when": clean(when), "then": then, "within": within}
                )
    joined = re.match(
        rf"^(?:当|如果|如|若|凡是|凡|一旦|每当|每次)?(?P<when>(?:提及|提到|谈及|谈到|涉及|说到|讲到|引用|推荐|承诺|介绍|报出|给出).+?)(?:的|时|的时候|时候|后)(?:都|均|就)?(?P<then>{_MUST}.+)$",
        bare,
    )
    if joined is None:
        # "解释条款时应当引用原文": no comma behind the condition.
        joined = re.match(
            rf"^(?P<when>[^，。；]{{2,24}}?(?<![同及按随临届]))(?:的?时候|时)(?P<then>{_MUST}.+)$",
            bare,
        )
    if joined and (then := _then(joined["then"], True)):
        return Norm(
            "requirement", details={"when": clean(joined["when"]), "then": then, "within": within}
        )
    then = _then(bare, False)
    return Norm("requirement", details={"then": then, "within": within}) if then else None


# What a mere 请 may ask for: "请注意日期" asks for nothing that could be checked.
_ACTS = (
    r"(?:给出|说明|告知|告诉|提示|注明|写明|列出|标明|标注|提醒|附上|附|指出|提供|强调|引用|使用|核实|核对|确认|询问|建议|转接|转交|"
    r"记录|回复|解释|介绍|出示|填写|提交|联系|通知|区分|声明|披露|写|报|致歉|道歉|感谢|推荐|加上|注(?!意|重)|称|说)"
)


def _then(text: str, loose: bool) -> str | None:
    text = clean(text)
    if re.match(r"请", text) and not re.match(
        rf"请(?:同时|一并|主动|先|务必|在[^，]{{1,12}})?{_ACTS}", text
    ):
        return None
    match = re.match(
        rf"^(?P<s>[^，。；]{{0,16}}?){_MUST}(?:同时|一并|一律|都|当场|主动|也|要)?(?P<then>.+)$",
        text,
    )
    if match and not re.match(r"不", match["then"]):
        subject = _without_speaker(re.sub(r"(?:都|均|也|一律|还|就|则)$", "", match["s"]))
        if re.search(_NOT, subject):
            return None
        return (
            clean(subject + match["then"])
            if not re.fullmatch(r"都|均|也|一律|并", subject)
            else clean(match["then"])
        )
    return text if loose and re.match(_ACTS, text) else None


# --- one clause -------------------------------------------------------------------------------

_SCOPE = (
    re.compile(
        r"^(?:本条|前款|上述规定|本规则|以上规定|此规定|该规定|该限制|此限制|上述限制|这)(?:规定)?不适用于(?P<what>.+)$"
    ),
    re.compile(r"^(?:但)?(?P<what>[^，。]+?)(?:不在此限|不受此限|除外|例外)$"),
)


def scope(text: str) -> list[str] | None:
    """The exceptions that a sentence of its own adds to the norm before it."""
    for pattern in _SCOPE:
        match = pattern.match(clean(text))
        if match:
            return things(match["what"])
    return None


_FAILURE = re.compile(
    r"^(?:如果|如|若|一旦)?(?:有)?(?:违反|违规|违背|失败|不符|不一致|不符合|未遵守|未满足|违例|超出|违)(?:本条|本规则|该规则|规则|规定|上述规定|要求|前款)?(?:的时候|的|时|者|情形)?\s*(?:[:：，,]|则|即|就|应当|应|须)+\s*(?:立即|应当|应|须|则|予以|回答)*(?P<word>[\u4e00-\u9fffA-Za-z]{1,6}?)(?:回答|输出|生成|处理|答复)?$"
)


def failure(text: str) -> str | None:
    """The word that a failure sentence gives for the action."""
    match = _FAILURE.match(clean(text)) or re.match(
        r"^处理(?:方式)?[:：为](?P<word>[\u4e00-\u9fff]{2,4})$", clean(text)
    )
    return match["word"].lower() if match else None


def main_clause(text: str) -> list[Norm]:
    """The norms of a clause without exceptions, or none."""
    made = definition(text)
    if made:
        return [made]
    conditional = not marks(text) and re.match(
        r"^(?:当|如果|如|若|凡|一旦|每当|提及|提到|谈及|谈到|涉及)|^[^，]+的，", text
    )
    bounds = [] if conditional else bound(text)
    if bounds:
        return bounds
    same = consistency(text)
    if same:
        return [same]
    forbidden = prohibition(text)
    if forbidden:
        return [forbidden]
    required = requirement(text)
    return [required] if required else []


_SPLIT = re.compile(
    r"[，,]\s*(?:而|且|并且|同时)?(?=[^，。；⟦⟪]{0,8}[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫][^，。；]*?(?:须|应|不得|必须|为|不|至|最|只能|在|以))"
)


def clauses(text: str) -> list[str]:
    """Coordinated main clauses with a marked slot each."""
    pieces: list[str] = []
    start = 0
    for match in _SPLIT.finditer(text):
        head = text[start : match.start()]
        if (
            marks(head)
            and re.search(r"须|应|不得|必须|为|不|至少|至多|最|只能|以", MARK.sub("", head))
            and not re.match(r"除非|除|未经|但", head)
        ):
            pieces.append(head)
            start = match.end()
    pieces.append(text[start:])
    return pieces
