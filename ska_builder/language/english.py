"""The norm grammar for English sentences (marked text, see `marked.py`)."""
# ruff: noqa: E501 - a pattern stands on one line, so that it can be compared with its neighbours

from __future__ import annotations

import re

from ska_builder.language.bounds import Norm, compared, listed, norms_of, terms
from ska_builder.language.marked import MARK, marks, plain
from ska_builder.language.words import IMPERATIVE, SPEAKER_EN

I = re.IGNORECASE  # noqa: E741
NAME = r"(?P<name>[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫])"
_MODAL = r"(?:must|shall|should|may|can|cannot|will|needs? to|ha(?:s|ve) to|(?:is|are) (?:to|required to|obliged to|bound to)|ought to)"
_ARTICLE = re.compile(r"^(?:the|an?|any|each|every|all|no|our|your|its|their)\s+", I)


def name(text: str) -> str:
    """A name as readings hold it: lower case, no article, no marks."""
    bare = plain(text).strip(" ,.;:\"'“”").strip()
    return re.sub(r"^(?:the|an?)\s+", "", bare, flags=I).lower()


def opened(text: str) -> str:
    """A text that opened its sentence, beginning in lower case; names and acronyms keep theirs."""
    text = text.strip(" ,;:")
    first = re.match(r"[A-Za-z][\w'-]*", text)
    if first and (first[0][1:].lower() == first[0][1:]) and first[0] != "I":
        return text[0].lower() + text[1:]
    return text


def clean(text: str) -> str:
    """Words of the sentence as a reading holds them."""
    return re.sub(r"\s+", " ", plain(text)).strip(" ,;:.")


# --- exceptions -------------------------------------------------------------------------------

_EXCEPT = (
    r"(?:except(?:ing)?(?: only)?(?: that| where| when| if| in (?:the )?cases? (?:of|where|that)| for| in| as| during| to| with)?"
    r"|save(?: only)?(?: that| where| when| if| for| in (?:the )?cases? of)?|unless|other than|apart from|aside from|excluding"
    r"|with the (?:sole )?exceptions? of|not including|barring)"
)
_TRAILING = re.compile(
    rf"^(?P<main>.+?)(?P<comma>,)?\s*[(（]?\b(?P<word>{_EXCEPT})\s+(?P<what>.+?)[)）]?$", I | re.S
)
_WITHOUT = re.compile(r"^(?P<main>.+?),?\s+\b(?P<word>without)\s+(?P<what>[^,]+)$", I)
_EXEMPT = re.compile(
    r"^(?P<main>.+?)[,;]\s*(?:but|though)\s+(?P<what>.+?)\s+(?:is|are)\s+(?:exempt(?:ed)?|excluded|excepted)(?:\s+from (?:this|it))?$",
    I,
)
_BUT_NOT = re.compile(r"^(?P<main>.+?),\s*but not\s+(?:for|in|to|if|when|where)\s+(?P<what>.+)$", I)
_LEADING = re.compile(rf"^(?P<word>{_EXCEPT}|without)\s+(?P<rest>.+)$", I | re.S)
_CLAUSE_WORD = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|will|must|may|can|that|which|who|whose|says?|gives?|states?|agree[sd]?|requires?|allows?|lies|lie|consents?|confirm(?:s|ed)?|asks?|arises?|exists?)\b",
    I,
)


def things(text: str, word: str) -> list[str]:
    """The entries of an exception: a list of things one by one, a clause as a whole."""
    text = clean(text)
    clause = re.search(r"\b(?:unless|where|when|if|that)$", word.strip(), I) or _CLAUSE_WORD.search(
        text
    )
    if clause:
        return [text]
    pieces = re.split(r"\s*,\s*(?:and|or)\s+|\s*,\s*|\s+(?:and|or)\s+", text)
    return [p.strip() for p in pieces if p.strip()]


def split_exceptions(text: str, prohibits: bool) -> list[tuple[str, list[str], list[str]]]:
    """Ways to part a clause into (main, exceptions, marked words in them), the likeliest first."""
    ways: list[tuple[str, list[str], list[str]]] = []
    leading = _LEADING.match(text)
    if leading and not re.match(r"without exception", text, I):
        for comma in reversed(list(re.finditer(r",\s+(?:otherwise\s+)?", leading["rest"]))):
            what, main = leading["rest"][: comma.start()], leading["rest"][comma.end() :]
            ways.append((main, things(what, leading["word"]), marks(what)))
    for pattern in (_TRAILING, _EXEMPT, _BUT_NOT, *((_WITHOUT,) if prohibits else ())):
        match = pattern.match(text)
        if not match or not match["main"].strip():
            continue
        what = match["what"]
        groups = match.groupdict()
        # A comma may close an exception in the middle: "No refund, unless approved, may be promised".
        middle = re.match(rf"(?P<what>[^,]+),\s+(?P<rest>(?:{_MODAL}|is|are)\b.+)$", what, I)
        main = match["main"]
        if middle and groups.get("comma"):
            what, main = middle["what"], f"{main} {middle['rest']}"
        ways.append((main, things(what, groups.get("word") or ""), marks(what)))
    return ways


# --- definitions ------------------------------------------------------------------------------

