"""The text that is scanned: Python's own language reference, which every installation has.

Patterns are cut out of it, so they do occur.
"""

from __future__ import annotations

import pydoc_data.topics
import random
import re

WORD = re.compile(r"[A-Za-z0-9]+")
LONGEST = 40  # characters of a pattern


def reference_text() -> str:
    """About 430,000 characters of English and code: ASCII, white space folded to one blank."""
    topics = pydoc_data.topics.topics
    joined = "\n".join(topics[name] for name in sorted(topics))
    return " ".join(joined.encode("ascii", "ignore").decode().split())


def cut_literals(text: str, count: int, seed: int = 1) -> list[str]:
    """Different runs of two to four words of the text, whatever their case."""
    rng = random.Random(seed)
    words = list(WORD.finditer(text))
    found: dict[str, str] = {}
    while len(found) < count:
        first = rng.randrange(len(words) - 4)
        last = first + rng.randrange(1, 4)
        literal = text[words[first].start() : words[last].end()]
        if len(literal) <= LONGEST:
            found.setdefault(literal.lower(), literal)
    return list(found.values())
