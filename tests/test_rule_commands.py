"""`ska-build new`, `diff` and `explain`, and rules as JSON Lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ska_builder.build import build
from ska_builder.cli import cli
from ska_builder.language import check_text
from ska_builder.rules import checked_rules
from zerolayer.errors import ZerolayerError

KINDS = ["consistency", "bound", "precedence", "definition", "prohibition", "requirement"]


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_starter_has_every_kind_and_is_clean(tmp_path: Path, language: str) -> None:
    path = tmp_path / "rules.md"
    assert run("new", path, "--language", language).exit_code == 0
    checked = check_text(path.read_text("utf-8"))
    assert [r.kind for r in checked.readings] == KINDS and not checked.diagnostics
    path.write_text("mine", "utf-8")
    assert isinstance(run("new", path).exception, ZerolayerError)
    assert path.read_text("utf-8") == "mine"
    assert isinstance(run("new", tmp_path / "no" / "rules.md").exception, ZerolayerError)


OLD = """---
domain: contracts
languages: [en]
---
# Rules
## Payment
The **payment period** must match the source documents.
- also: "payment term"

## Liability
The **liability cap** must not exceed USD 500,000.
The **liability cap** must be at least USD 100,000.

## Order
The amendment prevails over the master agreement.

## Promises
Never promise a refund.
"""


def test_diff_says_what_behaves_differently(tmp_path: Path) -> None:
    old, new = tmp_path / "old.md", tmp_path / "new.md"
    old.write_text(OLD, "utf-8")
    text = OLD.replace("must match the source documents", "has to match the sources")
    new.write_text(text.replace("## Payment\n", "## Paying\n<!-- reworded -->\n"), "utf-8")
    result = run("diff", old, new)
    assert result.exit_code == 0 and "0 changes" in result.output

    text = OLD.replace("USD 500,000", "USD 400,000").replace('"payment term"', '"time to pay"')
    text = text.replace("## Promises\nNever promise a refund.\n", "")
    text += "## Notice\nThe **notice period** must match the contract.\n"
    new.write_text(text, "utf-8")
    result = run("diff", old, new, "--json")
    assert result.exit_code == 1
    shown = json.loads(result.stdout)
    assert [(c["rule"], c["what"]) for c in shown["changes"]] == [
        ("Payment", "changed"),
        ("Liability", "changed"),
        ("Notice", "added"),
        ("Promises", "removed"),
    ]
    assert "USD 500,000" in shown["changes"][1]["before"]
    assert "USD 400,000" in shown["changes"][1]["after"]
    assert shown["no_longer_checked"] == []
    result = run("diff", new, old)
    assert "no longer checked anywhere: notice period" in result.output


def test_diff_of_a_file_with_errors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.md"
    path.write_text("# R\n## A\nBe nice.\n", "utf-8")
    assert isinstance(run("diff", path, path).exception, ZerolayerError)


def test_explain_shows_one_rule(
    tmp_path: Path, llama: Any, byte_level: Any, monkeypatch: Any
) -> None:
    path, packed = tmp_path / "rules.md", tmp_path / "pack.safetensors"
    path.write_text(OLD + '- good: "No refund is possible."\n', "utf-8")
    monkeypatch.setattr("ska_builder.commands.explain.load_tokenizer", lambda name: byte_level)
    build(checked_rules(path), llama, byte_level).save(packed)
    result = run("explain", path, "Payment", "--model", "m", "--pack", packed)
    assert result.exit_code == 0, result.output
    for words in (
        "consistency: The payment period",
        "payment term   [",
        "anchors: ",
        "~ The payment",
    ):
        assert words in result.output
    shown = json.loads(run("explain", path, "Promises", "--json").stdout)
    assert shown["contrast"]["good"] == ["No refund is possible."] and shown["made"] is None
    result = run("explain", path, "Paymnt")
    assert "did you mean 'Payment'" in str(result.exception)


LINES = [
    {
        "id": "Payment",
        "text": "The **payment period** must match the source documents.",
        "lang": "en",
        "fields": {"also": ["payment term", "time to pay"], "action": "repair"},
    },
    {"id": "违约金", "text": "**违约金**不得超过人民币五十万元。", "lang": "zh"},
]


def written(path: Path, lines: list[Any]) -> Path:
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(text) + "\n", "utf-8")
    return path


def test_rules_as_json_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "rules.jsonl", [LINES[0], "", LINES[1]])
    result = run("check", path, "--json")
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.stdout)["readings"]
    assert (first["rule"], first["line"], first["action"]) == ("Payment", 1, "repair")
    assert first["slot"]["also"] == ["payment term", "time to pay"]
    assert (second["rule"], second["line"], second["language"]) == ("违约金", 3, "zh")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "this line is no rule"),
        ('{"id": "A", "lang": "en"}', "text: Field required"),
        ({**LINES[0], "more": 1}, "more: Extra inputs are not permitted"),
        ({**LINES[0], "text": "Be nice."}, "states no norm"),
        ({**LINES[0], "text": "The rent is due.\n## Other"}, "text: String should match"),
        ({**LINES[0], "text": "## Other"}, "without Markdown"),
        ({**LINES[0], "fields": {"type": "colour"}}, "type"),
        ("[" * 5000, "this line is no rule"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, line: Any, said: str) -> None:
    path = written(tmp_path / "rules.jsonl", [LINES[0], line, LINES[1]])
    result = run("check", path)
    assert result.exit_code == 1
    assert "rules.jsonl:2:1: error" in result.output and said in result.output