_ALSO = re.compile(
    r"[,(\s]*\b(?:also (?:called|known as|referred to as|named|termed)|in short|abbreviated(?: as| to)?|hereinafter|hereafter|"
    r"also|or)[\s:]+(?P<names>[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫](?:(?:,\s*|,?\s+(?:or|and)\s+)[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫])*)\s*\)?,?",
    I,
)
_MEANS = re.compile(
    rf"^(?:(?:in|for the purposes? of|within|under) [^,⟦⟪]+,\s*)?(?:the|an?|by)?\s*(?:(?:terms?|expressions?|words?|phrases?|notion of|concept of)\s+)?{NAME}\s*,?\s*"
    r"(?P<verb>(?:shall |will |should |must )?(?:means?|mean|refers? to|denotes?|stands? for|describes?|designates?|signif(?:y|ies)|covers?|comprises?|includes?|occurs?|arises?|exists?|applies to|apply to|be (?:understood|read|taken) (?:as|to mean))"
    r"|(?:is|are) (?:defined|understood|read|taken|used) (?:as|to mean|for)|(?:we|is|are) (?:mean|meant|understand|understood)|:|=|–)\s*:?,?\s*(?P<meaning>.+)$",
    I,
)
_IS = re.compile(
    r"^(?:(?:in|for the purposes? of|within|under) [^,⟦⟪]+,\s*)?(?:the|an?)?\s*(?:(?:terms?|expressions?|words?|phrases?)\s+)?(?P<name>⟪[^⟫]+⟫)\s*,?\s*(?:is|are|shall be)\s+(?P<meaning>(?:any|an?|the|every|each|all|someone|something|anyone|anything|whatever|whoever|what|when|where|one|those|goods|persons?|people|\w+s|not)\b.+)$",
    I,
)
_PLAIN_MEANS = re.compile(
    r"^(?P<name>(?:the |an? )?[A-Za-z][\w\s'-]{0,50}?)\s+(?P<verb>means|is defined as|refers to)\s+(?P<meaning>.+)$",
    I,
)
_BY_MEAN = re.compile(
    rf"^by\s+(?:the\s+|an?\s+)?(?:(?:term|word|expression)\s+)?{NAME}\s*,?\s*(?:we (?:mean|understand)|(?:is|are) (?:meant|understood|to be understood)),?\s*(?P<meaning>.+)$",
    I,
)
_DEEMED = re.compile(
    rf"^(?P<meaning>.+?)\s+(?:(?:is|are|shall be|will be|must be|to be)\s+(?:deemed|considered|regarded|treated|taken|classed|classified|counted|seen|called|termed|known|referred to|defined|understood)|counts?|qualif(?:y|ies)|constitutes?|amounts?)(?:\s+(?:as|to be|to))?\s+(?:the|an?)?\s*{NAME}$",
    I,
)
_WE_CALL = re.compile(
    r"^(?:we|the parties)\s+(?:call|refer to|treat|regard)\s+(?P<meaning>.+?)\s+(?:as\s+)?(?:the\s+|an?\s+)?(?P<name>⟪[^⟫]+⟫)$",
    I,
)


def definition(text: str) -> Norm | None:
    also: list[str] = []
    head = text
    start = MARK.search(text)
    if start:
        match = _ALSO.match(text, start.end())
        if (match and not re.match(r"^\s*(?:and|or)?\s*$", text[: start.start()] or "x")) or match:
            also, head = (
                marks(match["names"]),
                text[: start.end()] + " " + text[match.end() :].strip(),
            )
    for pattern in (_BY_MEAN, _MEANS, _IS):
        found = pattern.match(head)
        if not found:
            continue
        if pattern is _IS and _bound_value(head, found.start("meaning")):
            continue
        if re.match(r"(?:shall|must|may)\b", found["meaning"], I):
            continue
        return Norm(
            "definition",
            details={"term": name(found["name"]), "meaning": clean(found["meaning"])},
            also=also,
        )
    found = _DEEMED.match(text) or _WE_CALL.match(text)
    if found:
        tail = _ALSO.search(text)
        also = marks(tail["names"]) if tail else []
        return Norm(
            "definition",
            details={"term": name(found["name"]), "meaning": opened(clean(found["meaning"]))},
            also=also,
        )
    found = _PLAIN_MEANS.match(text)
    if (
        found
        and not marks(found["name"])
        and not re.search(rf"\b{_MODAL}\b|^(?:it|this|that)$", found["name"], I)
    ):
        return Norm(
            "definition", details={"term": name(found["name"]), "meaning": clean(found["meaning"])}
        )
    return None


def _bound_value(text: str, at: int) -> bool:
    return any(c.at <= at + 2 and c.operator != "=" for c in compared(text, "en"))


# --- precedence -------------------------------------------------------------------------------

_OVER = (
    r"(?:(?:must|shall|will|should|always|also|does|do|in turn|itself|then|still|in any case)\s+)*"
    r"(?:prevails? over|takes? (?:precedence|priority) (?:over|before)|ha(?:s|ve) (?:priority|precedence|preference) over|"
    r"(?:is|are)? ?(?:ranks?|ranked|ranking|placed|stands?) (?:higher than|above|before|ahead of|over)|(?:go|goes|come|comes|is|are) (?:before|ahead of|above)|"
    r"overrides?|overrules?|supersedes?|outranks?|beats?|trumps?|replaces?|wins? (?:over|against)|precedes?|outweighs?|"
    r"(?:is|are) (?:superior to|preferred to|to be preferred to|stronger than|given (?:priority|precedence|preference) over)|counts? (?:more than|before)|governs? over|controls? over)"
)
_UNDER = (
    r"(?:(?:must|shall|will|should|always)\s+)*(?:yields? to|gives? way to|(?:is|are) (?:subordinate|inferior|subject) to|"
    r"(?:is|are)? ?(?:ranks?|ranked) (?:below|behind|after|lower than|under)|(?:is|are) (?:overridden|superseded|overruled|replaced|outranked) by|(?:come|comes|go|goes) (?:after|behind))"
)
_DIFFER = r"(?:differ|conflict|contradict|disagree|diverge|clash|collide|are (?:inconsistent|in conflict|at odds|different)|say different things|do not agree|do not match|are not consistent|deviate)"
_LEAD_IF = re.compile(
    r"^(?:if|where|when|whenever|should|in (?:the )?(?:case|event) of|in so far as|as far as|insofar as|for|among|between)\b[^,:;]*[,:]\s*",
    I,
)
_WINS = r"(?:counts?|prevails?|appl(?:y|ies)|governs?|controls?|wins?|decides?|holds?|(?:is|are) (?:decisive|followed|authoritative|used|binding|to be (?:used|followed))|comes? first|takes? (?:precedence|priority)|ha(?:s|ve) (?:priority|precedence)|(?:shall|must|will|should) (?:prevail|apply|govern|control|count|decide|be (?:used|followed|decisive)))"
_PAIR = re.compile(
    rf"^(?:if|where|when|whenever|should|in so far as|as far as)\s+(?P<a>.+?)\s+and\s+(?P<b>.+?)\s+(?:{_DIFFER})\b[^,]*,\s*(?:then\s+)?(?P<win>.+?)\s+{_WINS}$",
    I,
)
_PAIR_OF = re.compile(
    rf"^(?:in (?:the )?(?:case|event) of (?:an?y? )?(?:conflict|contradiction|difference|discrepancy|inconsistency|divergence)s? |as )?between (?P<a>.+?) and (?P<b>.+?),\s*(?P<win>.+?)\s+{_WINS}$",
    I,
)
_PAIR_VERB = re.compile(
    rf"^(?:if|where|when|whenever)\s+(?P<a>.+?)\s+(?:differs? from|contradicts?|conflicts? with|disagrees? with|deviates? from|departs? from|is at odds with)\s+(?P<b>.+?),\s*(?:then\s+)?(?P<win>.+?)\s+{_WINS}$",
    I,
)
_PAIR_GOES = re.compile(
    r"^(?:if|where|when|whenever)\s+(?P<a>.+?)\s+and\s+(?P<b>.+?)\s+"
    + _DIFFER
    + r"\b[^,]*,\s*(?:follow|use|go by|rely on|take|apply)\s+(?P<win>.+)$",
    I,
)
_FIRST = re.compile(
    r"^(?P<a>.+?)\s+(?:(?:shall |must |will )?(?:comes?|ranks?|goes?|go|counts?|appl(?:y|ies)|is|are|stands?|be|prevails?|(?:is|are) (?:consulted|read|used))\s+(?:first|highest|at the top)|first)\s*[,;]?\s*(?:and\s+)?(?:then|followed by|next|after (?:it|that|them))\s+(?P<rest>.+)$",
    I,
)
_LOOK = re.compile(
    r"^(?:first|start with|begin with|look first (?:at|to)|(?:consult|follow|use|read|go by|check|look at|rely on) (?:first )?)\s*(?:look (?:at|to)|consult|follow|use|read|check|go by|comes?)?\s*(?P<a>[^,;]+?)(?: first)?\s*[,;]\s*(?:and\s+)?(?:then|next|followed by)\s+(?P<rest>.+)$",
    I,
)
_RANKING = re.compile(
    r"^(?:the\s+|our\s+)?(?:(?:following|descending)\s+)?(?:ranking|rank order|order(?: of (?:precedence|priority|rank|documents|sources|authority|validity))?|hierarchy|priority|precedence|sequence|rank)"
    r"(?:\s+(?:of|among|for|between)\s+(?:the\s+)?[\w\s-]+?)?(?:\s+(?:from (?:the )?highest(?: to (?:the )?lowest)?|in descending order|\(highest first\)|applies|is|shall be|is as follows|runs))*\s*(?::|\bis\b|\bruns\b)\s*(?P<rest>.+)$",
    I,
)
_APPLY_ORDER = re.compile(
    r"^[^:]*?\b(?:order|ranking|sequence|hierarchy|precedence|priority|ranks? as follows|(?:apply|count|prevail) as follows)\b[^:]*:\s*(?P<rest>.+)$",
    I,
)


