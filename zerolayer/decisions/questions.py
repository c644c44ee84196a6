"""What a user's turn asks for: kinds of value, ellipsis, recalls, and which slot is meant."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zerolayer.decisions.sentences import find_cues, fold
from zerolayer.decisions.terms import terms
from zerolayer.readings import Slot
from zerolayer.values import find_values

NAMED: Final = 2.0  # weight of a term of the slot's name against one of its clauses
SAID: Final = 3.0  # the slot's name itself
HEAD: Final = 0.6  # the head noun of its name alone ("my price"), less where others share it
FITS, MISFITS = 0.8, -2.0  # the kind of value that is asked for, and another one
CONTINUES: Final = 1.3  # a follow-up without a question of its own; twice where it names a case
RESUMES: Final = 0.8  # "what does it cost?" after a question about a cost
NAMES: Final = 0.6  # a doubted value that the sources state for a slot in some case
RECENT: Final = 0.2  # of two slots that fit alike, the one that was spoken of
EVIDENCE: Final = 0.3  # below it nothing ties a question for a kind of value to the slot
EVIDENCE_ALONE: Final = 1.0  # the same for a turn that asks for no kind of value

_HEADS: Final = frozenset(
    "fee price charge fare fine penalty rate deposit discount bonus deadline limit date quota "
    "surcharge premium rent".split()
)
_UNIT: Final = (
    r"(?:minutes?|hours?|(?:business |working |calendar )?days?|nights?|weeks?|months?|years?)"
)
_ZH_UNIT: Final = r"(?:天|日|周|星期|个月|个?工作日|年|个?小时|分钟)"
_KINDS: Final = tuple(
    (re.compile(pattern), frozenset(kinds.split()))
    for pattern, kinds in (
        (
            rf"\bhow (?:long|soon|quickly|fast|late|early)\b|\b(?:until|till|by|since) when\b|"
            rf"\bhow many (?:more )?{_UNIT}\b|\bhow much (?:time|notice)\b|\bdeadline\b|"
            rf"\bwithin (?:what|which|how)\b|\bperiod\b|"
            rf"多久|多长时间|[几多][少]?{_ZH_UNIT}|期限|时限|最[晚迟]|来得及",
            "duration",
        ),
        (
            r"(?:^|[.?!,;:] |\b(?:and|or|until|by|from|since) )when\b|\bwhat time\b|"
            r"什么时候|何时|几点",
            "duration date choice text",
        ),
        (
            r"\b(?:what|which) (?:day|date)\b|\b(?:repeat|remind|noted?|confirm)\b.*"
            r"\b(?:day|date)\b|"
            r"哪一?天|几号|几月|日期|哪日",
            "date",
        ),
        (
            r"\bhow much(?: (?:is|are|was|were|does|do|did|will|would|for|to|of|more|extra|should|"
            r"must|can|could|money)\b|[?,.]|$)|"
            r"\bwhat(?:'s| (?:do|does|did|will|would|is|are|was|were))\b[^.?!]*"
            r"\b(?:costs?|price|pay|owe|charge)\b|多少钱|价钱|多少元|几块|[收赔扣付交罚退]多少|要钱|花费|"
            r"贵吗|什么价|怎么[收卖算]",
            "money percent",
        ),
        (r"\b(?:what|which) (?:share|percentage)\b|\bper ?cent|几折|百分之", "percent"),
        (r"\bwhat rate\b|\bdiscount\b|\binterest\b|比例|折扣|利率|优惠", "percent money"),
        (
            rf"\bhow many (?!(?:more )?{_UNIT}\b)|\bhow often\b|"
            r"[几多][少]?(?:个(?!月|工作日|小时)|本|件|张|次|人|台|部|份|瓶|片|盒|位|只|册|公斤|兆|包)",
            "number quantity percent",
        ),
        (
            r"\bwhere\b|\bwhich (?:place|shop|branch|office|room)\b|哪里|哪儿|什么地方",
            "choice text",
        ),
        (r"多少(?!钱|元|天|日|周|个|本|件|张|次|人)", "money number percent quantity"),
    )
)
_PRICED: Final = frozenset({"money", "percent"})
# Words of payment that ask for a price only where nothing else is asked for.
_PAYS: Final = re.compile(
    r"\b(?:the|a) fine\b|\b(?:penalt(?:y|ies)|fare|deposit)\b|"
    r"\b(?:per|an?) (?:hour|day|night|week|month|year)\b|"
    r"\b(?:costs?|pric\w+|pay|owe|fees?|charges?|charged|surcharge|expensive|cheap\w*)\b|"
    r"费用|收费|价格"
)
_ASKS: Final = re.compile(
    r"[?？]|\b(?:tell|repeat|remind|confirm|check|explain|recall|say again|once more)\b|"
    r"告诉|再[说讲报念看]|重复|复述|回顾|[说讲报念]一遍|提醒|确认|说说|[吗呢]|请问|哪"
)
_ELLIPTIC: Final = re.compile(
    r"^(?:(?:and|or|but|so|then|ok|okay|hm+|well|yes|no|sorry|right|fine|thanks|thank you)\b"
    r"[,.: ]*)*"
    r"(?:(?:and|or|but|then|what (?:about|if)|how about|if|suppose|for|with|without|in|on|at|same|"
    r"what (?:would|will|does|is) (?:it|that|this)|as an?|mine|ours)\b|"
    r"(?!(?:do|does|did|is|are|was|can|could|may|will|would|have|has|must|should)\b)"
    r"[a-z'\-]+(?: [a-z'\-]+){0,3} ?\?)"
)
_IF_THEN: Final = re.compile(r"^(?:[a-z]+[,.]? )?(?:if|suppose|when)\b[^,]{8,}, ?[a-z]+ [a-z]+")
_POLAR: Final = re.compile(
    r"(?:^|[.!,;] )(?:can|may|could|must|do|does|did|is|are|will|would|have|has) "
    r"(?:i|we|you|they|it|there|the|a|an|my|your)\b[^.?!]*\?|吗[？?]?$|能不能|可不可以|行不行"
)
_ELLIPTIC_ZH: Final = re.compile(r"^(?:那|要是|如果|换成|若|假如|那么|还有)|呢[？?]?$")
_CONTRASTS: Final = re.compile(r"^(?:ok(?:ay)?[,.]? )?(?:and|what about|how about)\b|呢[？?]?$")
# "They told me it would be free": puts the last value in doubt without naming another.
_DOUBTS: Final = re.compile(
    r"\b(?:told me|said|says?|claims?|heard|read|thought|thinks?)\b.*"
    r"\b(?:free|nothing|less|more|longer|shorter|cheaper|different)\b|"
    r"(?:听说|据说|说是?|以为|写着?|看到).*(?:免费|不收|不要钱|不用|更[长短多少贵]|便宜)"
)
_PRONOUN: Final = re.compile(r"\b(?:it|that|this|they|them|one|ones|so)\b|它|这个|那个|[这那]种")
_FIRST: Final = re.compile(
    r"\bfirst\b(?! (?:time|class|floor|aid|name|month|year|week|day|order|come))|"
    r"\b(?:beginning|outset|initial(?:ly)?|originally)\b|\byou (?:began|started|opened) with\b|"
    r"最开始|一开始|刚开始|开始[时的说那]|第一(?!次|天|周|年|个?月|期)|第一次[说回答]|最先|最初|最早|头一个|开头|起初"
)
# "The man at the door said …": who said it and where is no case.
_HEARSAY: Final = re.compile(
    r"\b(?:the|your|a|an|my|some|another)\b [^,.?!;:]{1,40}?"
    r"\b(?:said|says|told (?:me|us)|claims?)\b|"
    r"(?:网上|官网|网站|前台|客服|店员|店里|朋友|别人|有人|同事|邻居|听)[^，。？?,]{0,6}[说讲写]"
)
_OWN: Final = re.compile(
    r"\b(?:mine|ours|my own|our own|for (?:me|us)|my case|our case|back to (?:me|us)|"
    r"(?:and|about) (?:me|us|i|we))\b|"
    r"^(?:(?:and|but|sorry|ok|so)[,.]? )*my [\w-]+(?: [\w-]+)?(?: (?:again|once more))? ?\?|"
    r"我自己|我的(?:呢|情况|那|[^，。,]{1,8}呢)|我们的(?:呢|情况)|我这|我本人|我们?呢|回到我"
)
_KIN: Final = (
    r"(?:friend|mother|father|mum|mom|dad|brother|sister|son|daughter|wife|husband|partner|"
    r"girlfriend|boyfriend|neighbou?r|colleague|boss|parent|aunt|uncle|cousin|child|children|"
    r"kid|grand\w+|niece|nephew|[\w-]+-old)s?"
)
_OTHERS: Final = re.compile(
    rf"\b(?:their|theirs|his|her|hers|he|she|him|my {_KIN})\b|"
    r"他|她|朋友|同事|邻居|孩子|小孩|儿子|女儿|[我的](?:妈|爸|父|母|哥|姐|弟|妹|爱人|太太|先生|爷|奶)"
)
# The user says something of themselves: "as a student", "my line is dead".
_STATES: Final = re.compile(
    r"\b(?:i'm|i am|we're|we are|as an?|i have|we have|i've|i bought|"
    r"i (?:live|travel|study|work|own|drive|ride|run|bring|need|use)|my)\b|"
    r"我(?:们|自己|本人)?(?:也|就|还)?[是有]|我[买寄办用订选住]|我的|我家|作为"
)
# The user takes the case that was spoken of: "I will take that one".
_ADOPTS: Final = re.compile(
    r"\b(?:switch|change (?:to|over)|that one then|then i|i(?:'d| would) rather|"
    r"(?:i'll|i will|we'll|let me|i would|i'd) (?:take|go for|choose|have))\b|"
    r"那就|还是|换成|改成|改办|改用|那我|我选|我要"
)
_THAT_CASE: Final = re.compile(
    r"\b(?:(?:that|this) one|in (?:that|this) case|for (?:that|this|it)|the same)\b|"
    r"[那这]种|[那这]个|这样的话"
)
_OTHERWISE: Final = re.compile(
    r"\b(?:otherwise|if not|outside (?:of )?(?:it|them|that)|without (?:it|that|one|them)|"
    r"the other(?: one)?|the rest|instead|normally|usually)\b|"
    r"否则|不然|另一[种个类]|其他的|别的|平时"
)
_PRICES, _COUNTS, _TIMES = ("money", "percent"), ("number", "quantity"), ("duration",)
_EXTREMES: Final = tuple(
    (re.compile(pattern), kinds, high)
    for pattern, kinds, high in (
        (r"\b(?:cheap(?:er|est)|(?:less|least) expensive|lower|lowest)\b|便宜", _PRICES, False),
        (r"\b(?:dear(?:er|est)|(?:more|most) expensive|higher|highest)\b|贵的", _PRICES, True),
        (r"\b(?:slow|small|few)(?:er|est)\b|[慢小少]的", _COUNTS, False),
        (r"\b(?:(?:fast|quick|larg)(?:er|est)|bigg(?:er|est))\b|[快大多]的", _COUNTS, True),
        (r"\b(?:short|fast|quick)(?:er|est)\b|[短快]的", _TIMES, False),
        (r"\b(?:long|slow)(?:er|est)\b|[长久慢]的", _TIMES, True),
    )
)
_PIECES: Final = re.compile(
    r"(?<=[.!?。！？；;])\s*|,? (?:and|or) (?=(?:how|what|when|until|where|which)\b)|"
    r"[，,](?=[^，,]*(?:几|多少|多久|什么|哪))"
)


@dataclass(frozen=True)
class Question:
    """One turn as read: its terms without values, the kinds of value that it asks for."""

    text: str
    terms: Mapping[str, float]
    kinds: frozenset[str]
    asks: bool
    elliptic: bool
    values: frozenset[str]  # types of the values that the turn itself mentions

    @property
    def words(self) -> list[str]:
        """The affirmed words among the terms, without notions and single signs."""
        return [t for t in self.terms if not t.startswith(("-", "#")) and len(t) > 1]

    @property
    def polar(self) -> bool:
        """Whether the turn asks for a yes or a no."""
        return _POLAR.search(fold(self.text).strip()) is not None

    @property
    def refers(self) -> bool:
        """Whether a pronoun points back."""
        return _PRONOUN.search(fold(self.text)) is not None

    @property
    def doubts(self) -> bool:
        """Whether the turn puts what was said in doubt, in words alone."""
        return _DOUBTS.search(fold(self.text)) is not None

    @property
    def first(self) -> bool:
        """Whether the first answer is asked for again."""
        return _FIRST.search(fold(self.text)) is not None

    @property
    def own(self) -> bool:
        """Whether the user comes back to their own case."""
        return _OWN.search(fold(self.text)) is not None

    @property
    def contrasts(self) -> bool:
        """Whether a follow-up names another case ("And for …?", 那……呢？)."""
        return (
            self.elliptic
            and not self.values
            and _CONTRASTS.search(fold(self.text).strip()) is not None
        )

    @property
    def states(self) -> bool:
        """Whether the user says something of themselves or takes a case for theirs."""
        return _STATES.search(fold(self.text)) is not None or self.adopts

    @property
    def adopts(self) -> bool:
        """Whether the user takes the case that was spoken of last."""
        return _ADOPTS.search(fold(self.text)) is not None

    @property
    def that_case(self) -> bool:
        """Whether the question points to the case that was spoken of last."""
        return _THAT_CASE.search(fold(self.text)) is not None

    @property
    def otherwise(self) -> bool:
        """Whether the question asks for whatever the last case leaves over."""
        return _OTHERWISE.search(fold(self.text)) is not None

    @property
    def others(self) -> bool:
        """Whether the turn speaks of somebody else's case."""
        return _OTHERS.search(fold(self.text)) is not None

    @property
    def extremes(self) -> list[tuple[tuple[str, ...], bool]]:
        """Types whose highest (True) or lowest value names the case ("the cheaper one")."""
        folded = fold(self.text)
        return [(kinds, high) for pattern, kinds, high in _EXTREMES if pattern.search(folded)]


