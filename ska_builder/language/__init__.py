"""The rules language: a rules.md, or JSON Lines, read into readings and diagnostics."""

from ska_builder.language.check import Checked, check_text
from ska_builder.language.diagnostics import Diagnostic, format_diagnostic
from ska_builder.language.document import Rule
from ska_builder.language.jsonl import check_jsonl
from ska_builder.language.norms import read_norms
from ska_builder.language.sayback import say_back

__all__ = [
    "Checked",
    "Diagnostic",
    "Rule",
    "check_jsonl",
    "check_text",
    "format_diagnostic",
    "read_norms",
    "say_back",
]