def _member(text: str) -> str:
    text = re.sub(r"^(?:\d+[.)]|[-*]|\(?[a-z0-9]{1,3}\))\s*", "", text.strip())
    inside = marks(text)
    if len(inside) == 1 and re.match(r"\s*(?:what|whatever)\b", text, I):
        return name(inside[0])
    text = re.sub(
        r"^(?:(?:and|then|next|finally|lastly|last|first|after that|at last|in the end|of)\s+)+",
        "",
        text.strip(),
        flags=I,
    )
    return name(re.sub(r"\s+(?:last|comes?(?: last)?|at the end)$", "", text, flags=I))


def members(text: str) -> list[str]:
    """The members of an order written out, numbered, or with ">"."""
    if ">" in text:
        pieces = text.split(">")
    elif "\x1e" in text:
        pieces = text.split("\x1e")
    else:
        pieces = re.split(
            r"\s*[,;]\s*(?:and\s+)?(?:(?:then|next|finally|lastly|last|followed by|after that)\s+)*|\s+(?:and\s+)?(?:then|before|followed by|and finally|and last(?:ly)?)\s+|\s+and\s+",
            text,
            flags=I,
        )
    return [m for m in (_member(p) for p in pieces if p) if m]


def chain(pairs: list[tuple[str, str]]) -> list[str]:
    """One list, highest first, of "A over B" pairs; the order of the text where nothing parts them."""
    left = list(dict.fromkeys(x for pair in pairs for x in pair))
    order: list[str] = []
    while left:
        free = next((x for x in left if not any(b == x and a in left for a, b in pairs)), left[0])
        order.append(free)
        left.remove(free)
    return order


def order(text: str) -> list[str] | None:
    """The order of kinds that a clause states, highest first."""
    text = text.strip(" .")
    for pattern in (_PAIR_OF, _PAIR, _PAIR_VERB, _PAIR_GOES):
        match = pattern.match(text)
        if match:
            a, b, win = name(match["a"]), name(match["b"]), _member(match["win"])
            a = re.sub(r"^(?:there is a (?:conflict|difference) between)\s+", "", a)
            if win in ("latter", "second"):
                win = b
            elif win in ("former", "first"):
                win = a
            if win == b or (win != a and (win in b or b in win)):
                return [max(b, win, key=len), a]
            if win == a or win in a or a in win:
                return [max(a, win, key=len), b]
    if text.count(">") and not re.search(r"[<=]|\d", text):
        stated = re.sub(r"^[^:>]*:\s*", "", text)
        return members(stated)
    bare = text
    match = _RANKING.match(bare) or (_APPLY_ORDER.match(bare) if ":" in bare else None)
    if match:
        found = members(match["rest"])
        return found if len(found) > 1 else None
    led = _LEAD_IF.sub("", bare, count=1)
    for body in dict.fromkeys((led, bare)):
        if re.search(rf"(?<![\w⟦]){_OVER}\s|(?<!\w){_UNDER}\s", body, I):
            pairs = _pairs(body)
            if pairs:
                return chain(pairs)
        match = _LOOK.match(body) or _FIRST.match(body)
        if match:
            return [_member(match["a"]), *members(match["rest"])]
        both = re.fullmatch(
            rf"(?:the |an? )?{NAME} (?:before|over|above) (?:the |an? )?(?P<low>[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫])",
            body,
            I,
        )
        if both:
            return [name(both["name"]), name(both["low"])]
    return None


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    upper = lower = None
    verb = re.compile(rf"(?:^|\s+)(?P<over>{_OVER})\s+|\s+(?P<under>{_UNDER})\s+", I)
    for piece in re.split(
        r"\s*[,;]\s*(?:(?:and|while|whereas|but)\s+)?|\s+(?:and|while|whereas)\s+(?=(?:the|an?)\s[^,]*?\s(?:over|prevail|rank|take|overr|superse|outrank|beat|trump|before|above|ahead|go|come))",
        text,
        flags=I,
    ):
        piece = piece.strip()
        if not piece:
            continue
        match = verb.search(piece)
        if match:
            left, right = piece[: match.start()].strip(), piece[match.end() :].strip()
            left = re.sub(
                r"\b(?:which|that|and that|these|who)(?:\s+in turn)?$|^(?:it|they|the latter|this|which|that)$",
                "",
                left,
                flags=I,
            ).strip()
            subject = _member(left) if left else (lower or "")
            objects = [
                o
                for o in (
                    _member(x)
                    for x in re.split(
                        r"\s+and\s+(?:over\s+)?", re.sub(r"^(?:both|all of)\s+", "", right)
                    )
                )
                if o
            ]
        else:
            # "and the order form over the e-mail": the verb goes on from the piece before.
            short = re.match(
                r"(?:and\s+)?(?P<a>.+?)\s+(?:over|before|above|ahead of)\s+(?P<b>.+)$", piece, I
            )
            if not short or not pairs:
                if (
                    pairs
                    and len(pairs) >= 1
                    and re.match(r"(?:and\s+)?(?:the|an?)\s[\w\s'-]+$", piece, I)
                ):
                    objects, subject = [_member(piece)], pairs[-1][1]
                    pairs.append((subject, objects[0]))
                continue
            subject, objects = _member(short["a"]), [_member(short["b"])]
        if not subject or not objects:
            continue
        under = bool(match and match["under"])
        upper = subject
        for item in objects:
            pairs.append((item, upper) if under else (upper, item))
            if not under:
                upper = item
        lower = objects[-1] if not under else subject
    return pairs