def read_question(text: str, slots: Sequence[Slot]) -> Question:
    """Read one turn, or one piece of it."""
    blank, values = text, set()
    for kind in sorted({s.type for s in slots} - {"text"}):
        choices = sorted({c for s in slots if s.type == kind for c in s.choices})
        for found in find_values(text, {kind}, choices):
            # "one", "two of us" are words; a figure may be what somebody said.
            if kind != "number" or re.search(r"\d", text[found.start : found.end]):
                values.add(kind)
            blank = blank[: found.start] + " " * (found.end - found.start) + blank[found.end :]
    folded = fold(blank).strip()
    asked = _asked_kinds(folded)
    kinds = asked or (_PRICED if _PAYS.search(folded) else frozenset())
    last = re.split(r"(?<=[.!。！；;])\s*", folded.rstrip(" .。!！"))[-1]
    whole = _IF_THEN.search(last) is not None  # "If I forget to come, what happens?"
    elliptic = not asked and not whole and bool(_ELLIPTIC.search(last) or _ELLIPTIC_ZH.search(last))
    about = terms(_HEARSAY.sub(lambda m: " " * len(m[0]), fold(blank)))
    if "money" in kinds:
        # "What do I pay …?" asks for any price; the clause that says "pay" is not nearer to it.
        about = {t: w for t, w in about.items() if t not in ("pay", "cost")}
    asks = bool(asked) or _ASKS.search(folded) is not None
    return Question(text, about, kinds, asks, elliptic, frozenset(values))


