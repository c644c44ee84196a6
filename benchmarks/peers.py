"""Other projects that read a token stream, behind one face: built from patterns, fed tokens.

XGrammar and llguidance are mask generators: they know at every token which ones may follow, which
a scanner does not. Here their grammar allows any text and meets the patterns in it, and only the
taking of a token is timed, never the making of a mask.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from benchmarks.measure import seconds

XGRAMMAR = "XGrammar accept_token (mask generator)"
LLGUIDANCE = "llguidance consume_token (mask generator)"
STOP_STRINGS = "transformers StopStringCriteria"
FASTER_THAN = (XGRAMMAR, LLGUIDANCE, STOP_STRINGS)  # what a token must cost less than

Take = Callable[[int], object]


@dataclass
class Built:
    """A peer that has been built for some patterns."""

    name: str
    seconds: float  # of the build
    size: int | None  # bytes of its tables, None where it does not say
    stream: Callable[[], Take]  # begins a stream; what it gives takes a token
    # Takes one token of each of several streams; None: one stream at a time.
    batch: Callable[[int], Callable[[Sequence[int]], object]] | None = None


@cache
def importable(module: str) -> bool:
    """Whether a peer is installed; says once that it is not."""
    if importlib.util.find_spec(module) is not None:
        return True
    print(
        f"{module} is not installed and is left out; pip install --no-deps -r "
        "requirements-bench.txt",
        file=sys.stderr,
    )
    return False


def xgrammar(tokenizer: Any, width: int, literals: Sequence[str]) -> Built:
    """XGrammar's dispatch on literals: free text until one of them, then free text again."""
    import xgrammar as xgr

    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=width)
    tags = ", ".join(f"({json.dumps(x)}, nothing)" for x in literals)
    grammar = f'root ::= TagDispatch({tags}, loop_after_dispatch=true)\nnothing ::= ""\n'
    compiled: list[Any] = []

    def build() -> None:
        compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        compiled.append(compiler.compile_grammar(grammar))

    took = seconds(build)

    def stream() -> Take:
        return xgr.GrammarMatcher(compiled[0]).accept_token  # type: ignore[no-any-return]

    def batch(rows: int) -> Callable[[Sequence[int]], object]:
        matchers = [xgr.GrammarMatcher(compiled[0]) for _ in range(rows)]
        accept = xgr.BatchGrammarMatcher.batch_accept_token
        return lambda tokens: accept(matchers, tokens)

    return Built(XGRAMMAR, took, int(compiled[0].memory_size_bytes), stream, batch)


def llguidance(tokenizer: Any, width: int, literals: Sequence[str]) -> Built:
    """llguidance with a lazy lexeme: any text up to the first literal, again and again."""
    import llguidance
    import llguidance.hf

    own = llguidance.hf.from_tokenizer(tokenizer, n_vocab=width)
    escaped = "|".join(re.escape(x).replace("/", r"\/") for x in literals)
    grammar = f"start: hit*\nhit[lazy]: /(.|\\n)*({escaped})/\n"
    limits = llguidance.LLParserLimits(
        initial_lexer_fuel=10**9,
        step_lexer_fuel=10**9,
        max_lexer_states=10**7,
        max_grammar_size=10**8,
    )
    made: list[Any] = []
    took = seconds(lambda: made.append(llguidance.LLMatcher(own, grammar, limits=limits)))
    if made[0].is_error():
        raise ValueError(made[0].get_error())

    def stream() -> Take:
        return made[0].deep_copy().consume_token  # type: ignore[no-any-return]

    return Built(LLGUIDANCE, took, None, stream)


def stop_strings(tokenizer: Any, width: int, literals: Sequence[str]) -> Built:
    """transformers' StopStringCriteria, called on the ids of the last tokens."""
    from transformers import StopStringCriteria

    del width
    made: list[Any] = []
    took = seconds(lambda: made.append(StopStringCriteria(tokenizer, list(literals))))
    criteria = made[0]
    length = int(criteria.maximum_token_len)

    def stream() -> Take:
        ids = torch.zeros(1, length, dtype=torch.long)

        def take(token: int) -> object:
            ids[0, -1] = token
            return criteria(ids, None)

        return take

    def batch(rows: int) -> Callable[[Sequence[int]], object]:
        ids = torch.zeros(rows, length, dtype=torch.long)

        def take(tokens: Sequence[int]) -> object:
            ids[:, -1] = torch.tensor(tokens)
            return criteria(ids, None)

        return take

    size = criteria.embedding_vec.numel() * criteria.embedding_vec.element_size()
    return Built(STOP_STRINGS, took, size, stream, batch)


class AhoCorasick:
    """ahocorasick-rs over bytes: the oracle, and a peer that needs the text of the tokens."""

    def __init__(self, literals: Sequence[str]) -> None:
        import ahocorasick_rs

        patterns = [x.lower().encode() for x in literals]
        made: list[Any] = []
        self.seconds = seconds(lambda: made.append(ahocorasick_rs.BytesAhoCorasick(patterns)))
        self.native = made[0]

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """(pattern, begin, end) of every match, also those that overlap, whatever their case."""
        found = self.native.find_matches_as_indexes(data.lower(), overlapping=True)
        return [(int(p), int(b), int(e)) for p, b, e in found]