_TIES = (
    (
        "later date",
        re.compile(
            r"\b(?:later|latest|newer|newest|(?:more|most) recent|more recently|younger|most recently|last (?:one|signed|dated))\b",
            I,
        ),
    ),
    (
        "earlier date",
        re.compile(r"\b(?:earlier|earliest|older|oldest|first (?:one|signed|dated))\b", I),
    ),
    (
        "higher rank",
        re.compile(
            r"\b(?:higher(?:[- ]ranking)?|highest|senior|superior|greater)(?: (?:rank|authority|level|body|one|standing|court|instance|issuing|ranking|office|position|grade))?\b",
            I,
        ),
    ),
)
_TIE_CUE = re.compile(
    rf"\b(?:of|between|among|amongst) (?:two|several|the two|both|more|any two|three|sources|documents|equal|equally)|\bequal|\bsame (?:kind|rank|level|type|standing|class|number|name|sort|status|category|group)|\bone kind|\bsimilar kind|\bof (?:a|one) kind|\btied?\b|\bties\b|{_WINS}$|\bversions?\b",
    I,
)


def tie(text: str) -> str | None:
    """The tie rule that a clause states."""
    bare = plain(text)
    if compared(text, "en") and not re.search(r"\btwo|\bone\b", bare, I):
        return None
    if re.search(rf"(?<!\w){_OVER}\s", bare, I) or not _TIE_CUE.search(bare):
        return None
    if re.search(r"\b(?:must (?:not|match|be)|may not|never)\b", bare, I) and not re.search(
        r"must be (?:used|followed)", bare, I
    ):
        return None
    body = _LEAD_IF.sub("", bare, count=1)
    body = re.sub(r"^(?:and|or|then|but)\s+", "", body) or bare
    hits = [(m.start(), label) for label, pattern in _TIES if (m := pattern.search(body))]
    return min(hits)[1] if hits else None


_LEFT = re.compile(
    r"\b(?:tie[ds]?|tied|conflict|doubt|remain\w*|undecided|unresolved|unclear|open|equal|undetermined|failing (?:that|this|which|both)|still|neither|nothing|otherwise|"
    r"cannot be (?:decided|determined|resolved|settled|ranked)|no (?:rule|order|decision|answer)|not (?:decide|settle|resolve|help)|left|rest|anything else|if not|uncertain\w*|contradict\w*|fail\w*|impossible)\b",
    I,
)
_ASK = re.compile(
    r"(?:^|[,;:]\s*|\b(?:then|please|must|shall|should|to|and|otherwise|always|agent|answer|assistant)\s+)(?:ask(?:s|ed)?|enquire|inquire|put (?:it|the question) to|query|request (?:clarification|guidance)|seek (?:clarification|guidance|instructions))\b",
    I,
)
_CONTESTED = re.compile(
    r"\b(?:contested|disputed|in dispute|unsettled|undecided|unresolved|open)\b(?!\s+(?:ended))", I
)


def unresolved(text: str, after_tie: bool = False) -> str | None:
    """What a clause says is to be done with what stays tied."""
    bare = plain(text)
    if not (_LEFT.search(bare) or after_tie):
        return None
    if _ASK.search(bare):
        return "ask"
    body = _LEAD_IF.sub("", bare, count=1)
    return "contested" if _CONTESTED.search(body) else None


# --- consistency ------------------------------------------------------------------------------

_SAME = re.compile(
    r"\b(?:match(?:es)?|agree(?:s)? with|correspond(?:s)? (?:to|with)|be (?:exactly |fully )?(?:identical|equal|faithful|true|the same)(?: (?:to|as|with|in))?|equals?|coincides? with|be consistent|"
    r"be (?:exactly )?the (?:same|one|ones|value|figure|amount|date)|stays?|remains?|be kept|follows?|be (?:taken|copied|quoted|given|stated|repeated|reported|reproduced|cited|named|used|as)|reflects?|tall(?:y|ies) with|"
    r"conforms? (?:to|with)|be in (?:line|accordance|agreement|keeping) with|compl(?:y|ies) with|as (?:stated|given|set out|recorded|laid down|agreed|written|quoted|printed) in|accords? with|"
    r"not (?:be )?(?:chang|alter|vary|deviat|differ|depart|contradict|modif|drift|diverg)\w*|never (?:change|vary|deviate|differ|depart|contradict|be changed|be altered)|be (?:stated|given|quoted) (?:exactly |only )?as|hold to|keep to|adhere to|mirrors?|be those?)\b",
    I,
)
_TURNS = re.compile(
    r"\bturns?\b|\b(?:throughout|during|across|over|within|in) (?:the (?:whole |entire |course of the )?|this |a |all |every )?(?:conversation|dialogue|chat|talk|session|exchange|answers|replies|messages)\b|from (?:one )?(?:answer|reply|message) to (?:the )?(?:next|another)",
    I,
)
_FIRST_STATED = re.compile(
    r"\b(?:first|initially|originally|earlier|at the (?:start|outset|beginning)|before|previously|once)\b(?:\s+(?:\w+\s+)?(?:stated|given|named|mentioned|agreed|said|quoted|communicated|set|told|promised|announced|used|in|statement|mention|version|value|time|it|has|been|they|by|confirmed|provided|reported|recorded|established|fixed))?",
    I,
)
_CONTRADICTS = re.compile(
    rf"^(?:(?:{SPEAKER_EN})\s+)?(?:never|do not|don't|must not|must never|may not|shall not|no (?:answer|reply) (?:may|must|shall))\s+(?:\w+\s+)?(?:state|give|quote|name|say|report|cite|mention|repeat|use|claim|tell|present)\s+(?:the|an?|any|some)?\s*{NAME}\s*,?\s*"
    r"(?:(?:that|which)\s+.*(?:contradict|differ|deviat|depart|conflict|disagree|not (?:in|match|support|back|stat|given|found|agree|correspond)|no source|is not)|other than|different from|contrary to|at odds with|not (?:in|given|found|stated|supported|matching|backed)|against|unlike)",
    I,
)