def _asked_kinds(folded: str) -> frozenset[str]:
    """Types of value that a question asks for: of several the narrowest."""
    hits = [kinds for pattern, kinds in _KINDS if pattern.search(folded)]
    return min(hits, key=len) if hits else frozenset()


def last_sentence(text: str) -> str:
    """What a turn ends with, its question where statements come first."""
    return re.split(r"(?<=[.!?。！？；;])\s*", text.strip().rstrip(".?!。？！"))[-1]


def pieces(text: str, slots: Sequence[Slot]) -> list[Question]:
    """The questions of one turn: one, unless several kinds of value are asked for in turn."""
    whole = read_question(text, slots)
    cut = [p for p in _PIECES.split(text) if p and p.strip()]
    # "When my pots are fired I may be away." only looks like a question.
    cut = [p for p in cut if not p.rstrip().endswith((".", "!", "。", "！"))]
    asking = [q for q in (read_question(p, slots) for p in cut) if q.kinds]
    if len(asking) < 2 or len({q.kinds for q in asking}) < 2:
        return [whole]
    return asking


def evidence(
    question: Question, slots: Sequence[Slot], profiles: Sequence[Mapping[str, float]]
) -> list[float]:
    """What ties the words of a question to each slot.

    Args:
        profiles: for each slot what a term of its names and clauses counts.
    """
    n = len(slots)
    named = {c.slot for c in find_cues(fold(question.text), tuple(slots))}
    counts = Counter(t for p in profiles for t in p)
    heads = [_heads(" ".join((s.name, *s.also))) for s in slots]
    asked = _heads(question.text)
    found = []
    for i, profile in enumerate(profiles):
        # A name may consist of everyday words alone ("minimum term"); said whole, it is a name.
        total = SAID if i in named else 0.0
        for term, weight in question.terms.items():
            if term in profile:
                rare = math.log((n + 1) / counts[term]) / math.log(n + 1)
                total += weight * profile[term] * rare
        for head in asked & heads[i]:
            total += HEAD / sum(head in other for other in heads)
        found.append(total)
    return found


def _heads(text: str) -> frozenset[str]:
    """The everyday nouns that many slots are named by: price, fee, deadline."""
    words = re.findall(r"[a-z]+", fold(text))
    return frozenset(w.removesuffix("s") for w in words) & _HEADS
