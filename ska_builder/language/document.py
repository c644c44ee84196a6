"""A rules file as rules with prose, quote and fields; the faults of its form.

Block structure is CommonMark's. A line without `>` below a quote is prose here, though CommonMark
would count it to the quote, and a numbered list after a colon goes on with its sentence.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

import yaml
from markdown_it import MarkdownIt

from ska_builder.language.diagnostics import WARNINGS, Diagnostic
from ska_builder.language.marked import inline, mark, marks, plain, split
from ska_builder.language.words import FIELD_NAMES
from zerolayer.errors import ZerolayerError

MAX_FILE = 1_000_000
MAX_RULE = 10_000
_BLOCKS = MarkdownIt("commonmark")


@dataclass
class Field:
    """One field: its name as readings call it, as written, its text, and its entries."""

    key: str
    written: str
    line: int
    text: str
    entries: list[tuple[int, str]] = field(default_factory=list)

    @property
    def values(self) -> list[str]:
        return [text for _, text in self.entries]


@dataclass
class Rule:
    """One level-2 heading with all that stands below it. `prose` is plain text."""

    heading: str
    line: int
    quote: str = ""
    prose: str = ""
    sentences: list[tuple[int, str]] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    has_prose: bool = False

    def entries(self, key: str) -> list[tuple[int, str]]:
        return [entry for f in self.fields if f.key == key for entry in f.entries]

    @property
    def good(self) -> list[str]:
        return [text for _, text in self.entries("good")]

    @property
    def bad(self) -> list[str]:
        return [text for _, text in self.entries("bad")]

    @property
    def sources(self) -> list[str]:
        return [text for _, text in self.entries("sources")]

    @property
    def severity(self) -> str | None:
        return next((text for _, text in self.entries("severity")), None)


class Reader:
    """Reads one file; `diagnostics` are the faults of its form."""

    def __init__(self, text: str, path: str) -> None:
        if len(text) > MAX_FILE:
            raise ZerolayerError(f"{path} is larger than 1 MB; split it into several rules files")
        self.text, self.path = (
            text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff"),
            path,
        )
        self.lines = self.text.split("\n")
        self.diagnostics: list[Diagnostic] = []
        self.title = ""
        self.languages: list[str] = []
        self.rules: list[Rule] = []
        body = self._front_matter()
        self._blocks(body)

    def report(self, line: int, code: str, message: str, suggestion: str, column: int = 1) -> None:
        severity = "warning" if code in WARNINGS else "error"
        self.diagnostics.append(
            Diagnostic(self.path, line, column, code, severity, message, suggestion)  # type: ignore[arg-type]
        )

    def column(self, line: int, words: str) -> int:
        """Where words begin in a line of the file, 1 where they cannot be found."""
        source = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        bare = plain(words).strip()
        for length in (40, 24, 12, 6, 3):
            at = source.find(bare[:length])
            if at >= 0:
                # Marks before the words belong to them.
                while at and source[at - 1] in '*"“「':
                    at -= 1
                return at + 1
        return len(source) - len(source.lstrip()) + 1

    # --- front matter ---------------------------------------------------------------------------

    def _front_matter(self) -> int:
        """Check the block between `---`; the number of lines before the body."""
        code, advice = (
            "bad-front-matter",
            'begin the file with "---", "domain: …", "languages: [en, zh]", "---"',
        )
        if not self.lines or self.lines[0].rstrip() != "---":
            self.report(1, code, "the file has no front matter", advice)
            return 0
        close = next(
            (i for i, line in enumerate(self.lines[1:], 1) if line.rstrip() == "---"), None
        )
        if close is None:
            self.report(
                1, code, "the front matter is not closed", 'write a line "---" after its last entry'
            )
            end = next(
                (
                    i
                    for i, line in enumerate(self.lines[1:], 1)
                    if not re.match(r"\s*[\w-]+\s*:|\s+-|\s*$", line)
                ),
                len(self.lines),
            )
            return end
        block = "\n".join(self.lines[1:close])
        try:
            node = yaml.compose(block, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            at = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            line = min((at.line if at else 0) + 2, close)
            entry = self.lines[line - 1].strip()
            self.report(
                line,
                code,
                f'the front matter entry "{entry}" is not YAML',
                'write "name: value", a list as [a, b]',
            )
            return close + 1
        if node is None:
            self.report(1, code, "the front matter is empty", advice)
            return close + 1
        if not isinstance(node, yaml.MappingNode):
            self.report(
                node.start_mark.line + 2,
                code,
                f'the front matter "{block.strip()[:60]}" has no entries',
                advice,
            )
            return close + 1
        self._entries(node, code)
        return close + 1

    def _entries(self, node: yaml.MappingNode, code: str) -> None:
        seen: set[str] = set()
        for key, value in node.value:
            line, name = key.start_mark.line + 2, str(key.value)
            if name in seen:
                self.report(
                    line, code, f'the front matter names "{name}" twice', "keep one of the two"
                )
            elif name == "domain":
                if (
                    not isinstance(value, yaml.ScalarNode)
                    or not value.value.strip()
                    or value.tag.endswith(":null")
                ):
                    self.report(
                        line,
                        code,
                        'the entry "domain" must be a text',
                        "write, say, domain: contracts",
                    )
            elif name == "languages":
                self._languages(line, value, code)
            else:
                near = difflib.get_close_matches(name, ["domain", "languages"], 1)
                hint = (
                    f'did you mean "{near[0]}"?'
                    if near
                    else 'the entries are "domain" and "languages"'
                )
                self.report(line, code, f'the front matter has an unknown entry "{name}"', hint)
            seen.add(name)
        for name in ("domain", "languages"):
            near_miss = any(difflib.get_close_matches(s, [name], 1) for s in seen)
            if name not in seen and not near_miss:
                self.report(
                    1,
                    code,
                    f'the front matter lacks the entry "{name}"',
                    'write "domain: …" and "languages: [en, zh]"',
                )

    def _languages(self, line: int, value: yaml.Node, code: str) -> None:
        advice = "write languages: [en], [zh] or [en, zh]"
        nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if not nodes:
            self.report(line, code, 'the entry "languages" is empty', advice)
        for one in nodes:
            written = str(one.value) if isinstance(one, yaml.ScalarNode) else "a list"
            if written not in ("en", "zh"):
                at = one.start_mark.line + 2
                self.report(
                    at,
                    code,
                    f'"languages" names "{written}", which is neither en nor zh',
                    advice,
                    one.start_mark.column + 1,
                )
            else:
                self.languages.append(written)

    # --- blocks ---------------------------------------------------------------------------------

    def _blocks(self, offset: int) -> None:
        source = "\n".join(self.lines[offset:])
        tokens = _BLOCKS.parse(source)
        at = 0
        rule: Rule | None = None
        pending: str | None = None  # prose that ended with a colon
        pending_line = 0
        while at < len(tokens):
            token = tokens[at]
            close = self._closing(tokens, at)
            first, last = (token.map[0], token.map[1]) if token.map else (0, 0)
            line = offset + first + 1
            kind = token.type
            listed = kind in ("ordered_list_open", "bullet_list_open")
            if pending is not None and rule is not None:
                if listed and (
                    kind == "ordered_list_open" or not self._is_fields(tokens, at, close)
                ):
                    items = [
                        self._item_text(tokens, a, b) for a, b in self._items(tokens, at, close)
                    ]
                    self._prose(
                        rule,
                        pending_line,
                        pending.rstrip() + " " + "\x1e".join(items) + ".",
                        raw=False,
                    )
                    pending, at = None, close + 1
                    continue
                self._prose(rule, pending_line, pending, raw=False)
                pending = None
            if kind == "heading_open":
                content = (
                    plain(inline(tokens[at + 1].content))
                    if token.tag == "h1"
                    else _heading(tokens[at + 1].content)
                )
                if token.tag == "h1":
                    self.title = self.title or content
                elif token.tag == "h2":
                    rule = Rule(content, line)
                    self.rules.append(rule)
                elif rule is not None:
                    self.report(
                        line,
                        "unreadable-sentence",
                        f'the heading "{content}" is below level 2 and states no norm',
                        'begin a rule with "## …" or write the heading as prose',
                    )
            elif rule is None:
                pass  # an introduction: kept in the file, not read
            elif kind == "blockquote_open":
                self._quote(rule, offset + first, offset + last)
            elif kind == "paragraph_open":
                content = tokens[at + 1].content
                text = inline(content)
                if text.rstrip().endswith((":", "：")):
                    pending, pending_line = text, line
                else:
                    self._prose(rule, line, text, raw=False)
            elif kind == "bullet_list_open":
                for a, b in self._items(tokens, at, close):
                    self._field(rule, tokens, a, b, offset)
            elif kind == "ordered_list_open":
                for a, b in self._items(tokens, at, close):
                    item_line = offset + (tokens[a].map or [0])[0] + 1
                    self._prose(rule, item_line, self._item_text(tokens, a, b), raw=False)
            elif kind in ("fence", "code_block"):
                self._prose(
                    rule, line + (1 if kind == "fence" else 0), token.content.strip("\n"), raw=True
                )
            elif kind == "html_block" and not token.content.lstrip().startswith("<!--"):
                self._prose(rule, line, re.sub(r"<[^>]*>", "", token.content).strip(), raw=True)
            at = close + 1
        if pending is not None and rule is not None:
            self._prose(rule, pending_line, pending, raw=False)
        self._finish()

    def _finish(self) -> None:
        ends = [r.line for r in self.rules[1:]] + [len(self.lines) + 1]
        for rule, end in zip(self.rules, ends, strict=False):
            if sum(len(line) + 1 for line in self.lines[rule.line : end - 1]) > MAX_RULE:
                raise ZerolayerError(
                    f'{self.path}:{rule.line}: the rule "{rule.heading}" is longer than '
                    f"{MAX_RULE:,} characters; "
                    "split it into several rules"
                )
            if not rule.has_prose:
                self.report(
                    rule.line,
                    "empty-rule",
                    f'the rule "{rule.heading}" has no prose that states a norm',
                    "write a sentence below the heading, or take the heading out",
                )

    @staticmethod
    def _closing(tokens: list, at: int) -> int:  # type: ignore[type-arg]
        depth = 0
        for i in range(at, len(tokens)):
            depth += tokens[i].nesting
            if depth <= 0:
                return i
        return len(tokens) - 1

    def _items(self, tokens: list, at: int, close: int) -> list[tuple[int, int]]:  # type: ignore[type-arg]
        found, i = [], at + 1
        while i < close:
            end = self._closing(tokens, i)
            found.append((i, end))
            i = end + 1
        return found

    @staticmethod
    def _item_text(tokens: list, a: int, b: int) -> str:  # type: ignore[type-arg]
        return "\n".join(inline(t.content) for t in tokens[a:b] if t.type == "inline")

    def _is_fields(self, tokens: list, at: int, close: int) -> bool:  # type: ignore[type-arg]
        for a, b in self._items(tokens, at, close):
            name = re.split(r"[:：]", self._item_text(tokens, a, b), maxsplit=1)[0].strip().lower()
            if name in FIELD_NAMES or difflib.get_close_matches(name, FIELD_NAMES, 1, 0.8):
                return True
        return False

    def _quote(self, rule: Rule, first: int, last: int) -> None:
        quoted, prose, start = [], [], None
        for number in range(first, last):
            source = self.lines[number]
            if re.match(r"\s{0,3}>", source) and start is None:
                quoted.append(re.sub(r"^\s{0,3}>\s?", "", source))
            elif source.strip():
                start = number if start is None else start
                prose.append(re.sub(r"^\s{0,3}>\s?", "", source))
        rule.quote = "\n".join([rule.quote, *quoted]).strip()
        if start is not None:
            self._prose(rule, start + 1, inline("\n".join(p.strip() for p in prose)), raw=False)

    def _prose(self, rule: Rule, line: int, text: str, raw: bool) -> None:
        text = mark(text) if raw else text
        if not plain(text).strip():
            return
        rule.has_prose = True
        shown = plain(text).replace("\x1e", "; ")
        rule.prose = f"{rule.prose}\n{shown}".strip()
        for offset, sentence in split(text):
            rule.sentences.append((line + text[:offset].count("\n"), sentence))

    # --- fields ---------------------------------------------------------------------------------

    def _field(self, rule: Rule, tokens: list, a: int, b: int, offset: int) -> None:  # type: ignore[type-arg]
        line = offset + (tokens[a].map or [0])[0] + 1
        inner = [t for t in tokens[a:b] if t.type == "inline"]
        content = inner[0].content if inner else ""
        code = "malformed-field"
        match = re.match(r"\s*\**([^:：\"“「]{1,40}?)\**\s*[:：]\**\s*(.*)$", content, re.S)
        if not match:
            word = content.split()[0] if content.split() else "-"
            self.report(
                line,
                code,
                f'the field "{content[:60]}" has no colon',
                f'write "- {word}: …"',
                self.column(line, content),
            )
            return
        written, text = match[1].strip(), re.sub(r"\s*\n\s*", " ", match[2]).strip()
        key = FIELD_NAMES.get(written.lower())
        if key is None:
            near = difflib.get_close_matches(written.lower(), FIELD_NAMES, 1)
            hint = (
                f'did you mean "{near[0]}"?' if near else "the fields are " + ", ".join(FIELD_NAMES)
            )
            self.report(
                line, code, f'there is no field "{written}"', hint, self.column(line, content)
            )
            return
        entries = [(line, text)] if text else []
        for token in inner[1:]:
            entries.append((offset + (token.map or [0])[0] + 1, token.content.strip()))
        if any(_unclosed(t) for _, t in entries):
            self.report(
                line,
                code,
                f'a quotation mark in the field "{written}" is not closed',
                "close each quotation mark",
                self.column(line, content),
            )
            return
        if not entries:
            self.report(
                line,
                code,
                f'the field "{written}" is empty',
                f'write a value behind "{written}:" or take the field out',
                self.column(line, content),
            )
            return
        if key in ("also", "sources"):
            entries = [(n, value) for n, t in entries for value in _list(t)]
        elif key in ("good", "bad"):
            entries = [(n, _unquoted(t)) for n, t in entries]
        elif key in ("action", "type", "severity"):
            entries = [(n, _unquoted(t).strip(" .。")) for n, t in entries]
        rule.fields.append(Field(key, written, line, text, entries))


def _heading(content: str) -> str:
    """A level-2 heading as written, without Markdown marks; its quotation marks stay."""
    tokens = _BLOCKS.parseInline(content)
    children = tokens[0].children or [] if tokens else []
    return "".join(
        t.content for t in children if t.type in ("text", "code_inline", "text_special")
    ).strip()


def _unclosed(text: str) -> bool:
    pairs = (("「", "」"), ("『", "』"), ("“", "”"), ("《", "》"))
    return text.count('"') % 2 == 1 or any(text.count(a) != text.count(b) for a, b in pairs)


def _list(text: str) -> list[str]:
    quoted = marks(mark(text))
    if quoted:
        return quoted
    return [p.strip() for p in re.split(r"[,，、;；]", text) if p.strip()]


_ENDS = {'"': '"', "“": "”", "「": "」", "『": "』", "'": "'"}


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and _ENDS.get(text[0]) == text[-1]:
        return text[1:-1]
    return text