def _slot_names(text: str, upto: int) -> list[str]:
    """The marked words before a position that name slots: the first, and those coordinated with it."""
    found: list[str] = []
    last_end = None
    for match in MARK.finditer(text):
        if match.start() >= upto:
            break
        if last_end is not None and not re.fullmatch(
            r"\s*(?:,|,?\s*(?:and|or|as well as))\s*(?:the|an?|its|their|any)?\s*|\s*[、和及与以]+\s*",
            text[last_end : match.start()],
            I,
        ):
            break
        found.append(name(match[1]))
        last_end = match.end()
    return found


def _subject(text: str) -> str | None:
    match = re.match(
        rf"^(?P<subject>[^,;]+?)\s+(?:{_MODAL}|is|are|ha(?:s|ve)|amounts?|stays?|remains?|cannot|lasts?|costs?|never|always)\b",
        text,
        I,
    )
    if not match:
        return None
    subject = re.sub(r"\s+(?:that|which)$", "", match["subject"])
    bare = _ARTICLE.sub("", plain(subject)).strip()
    return name(bare) if bare and len(bare.split()) <= 9 else None


def _also_in(text: str) -> tuple[str, list[str]]:
    """(text without it, names) of "(also called …)" behind a slot."""
    start = MARK.search(text)
    match = _ALSO.match(text, start.end()) if start else None
    if not match or not start or re.match(r"[,\s]*or\b", match[0], I):
        return text, []
    return text[: start.end()] + " " + text[match.end() :].lstrip(), marks(match["names"])


def whole(text: str) -> Norm | None:
    """A norm that is read before its exceptions are parted off: "Never state a **fee** other than …"."""
    made = definition(text)
    if made is None and _CONTRADICTS.match(text):
        made = consistency(text)
    return made


def consistency(text: str) -> Norm | None:
    contradicts = _CONTRADICTS.match(text)
    if contradicts:
        return Norm(
            "consistency",
            [name(contradicts["name"])],
            {"reference": _reference(text[contradicts.end("name") :])},
        )
    text, also = _also_in(text)
    start = re.search(
        rf"(?:^|[\s⟧⟫])(?:{_MODAL}|is to|are to|always|never|is|are|stays?|remains?)\b",
        MARK.sub(lambda m: "⟦" + "x" * (len(m[0]) - 2) + "⟧", text),
        I,
    )
    if not start:
        return None
    tail = text[start.start() :]
    same = _SAME.search(tail)
    if not same:
        return None
    slots = _slot_names(text, start.start() + 1)
    # Without a marked slot only the plainest verbs are read as consistency.
    if not slots:
        subject = _subject(text)
        speaker = subject is None or re.fullmatch(SPEAKER_EN, subject, I)
        plainest = re.search(
            r"\b(?:match|agree with|correspond|be identical|be the same|coincide|be consistent with|the one in|first stated|tally|not (?:change|deviate|differ)|remain (?:the same|unchanged)|stay (?:the same|as|unchanged))",
            tail,
            I,
        )
        if speaker or not plainest or subject is None:
            return None
        slots = [subject]
    elif not re.search(
        r"\b(?:match|agree|correspond|identical|equal|same|one|ones|stays?|remains?|kept|keep|follow|taken|copied|quoted|as|reflect|tall|conform|line|accord|compl|chang|alter|var|deviat|differ|depart|contradict|consistent|coincide|modif|adhere|hold|mirror|drift|diverg|true|faithful|from|those|value|figure)",
        same[0] + tail[same.end() : same.end() + 30],
        I,
    ):
        return None
    if compared(text, "en") and re.search(r"\b(?:stays?|remains?|equal)", same[0], I):
        return None
    return Norm("consistency", slots, {"reference": _reference(tail)}, also=also)


def _reference(tail: str) -> str:
    if _TURNS.search(tail) and not re.search(r"\bfirst\b|promised|\bearlier\b", tail, I):
        return "turns"
    if re.search(
        r"\b(?:source|contract|agreement|record|document|lease|policy|order|certificate|register|invoice)\b",
        tail,
        I,
    ) and not re.search(
        r"\bas (?:it (?:was|is) )?(?:first|originally|initially)\b|\bfirst (?:stat|given|mention|nam)",
        tail,
        I,
    ):
        return "sources"
    found = _FIRST_STATED.search(tail)
    if found or re.search(
        r"\b(?:unchanged|not (?:change|be changed)|never change|the same)\b\s*$", tail, I
    ):
        return "first"
    return "sources"


# --- bounds -----------------------------------------------------------------------------------

_CHOICE = re.compile(
    rf"\b(?:{_MODAL}|is|are)\s+(?P<lead>(?:only |always |either |also )*(?:be |read |take place (?:on|in) |be put out (?:on|in)? ?|be (?:made|paid|given|delivered|done|chosen|held|sent|offered|set|issued|granted)(?: only)? (?:on|in|by|via|from|to|at|as) )?"
    r"(?:(?:only |exclusively )?(?P<of>(?:one|any|either) of(?: the following(?: values)?)?:?\s*|limited to\s+|restricted to\s+|confined to\s+|chosen from(?: among)?:?\s+|from among\s+)|either\s+|only\s+)?)(?P<list>.+?)(?P<only>\s+only)?$",
    I,
)


