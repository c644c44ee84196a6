"""`zerolayer check`: places, formats, exit codes, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.test_command_lines import run
from zerolayer.cli import cli

RULES = """---
domain: test
languages: [en, zh]
---
# T

## Payment
The **payment period** must match the sources.
- type: duration

## Order
The amendment prevails over the contract.
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "rules.md").write_text(RULES, encoding="utf-8")
    (tmp_path / "contract.md").write_text(
        "---\nid: C\nkind: contract\n---\nThe payment period is 30 days.\n", encoding="utf-8"
    )
    (tmp_path / "amendment.md").write_text(
        "---\nid: A\nkind: amendment\n---\nThe payment period is 45 days.\n", encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def check(place: Path, capsys: Any, monkeypatch: Any) -> Any:
    def call(answer: str, *more: str, sources: tuple[str, ...] = ("contract.md", "amendment.md")):
        (place / "answer.txt").write_text(answer, encoding="utf-8")
        given = [a for s in sources for a in ("--source", str(place / s))]
        head = ["check", str(place / "answer.txt"), "--rules", str(place / "rules.md")]
        return run(cli, [*head, *given, *more], capsys, monkeypatch)

    return call


def test_a_contradiction_is_placed_and_fails(check: Any) -> None:
    code, out, err = check("Hello,\n\nthe **payment period** is\n30 days.\n")
    assert code == 1
    assert "answer.txt:4:1: contradiction: payment period: “30 days”" in out
    assert "A (amendment)" in out and "[Payment]" in out
    assert "1 contradiction" in err


def test_a_text_that_agrees_passes(check: Any) -> None:
    assert check("The payment period is 45 days.")[:2] == (0, "")
    assert check("Nothing is stated here.")[:2] == (0, "")


def test_strict_fails_on_what_no_source_states(check: Any, place: Path) -> None:
    (place / "other.md").write_text("Deliveries are made on Mondays.\n", encoding="utf-8")
    said = "The payment period is 45 days."
    code, out, _ = check(said, sources=("other.md",))
    assert code == 0 and "unsupported" in out
    assert check(said, "--strict", sources=("other.md",))[0] == 1


def test_columns_count_code_points(check: Any) -> None:
    code, out, _ = check("😀 é: the payment period is 30 days.")
    assert code == 1 and "answer.txt:1:28:" in out


def test_json_quotes_the_sources(check: Any) -> None:
    code, out, _ = check("The payment period is 30 days.", "--format", "json")
    (event,) = json.loads(out)
    assert code == 1
    assert (event["line"], event["column"], event["text"]) == (1, 23, "30 days")
    assert event["quotes"][0]["quote"] == "The payment period is 45 days."


def test_sarif_has_the_fields_that_viewers_need(check: Any) -> None:
    code, out, _ = check("The payment period\nis 30 days.", "--format", "sarif")
    report = json.loads(out)
    assert code == 1 and report["version"] == "2.1.0" and report["$schema"].endswith("2.1.0.json")
    (result,) = report["runs"][0]["results"]
    assert result["level"] == "error"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 4, "endLine": 2, "endColumn": 11}
    assert result["ruleId"] in {r["id"] for r in report["runs"][0]["tool"]["driver"]["rules"]}


def test_standard_input(place: Path, capsys: Any, monkeypatch: Any) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"The payment period is 30 days."))
    monkeypatch.setattr("sys.stdin", stdin)
    arguments = ["--rules", str(place / "rules.md"), "--source", str(place / "contract.md")]
    code, out, _ = run(cli, ["check", "-", *arguments], capsys, monkeypatch)
    assert code == 0 and out == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--pack", "p.safetensors"], "either --pack or --rules"),
        (["--source", "SAME"], "two sources have the id"),
        (["--source", "nowhere.md"], "cannot be read"),
    ],
)
def test_wrong_input_is_one_sentence(check: Any, place: Path, change: list[str], said: str) -> None:
    change = [str(place / "contract.md") if c == "SAME" else c for c in change]
    code, out, err = check("The payment period is 30 days.", *change)
    assert code == 2 and said in err and out == "" and "Traceback" not in err


def test_answers_that_are_no_text(check: Any, place: Path, capsys: Any, monkeypatch: Any) -> None:
    assert check(" \n")[0] == 2
    (place / "answer.txt").write_bytes(b"\xff\xfe")
    arguments = ["--rules", str(place / "rules.md"), "--source", str(place / "contract.md")]
    code, _, err = run(cli, ["check", str(place / "answer.txt"), *arguments], capsys, monkeypatch)
    assert code == 2 and "not UTF-8" in err
