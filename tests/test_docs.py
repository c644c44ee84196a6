"""The examples of docs/rules.md say what the documentation says they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ska_builder.language import check_text, say_back

PAGE = Path(__file__).parent.parent / "docs" / "rules.md"
HEAD = "---\ndomain: contracts\nlanguages: [en, zh]\n---\n# Rules\n"
EXAMPLES = re.findall(r"```rules\n(.*?)```\n```reading\n(.*?)```", PAGE.read_text("utf-8"), re.S)


def test_every_example_is_paired() -> None:
    assert len(EXAMPLES) == PAGE.read_text("utf-8").count("```rules") >= 8


@pytest.mark.parametrize(("rules", "said"), EXAMPLES)
def test_example(rules: str, said: str) -> None:
    checked = check_text(rules if rules.startswith("---") else HEAD + rules)
    lines = [f"{r.kind}: {say_back(r)}" for r in checked.readings]
    lines += [f"{d.severity}: {d.message}" for d in checked.diagnostics]
    assert lines == said.strip().splitlines()