def bound(text: str) -> list[Norm]:
    text, also = _also_in(text)
    when = None
    for condition in (
        re.match(
            r"^(?:(?P<w>if|when|where|whenever|in case of|once|provided that|during|with)\s+)(?P<c>(?:[^,]|,(?=\d))+),\s+(?P<m>.+)$",
            text,
            I,
        ),
        re.match(r"^(?P<c>(?:for|in the case of)\s+(?:[^,]|,(?=\d))+),\s+(?P<m>.+)$", text, I),
    ):
        if condition and (
            marks(condition["m"])
            or condition.groupdict().get("w") is None
            or re.match(r"in case|during|with", condition["w"], I)
        ):
            when, text = clean(condition["c"]), condition["m"]
            when = when if condition.groupdict().get("w") else opened(when)
    trailing = re.match(
        r"^(?P<m>.+?)[,\s]+(?P<w>if|when|where|whenever|provided(?: that)?|as long as|while)\s+(?P<c>.+)$",
        text,
        I,
    )
    if trailing:
        text, when = trailing["m"], when or clean(trailing["c"])
    case = re.match(r"^(?P<m>.+?)\s(?P<c>for\s(?:(?!\sfor\s).)+)$", text, I)
    if case and compared(case["c"], "en") and not re.search(r"⟦|⟪", case["c"]):
        text, when = case["m"], when or clean(case["c"])
    imperative = re.match(rf"^(?:never|do not|don't|always|please|{IMPERATIVE})\b", text, I)
    choice = _choices(text)
    if choice is not None and not imperative:
        for norm in choice:
            norm.also = also
            if when:
                norm.details["when"] = when
        return choice
    found = compared(text, "en")
    if imperative:
        close = [
            c
            for c in found
            if re.search(
                r"[⟧⟫](?:\s+(?:of|that (?:is|lies|lasts|costs|runs|exceeds))?)?\s*$",
                text[: c.at].rstrip(),
            )
            and re.fullmatch(r"[\s.]*(?:of .+|per .+|an? \w+|\w+)?", text[c.terms[-1].end :])
        ]
        if not close:
            return []
        found = close
    equal_only = [c for c in found if c.operator == "="]
    if (
        len(equal_only) == len(found)
        and found
        and not re.search(
            rf"\b(?:{_MODAL}|amounts?|is|are|equals?|costs?|lasts?|stays?|remains?)\b|⟧", text, I
        )
    ):
        return []
    made: list[Norm] = []
    for position, operator, value, type_, doubtful in norms_of(text, found, "en"):
        slots = _slots_at(text, position, made)
        if not slots:
            return made
        details = {"operator": operator, "value": value}
        if when:
            details["when"] = when
        after = text[max(c.terms[-1].end for c in found) :]
        _extras(after, details)
        for slot in slots:
            made.append(
                Norm("bound", [slot], dict(details), type=type_, ambiguous=doubtful, also=also)
            )
    return made


def _extras(after: str, details: dict[str, object]) -> None:
    per = re.match(r"\s*(?:per|each|every|an?)\s+(?P<per>[\w-]+)", after, I)
    if per:
        details["per"] = per["per"]
    start = re.match(r"\s*(?:of|after|from|following)\s+(?:the\s+)?(?P<from>[^,;]+)", after, I)
    value = details["value"]
    if start and (isinstance(value, dict) and "count" in value):
        details["from"] = clean(start["from"])
    limited = re.search(r"(?:^|\s)(?P<when>for\s+(?!which)[^,;]+)$", after, I)
    if limited and "when" not in details:
        details["when"] = clean(limited["when"])


def _slots_at(text: str, position: int, made: list[Norm]) -> list[str]:
    slots = _slot_names(text, position + 1)
    if made:
        later = [name(m[1]) for m in MARK.finditer(text) if m.start() < position]
        if (
            later
            and later[-1] not in (n.names[0] for n in made)
            and len(later) > len(_slot_names(text, position + 1))
        ):
            return [later[-1]]
        return [n.names[0] for n in made[-1:]]
    if slots:
        return slots
    if marks(text):
        after = [name(m) for m in marks(text)]
        return after[:1]
    subject = _subject(text)
    if (
        subject
        and not re.fullmatch(SPEAKER_EN, subject, I)
        and not re.match(r"(?:there|it|this|that|he|she|they)$", subject, I)
    ):
        return [subject]
    counted = re.match(
        r"^(?:no more than|at most|at least|not more than|up to|within)\s+[\w.,]+\s+(?P<noun>[\w\s-]+?)\s+(?:may|must|are|is|can|shall)\b",
        text,
        I,
    )
    return [name(counted["noun"])] if counted else []


def _choices(text: str) -> list[Norm] | None:
    first = MARK.search(text)
    shown = MARK.sub(lambda m: "⟦" + "x" * (len(m[0]) - 2) + "⟧", text)
    found = _CHOICE.search(shown, first.end() if first else 0)
    if not found:
        return None
    body = text[found.start("list") : found.end("list")]
    explicit = bool(found["of"] or found["only"] or re.search(r"\bonly|either", found["lead"], I))
    body = re.sub(r"\s+(?:are|is)\s+(?:allowed|permitted)$", "", body)
    if not re.search(r"\bor\b|,|\band\b|/", body) or len(body) > 400:
        return None
    if (
        found["of"]
        and re.match(r"limited|restricted|confined", found["of"], I)
        and terms(body)
        and not re.search(r"\bor\b", body)
    ):
        return None
    made = listed(body)
    if made is None or len(made[0]) < 2:
        return None
    members_, type_, doubtful = made
    if type_ == "choice":
        looks = all(re.match(r"[A-Z0-9\u4e00-\u9fff]", m) for m in members_) or len(
            marks(body)
        ) == len(members_)
        if not explicit and not looks:
            return None
        if any(len(m.split()) > 6 for m in members_) or (
            not found["of"] and any(compared(m, "en") for m in members_)
        ):
            return None
        if not explicit and not re.search(r"\bor\b|/", body):
            return None
    elif any(c.operator not in ("=",) for c in compared("x is " + body, "en")) or not re.search(
        r"\bor\b|/|\bone of|\bany of", found[0], I
    ):
        return None
    slots = _slot_names(text, found.start("list") if not first else max(found.start(), first.end()))
    if not slots:
        subject = _subject(text)
        if subject is None or re.fullmatch(SPEAKER_EN, subject, I):
            return None
        slots = [subject]
    return [
        Norm("bound", [s], {"operator": "in", "value": members_}, type=type_, ambiguous=doubtful)
        for s in slots
    ]


# --- prohibitions and requirements ------------------------------------------------------------

_FORBID = (
    re.compile(
        rf"^(?P<front>(?:.+?,\s+)?)(?:(?:{SPEAKER_EN})\s+)?(?:must|may|shall|should|can|will|is|are|do|does)?\s*(?:never|do not|don't|please do not|refrain from|avoid|abstain from)\s+(?:ever\s+|under any circumstances\s+)?(?P<act>.+)$",
        I,
    ),
    re.compile(
        rf"^(?P<front>(?:.+?,\s+)?)(?:{SPEAKER_EN})\s+(?:(?:must|may|shall|should|can|will)\s*(?:not|never)|cannot|(?:is|are) (?:not (?:allowed|permitted|entitled|authori[sz]ed)|forbidden|prohibited)(?: to| from)?)\s+(?:ever\s+|under any circumstances\s+)?(?P<act>.+)$",
        I,
    ),
    re.compile(
        r"^(?P<front>(?:.+?,\s+)?)it is (?:strictly |expressly )?(?:forbidden|prohibited|not (?:allowed|permitted|acceptable)) (?:for [^,]+? )?to\s+(?P<act>.+)$",
        I,
    ),
    re.compile(
        rf"^(?P<front>(?:.+?,\s+)?)(?:under no circumstances|at no time|in no case|on no account|nowhere|never)\s+(?:may|must|should|shall|can|will|do|is|are)\s+(?P<subject>(?:{SPEAKER_EN})|(?:the|an?|any)?\s*[\w'-]+)\s+(?P<act>.+)$",
        I,
    ),
    re.compile(
        r"^(?P<front>(?:.+?,\s+)?)(?:no one|nobody|no (?:answer|reply|agent|employee|assistant|response|message))\s+(?:(?:may|must|shall|should|can|will|is (?:allowed|permitted) to)\s+)(?P<act>.+)$",
        I,
    ),
)
_NO_ONE_WITHOUT = re.compile(
    r"^(?:no one|nobody)\s+without\s+(?P<what>.+?)\s+(?:may|must|shall|can)\s+(?P<act>.+)$", I
)
_NO_X = re.compile(
    r"^(?P<front>(?:.+?,\s+)?)no\s+(?P<subject>.+?)\s+(?:may|must|shall|should|can|will|is to|are to)\s+(?P<act>.+)$",
    I,
)
_X_NOT = re.compile(
    r"^(?P<front>(?:(?:if|when|where|whenever|for|in|during|after|before|once|as long as|while|on)\b.+?,\s+)?)(?P<subject>[^,]+?)\s+(?:(?:must|may|shall|should|can|will)\s*(?:not|never|under no circumstances|in no case)|cannot|(?:is|are) (?:never|not) to)\s+(?:ever\s+)?(?P<act>.+)$",
    I,
)
_X_FORBIDDEN = re.compile(
    r"^(?P<subject>[^,]+?)\s+(?:is|are)\s+(?:strictly |expressly )?(?:forbidden|prohibited|not (?:allowed|permitted)|banned)(?P<act>(?:\s+.+)?)$",
    I,
)
_ONLY_IF = (
    re.compile(
        rf"^(?:(?:{SPEAKER_EN})\s+(?:may|must|shall|can|should)\s+)?only\s+(?P<act>.+?)\s+(?:if|when|after|once|where|with)\s+(?P<what>.+)$",
        I,
    ),
    re.compile(
        r"^(?P<subject>[^,]+?)\s+(?:may|must|shall|can|should)\s+(?P<act>.+?)\s+only\s+(?:if|when|after|once|where|with)\s+(?P<what>.+)$",
        I,
    ),
    re.compile(
        r"^(?P<subject>[^,]+?)\s+(?:may|must|shall|can|should)\s+only\s+(?P<act>.+?)\s+(?:if|when|after|once|where|with)\s+(?P<what>.+)$",
        I,
    ),
)


def prohibition(text: str) -> Norm | None:
    bare = clean(text)
    without = _NO_ONE_WITHOUT.match(bare)
    if without:
        return Norm(
            "prohibition",
            details={"act": clean(without["act"])},
            exceptions=[clean(without["what"])],
        )
    for pattern in _ONLY_IF:
        match = pattern.match(bare)
        if match:
            subject = match.groupdict().get("subject") or ""
            act = clean(match["act"])
            if subject and not re.fullmatch(SPEAKER_EN, subject, I):
                act = f"{opened(_no_article(subject))} {act}"
            return Norm(
                "prohibition", details={"act": opened(act)}, exceptions=[clean(match["what"])]
            )
    for pattern in (*_FORBID, _NO_X, _X_NOT, _X_FORBIDDEN):
        match = pattern.match(bare)
        if not match:
            continue
        groups = match.groupdict()
        front, subject, act = (
            (groups.get("front") or "").strip(),
            groups.get("subject") or "",
            clean(groups["act"]),
        )
        if front and not re.match(
            r"(?:if|when|where|whenever|for|in|during|after|before|once|as long as|while|on|with|until|at)\b",
            front,
            I,
        ):
            continue
        if subject and not re.fullmatch(SPEAKER_EN, subject, I):
            if pattern is _X_NOT:
                subject = _no_article(subject)
            act = f"{subject} {act}".strip()
        details = {"act": f"{front} {act}" if front else act}
        details["act"] = opened(details["act"])
        condition = re.match(
            r"(?:if|when|where|whenever|once|after|before|while|as long as|until)\s+(.+?),$",
            front,
            I,
        )
        if condition:
            details["when"] = clean(condition[1])
        elif trailing := re.search(r"\s(?:when|while|if|once|as long as|whenever)\s+(.+)$", act, I):
            details["when"] = clean(trailing[1])
        return Norm("prohibition", details=details)
    return None


def _no_article(text: str) -> str:
    return re.sub(r"^(?:the|an?)\s+", "", text, flags=I)


_WITHIN = re.compile(
    r"\s*,?\s*\b(?:always |also )?(?:with)?in (?:one and )?the (?:very )?same (?P<where>sentence|paragraph|answer|reply|response|message)\b\s*,?|\s*,?\s*\bin (?:one|that|this|a single) (?P<where2>sentence|paragraph|answer|reply)\b\s*,?",
    I,
)
_CONDITION = r"(?:when(?:ever)?|if|where(?:ver)?|once|as soon as|(?:every|each|any) time|as often as|in case|on condition that|provided that|should|as long as)"
_COND_FIRST = re.compile(rf"^(?P<w>{_CONDITION})(?: that)?\s+(?P<when>.+)$", I)
_COND_LAST = re.compile(
    r"^(?P<then>.+?)\s*,?\s+(?P<w>when(?:ever)?|if|wherever|once|as soon as|(?:every|each|any) time|in case|as often as|where)\s+(?P<when>.+)$",
    I,
)
_OBLIGED = r"(?:must(?: always| also)?|shall(?: always| also)?|ha(?:s|ve) to|need(?:s)? to|should(?: always)?|(?:is|are) (?:required|obliged|bound|expected) to|(?:is|are) to|will|ought to)"
_ANY = re.compile(
    rf"^(?:any|every|each|all|an?|the)\s+(?P<when>(?:mention|statement|reference|quotation|promise|offer|description|discussion|claim|recommendation|citation)s?\s+(?:of|to|that|about)\s+.+?|.*?\b(?:that|which|who)\b.+?)\s+{_OBLIGED}\s+(?P<then>.+)$",
    I,
)
_ANYONE = re.compile(
    rf"^(?P<when>(?:anyone|whoever|anybody|everyone)\s+(?:who\s+)?.+?)\s+{_OBLIGED}\s+(?P<then>.+)$",
    I,
)
_FOR = re.compile(r"^(?:for|in the case of|with|on|in)\s+(?P<when>[^,]+),\s+(?P<then>.+)$", I)
_MUST = re.compile(rf"^(?P<subject>[^,]+?)\s+{_OBLIGED}\s+(?P<then>.+)$", I)


def requirement(text: str) -> Norm | None:
    bare = re.sub(r"\s+", " ", plain(text)).strip(" .")
    within = "answer"
    place = _WITHIN.search(bare)
    if place:
        within = (place["where"] or place["where2"] or "answer").lower()
        within = "answer" if within in ("reply", "response", "message") else within
        bare = re.sub(r"\s+", " ", bare[: place.start()] + " " + bare[place.end() :]).strip(" ,.")
    made = _when_then(bare)
    if made is None:
        return None
    when, then = made
    details = ({"when": when} if when else {}) | {"then": then, "within": within}
    return Norm("requirement", details=details)


def _when_then(bare: str) -> tuple[str | None, str] | None:
    first = _COND_FIRST.match(bare)
    if first:
        for comma in re.finditer(r",\s+(?:then\s+)?", first["when"]):
            then = _then(first["when"][comma.end() :])
            if then:
                return clean(first["when"][: comma.start()]), then
        return None
    for pattern in (_ANY, _ANYONE):
        match = pattern.match(bare)
        if match and not re.fullmatch(SPEAKER_EN, match["when"].split()[0], I):
            return opened(clean(match["when"])), clean(match["then"])
    match = _FOR.match(bare)
    if match and (then := _then(match["then"])):
        return opened(clean(match["when"])), then
    match = _COND_LAST.match(bare)
    if match and (then := _then(match["then"])):
        return clean(match["when"]), then
    then = _then(bare)
    return (None, then) if then else None


def _then(text: str) -> str | None:
    """The obligation of a main clause, or None where it states none."""
    text = clean(text)
    always = re.match(
        rf"^(?:(?:please|always|also|then)\s+)*(?P<then>(?:{IMPERATIVE})\b.+)$", text, I
    )
    if always and not re.match(rf"^[^,]*?\s{_OBLIGED}\s", text, I):
        return opened(always["then"])
    match = _MUST.match(text)
    if match and not re.match(r"(?:not|never)\b", match["then"], I):
        subject = match["subject"]
        if re.fullmatch(SPEAKER_EN, subject, I):
            return clean(match["then"])
        return opened(clean(f"{subject} {match['then']}"))
    is_verb = re.match(
        r"^(?P<s>(?:the|an?|its|their)\s+[\w\s'-]+?)\s+(?P<v>(?:is|are)\s+(?:\w+ed|told|given|shown|sent)\b.*|shows?\b.+|gets?\b.+|names?\b.+|tells?\b.+|has\b.+|mentions?\b.+|states?\b.+|offers?\b.+)$",
        text,
        I,
    )
    if is_verb:
        return opened(clean(re.sub(rf"^(?:{SPEAKER_EN})\s+", "", text, flags=I)))
    return None


# --- one clause -------------------------------------------------------------------------------

_SCOPE = re.compile(
    r"^(?:this|that|it|the (?:rule|limit|bound|above)|these (?:rules|limits))\s+(?:does|do|shall|will)\s+not\s+(?:apply|hold)\s*(?P<word>to|in (?:the )?cases? of|if|when|where|for|in|during)?\s+(?P<what>.+)$",
    I,
)


def scope(text: str) -> list[str] | None:
    """The exceptions that a sentence "This does not apply to …" adds to the norm before it."""
    match = _SCOPE.match(text)
    return things(match["what"], match["word"] or "") if match else None


_FAILURE = re.compile(
    r"^(?:on|upon|in case of|in the event of|after|at|if|when|where)\s+(?:(?:a|any|the)\s+)?(?:failure|violation|breach|mismatch|non-?compliance|contravention|infringement|(?:(?:this|that|the|a)\s+(?:rule|limit|norm)|this|it|that)\s+(?:is|fails|was)\s*(?:violated|broken|breached|not met|not kept|infringed)?|violated|broken|this fails)\s*[:,–-]?\s*(?:(?:the )?(?:answer|reply|generation|model|output|text|it)?\s*(?:is|must be|shall be|gets)?\s*(?:to be )?)?(?P<word>[\w-]+)(?P<rest>.*)$",
    I,
)


def failure(text: str) -> str | None:
    """The word that a failure sentence gives for the action."""
    match = _FAILURE.match(clean(text)) or re.match(
        r"^action\s*:\s*(?P<word>\w+)(?P<rest>.*)$", clean(text), I
    )
    if match is None or len(match["rest"].split()) > 4:
        return None
    return match["word"].lower()


def main_clause(text: str) -> list[Norm]:
    """The norms of a clause without exceptions, or none."""
    made = definition(text)
    if made:
        return [made]
    imperative = re.match(r"^(?:never|do not|don't)\b", text, I)
    bounds = bound(text)
    if bounds and not (imperative and not bounds):
        conditional = re.match(rf"^{_CONDITION}\s", text, I) and not marks(text)
        if not conditional:
            return bounds
    same = consistency(text)
    if same:
        return [same]
    if not re.match(rf"^{_CONDITION}\s", text, I) or re.search(r"\b(?:never|not|no)\b", text, I):
        forbidden = prohibition(text)
        if forbidden:
            return [forbidden]
    required = requirement(text)
    return [required] if required else []


_SPLIT = re.compile(
    r"\s*(?:,\s*(?:and|while|whereas|but)?|\s(?:and|while|whereas|but))\s+(?=(?:(?:the|an?|its|their|any|no|each|every)\s+)?(?:[\w'-]+\s+){0,3}[⟦⟪][^⟦⟪⟧⟫]+[⟧⟫](?:\s+[\w'-]+){0,6}?\s+(?:must|shall|may|can|is|are|has|have|should|amounts?)\b)",
    I,
)


def clauses(text: str) -> list[str]:
    """Coordinated main clauses with a marked slot each."""
    pieces: list[str] = []
    start = 0
    for match in _SPLIT.finditer(text):
        head = text[start : match.start()]
        if re.search(rf"\b(?:{_MODAL}|is|are|amounts?)\b", MARK.sub("", head), I) and not re.match(
            rf"(?:{_CONDITION}|{_EXCEPT}|without|for)\b", head, I
        ):
            pieces.append(head)
            start = match.end()
    pieces.append(text[start:])
    return pieces
