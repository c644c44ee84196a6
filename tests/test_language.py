"""The rules language: readings of many wordings, diagnostics, and input that is broken."""
# ruff: noqa: E501 - a case stands on one line

from __future__ import annotations

import difflib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ska_builder.commands.check import check
from ska_builder.language import Checked, check_text, format_diagnostic, read_norms, say_back
from ska_builder.language.marked import inline, language, plain, split
from zerolayer.errors import ZerolayerError

DATA = os.environ.get("ZEROLAYER_DATA")
RULES = Path(DATA) / "rules" if DATA else None
needs_data = pytest.mark.skipif(RULES is None, reason="ZEROLAYER_DATA is not set")
SENTENCES = [
    json.loads(line)
    for line in (Path(__file__).parent / "language_sentences.jsonl").read_text("utf-8").splitlines()
]
HEAD = "---\ndomain: test\nlanguages: [en, zh]\n---\n# Title\n\n"
TEXTS = ("meaning", "act", "when", "then")


def alike(a: str, b: str) -> bool:
    """The comparison of texts that the conventions give."""

    def bare(text: str) -> str:
        return " ".join(
            re.sub(r"\b(?:the|an?)\b", " ", re.sub(r"[^\w\s]", " ", text.lower())).split()
        )

    return difflib.SequenceMatcher(None, bare(a), bare(b)).ratio() >= 0.85


def right(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    for key, value in expected.items():
        if key not in got:
            return False
        if key in TEXTS:
            if not alike(value, got[key]):
                return False
        elif key in ("except", "unless"):
            if len(value) != len(got[key]) or not all(map(alike, value, got[key])):
                return False
        elif key == "slot":
            if any(got[key].get(k) != v for k, v in value.items()):
                return False
        elif got[key] != value:
            return False
    return True


def checked(body: str) -> Checked:
    return check_text(HEAD + body, "rules.md")


def codes(body: str) -> list[tuple[str, int]]:
    """(code, line of the body) of each diagnostic."""
    return [(d.code, d.line - HEAD.count("\n")) for d in checked(body).diagnostics]


# --- the shared rules files -----------------------------------------------------------------------


@needs_data
def test_shared_files_are_read_as_expected() -> None:
    assert RULES is not None
    total = correct = 0
    wrong: list[str] = []
    for path in sorted(RULES.glob("*.rules.md")):
        result = check_text(path.read_text("utf-8"), path.name)
        assert result.diagnostics == [], path.name
        rest = [r.to_json() for r in result.readings]
        for expected in json.loads(
            path.with_name(path.name.replace(".rules.md", ".readings.json")).read_text("utf-8")
        ):
            total += 1
            match = next((g for g in rest if right(expected, g)), None)
            if match is None:
                wrong.append(f"{path.name}:{expected['line']}: {expected}")
            else:
                rest.remove(match)
                correct += 1
        wrong += [f"{path.name}: not expected: {g}" for g in rest]
    print(f"readings right: {correct} of {total}")
    assert not wrong, "\n".join(wrong)


@needs_data
def test_shared_files_with_faults_give_exactly_their_diagnostics() -> None:
    assert RULES is not None
    expected = json.loads((RULES / "errors" / "expected.json").read_text("utf-8"))
    for path in sorted((RULES / "errors").glob("*.rules.md")):
        got = check_text(path.read_text("utf-8"), path.name).diagnostics
        wanted = [e for e in expected if e["file"] == path.name]
        assert len(got) == len(wanted), path.name
        for e in wanted:
            assert any(
                (d.line, d.code, d.severity) == (e["line"], e["code"], e["severity"])
                and e["about"] in d.message
                for d in got
            ), e


@needs_data
@pytest.mark.parametrize("name", ["conflicts.jsonl", "statements.jsonl", "contrast.jsonl"])
def test_every_rule_sentence_of_the_evaluation_sets_is_read(name: str) -> None:
    assert DATA is not None
    for line in (Path(DATA) / "eval" / name).read_text("utf-8").splitlines():
        item = json.loads(line)
        for sentence in item.get("rules", [item.get("rule")]):
            assert read_norms([sentence]), sentence


# --- wordings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SENTENCES, ids=[c["sentence"][:50] for c in SENTENCES])
def test_wording(case: dict[str, Any]) -> None:
    got = [r.to_json() for r in read_norms([case["sentence"]])]
    assert len(got) == len(case["readings"])
    for expected, reading in zip(case["readings"], got, strict=True):
        assert right(expected, reading), reading
    for reading in read_norms([case["sentence"]]):
        assert len(say_back(reading)) > 5


def test_norms_of_one_list_make_one_precedence() -> None:
    rules = [
        "The **notice period** must match the sources.",
        "The amendment prevails over the master agreement, and the master agreement over the e-mail; at equal kind, "
        "the later date decides; if the dates are equal too, the higher rank decides.",
        "What stays tied is contested.",
    ]
    kinds = [r.kind for r in read_norms(rules)]
    precedence = read_norms(rules)[1]
    assert kinds == ["consistency", "precedence"]
    assert precedence.details == {
        "order": ["amendment", "master agreement", "e-mail"],
        "tie": "later date",
        "ties": ["later date", "higher rank"],
        "unresolved": "contested",
    }


def test_tie_rule_alone_has_an_empty_order() -> None:
    (reading,) = read_norms(["Of two sources of one kind, the earlier one counts."])
    assert reading.details == {"order": [], "tie": "earlier date"}
    (reading,) = read_norms(["同一种类的资料，级别高的算数。", "仍分不出高下的，请询问。"])
    assert reading.details == {"order": [], "tie": "higher rank", "unresolved": "ask"}


def test_failure_sentence_gives_the_action() -> None:
    for sentence, action in (
        ("On failure: repair.", "repair"), ("If this rule is violated, stop.", "stop"),
        ("In the event of a breach: steer.", "steer"), ("违反时：更正。", "repair"),
        ("如违反，则停止。", "stop"), ("违反者，强制。", "enforce"),
    ):  # fmt: skip
        readings = read_norms(["The **fee** must not exceed USD 5.", sentence])
        assert [r.action for r in readings] == [action], sentence


def test_sentences_are_not_split_at_abbreviations_and_decimals() -> None:
    text = inline(
        "Cite cl. 4.2 (e.g. the fee of USD 2.5 million). Never guess. 不得承诺治愈。违约金不得超过3.5%。Ask."
    )
    assert [plain(s) for _, s in split(text)] == [
        "Cite cl. 4.2 (e.g. the fee of USD 2.5 million).", "Never guess.", "不得承诺治愈。",
        "违约金不得超过3.5%。", "Ask.",
    ]  # fmt: skip


def test_language_is_that_of_the_grammar() -> None:
    assert language(inline("The **还款方式** must be one of 等额本息 or 先息后本.")) == "en"
    assert language(inline("**SLA response time**不得超过4小时。")) == "zh"


def test_line_breaks_inside_a_sentence() -> None:
    result = checked(
        "## A\nThe **notice\nperiod** must not\nexceed 30 days. Never\nguess.\n- good: a\n- bad: b\n\n## B\n**违约\n金**不得超过合同\n总额的30%。\n"
    )
    assert [r.line - HEAD.count("\n") for r in result.readings] == [2, 4, 10]
    assert [r.slot.name for r in result.readings if r.slot] == ["notice period", "违约金"]
    assert result.diagnostics == []


def test_prose_directly_below_a_quote_is_prose() -> None:
    result = checked(
        '## A\n> Clause 4: "The fee shall not exceed EUR 9."\nThe **fee** must match the contract.\n'
    )
    assert [(r.kind, r.line - HEAD.count("\n")) for r in result.readings] == [("consistency", 3)]
    assert result.rules[0].quote.startswith("Clause 4")


def test_fields_of_a_rule() -> None:
    result = checked(
        '## A\nThe **x fee** of a loan must not exceed EUR 90, except for fraud.\n- also: "charge", 「手续费」\n- except: fraud, theft and war\n'
        '- 处理：停止\n- sources: "contract"\n- severity: high\n- good: "The x fee is EUR 80."\n- bad:\n  - "The fee is EUR 95."\n'
    )
    (reading,) = result.readings
    assert result.diagnostics == []
    assert reading.slot is not None and reading.slot.also == ("charge", "手续费")
    assert reading.details["except"] == ["fraud", "theft", "war"] and reading.action == "stop"
    rule = result.rules[0]
    assert (rule.good, rule.bad, rule.sources, rule.severity) == (
        ["The x fee is EUR 80."], ["The fee is EUR 95."], ["contract"], "high",
    )  # fmt: skip


# --- diagnostics ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("## A\nThe **term** of hire must be at least 3 days.\n\n## B\nThe **term** may not exceed 2 days.\n", ("conflicting-bounds", 5)),
        ("## A\nThe **x fee** must be between USD 5 and USD 9. The **x fee** must be at most USD 8.\n", ("conflicting-bounds", 2)),
        ("## A\nThe **x fee** must be exactly USD 5. The **x fee** must be above USD 8.\n", ("conflicting-bounds", 2)),
        ("## A\n**质保期**不少于三年。\n\n## B\n**质保期**不得超过两年。\n", ("conflicting-bounds", 5)),
        ("## A\nThe lease prevails over the flyer. The flyer prevails over the lease.\n", ("precedence-cycle", 2)),
        ("## A\nThe **x fee** is at most USD 5.\n- type: duration\n", ("field-disagrees", 3)),
        ("## A\nThe **x fee** is at most USD 5, unless the **y fee** is due.\n", ("unknown-slot", 2)),
        ("## A\nThe **x fee** is at most USD 5.\n- except: the **y fee** is due\n", ("unknown-slot", 3)),
        ("## A\n**首付款**至少为三成，「白金客户」除外。\n", ("unknown-slot", 2)),
        ("## A\n请注意日期。\n", ("unreadable-sentence", 2)),
        ("## A\nNever guess. Dates matter.\n- good: a\n- bad: b\n", ("unreadable-sentence", 2)),
        ("## A\nThe **x fee** is at most USD 5.\n- good: \"The x fee is USD 7.\"\n", ("example-violates-bound", 3)),
        ("## A\nThe **term** of hire is 12 or 24 months.\n- good: \"The term is 18 months.\"\n", ("example-violates-bound", 3)),
        ("## A\n不得承诺治愈。\n- 正例：「请咨询医生。」\n", ("too-few-examples", 2)),
        ("## A\nThe **x fee** is at most USD 5. On failure: explode.\n", ("unknown-action", 2)),
        ("## A\nThe **x fee** is at most USD 5.\n- 处理：警告\n", ("unknown-action", 3)),
        ("## A\n- action: stop\n", ("empty-rule", 1)),
        ("## A\n> only a quote\n", ("empty-rule", 1)),
        ("## A\nThe **x fee** is at most USD 5.\n- action stop\n", ("malformed-field", 3)),
        ("## A\n**换发费**不超过5美元。\n- 别名：「甲\n", ("malformed-field", 3)),
        ("## A\nThe **x fee** is at most USD 5.\n- actoin: stop\n", ("malformed-field", 3)),
        ("## A\nThe **x date** must be before 03/04/2027.\n", ("ambiguous-value", 2)),
        ("## A\nThe **x fee** must not exceed ¥500.\n", ("ambiguous-value", 2)),
        ("## A\nNever do that.\n- good: a\n- bad: b\n", ("no-trigger", 2)),
        ("## A\n不得这样做。\n- 正例：甲\n- 反例：乙\n", ("no-trigger", 2)),
        ("## A\nThe **lease** must match the register.\n", ("trigger-in-common-word", 2)),
    ],
)  # fmt: skip
def test_diagnostic(body: str, expected: tuple[str, int]) -> None:
    assert codes(body) == [expected]


@pytest.mark.parametrize(
    ("head", "line", "about"),
    [
        ("# T\n", 1, "front matter"),
        ("---\ndomain: x\nlanguages: [en]\n# T\n", 1, "front matter"),
        ("---\ndomain: x\nlanguages: [de]\n---\n", 3, "de"),
        ("---\ndomain: x\nlanguages: [en\n---\n", 3, ""),
        ("---\ndomain: x\nlangauges: [en]\n---\n", 3, "langauges"),
        ("---\ndomain: x\nlanguages:\n  - en\n  - fr\n---\n", 5, "fr"),
        ("---\ndomain: x\nlanguages: []\n---\n", 3, "languages"),
        ("---\ndomain:\nlanguages: [en]\n---\n", 2, "domain"),
        ("---\n---\n", 1, "front matter"),
    ],
)
def test_bad_front_matter(head: str, line: int, about: str) -> None:
    got = check_text(head + "\n## A\nThe **x fee** is at most USD 5.\n").diagnostics
    assert [(d.code, d.line) for d in got] == [("bad-front-matter", line)], got
    assert about in got[0].message


@pytest.mark.parametrize(
    "body",
    [
        "## A\nThe **x fee** must be at least USD 5. The **x fee** must not exceed USD 9.\n",
        "## A\nFor students, the **x fee** is at most USD 5.\n\n## B\nFor teachers, the **x fee** is at most USD 9.\n",
        "## A\nThe **x fee** must not exceed 5% of the price. The **x fee** must not exceed USD 9.\n",
        "## A\nThe lease prevails over the flyer. The flyer prevails over the website.\n",
        '## A\nThe **x fee** is at most USD 5.\n- good: "The x fee is USD 4, the deposit USD 90."\n',
        "## A\n<!-- a note -->\nThe **x fee** is at most USD 5.\n",
        "## A\nThe **x fee** is at most USD 5, unless the **late charge** is due. The **late charge** must match the contract.\n",
    ],
)
def test_clean_file_has_no_diagnostics(body: str) -> None:
    assert codes(body) == []


def test_term_that_a_tokenizer_cannot_produce() -> None:
    class Ascii:
        unk_token_id = 0

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            return [ord(c) if c.isascii() else 0 for c in text]

        def decode(self, ids: list[int]) -> str:
            return "".join(map(chr, ids))

    body = HEAD + '## A\nThe **x fee** is at most USD 5.\n- also: "手续费"\n'
    got = check_text(body, "rules.md", Ascii()).diagnostics
    assert [(d.code, d.severity) for d in got] == [("untokenizable-term", "warning")]
    assert "手续费" in got[0].message


def test_diagnostic_is_printed_as_a_compiler_prints_it() -> None:
    text = HEAD + "## A\n**生效日期**须与合同一致。请注意日期。\n"
    (diagnostic,) = check_text(text, "r.md").diagnostics
    place, line, caret, advice = format_diagnostic(diagnostic, text).splitlines()
    assert place.startswith("r.md:8:16: error: ") and place.endswith("[unreadable-sentence]")
    assert "请注意日期" in line and caret.strip() == "^" and "=" in advice


def test_say_back_is_in_the_language_of_the_rule() -> None:
    (english,) = read_norms(
        ["The **notice period** must not exceed thirty (30) days, unless the tenant agrees."]
    )
    assert (
        say_back(english)
        == "The notice period (duration) must be at most 30 days, except: the tenant agrees."
    )
    (chinese,) = read_norms(["**违约金**不得超过合同总额的30%。"])
    assert say_back(chinese) == "违约金须不超过合同总额的30%。"


# --- broken input ---------------------------------------------------------------------------------


def test_sizes_are_bounded() -> None:
    with pytest.raises(ZerolayerError, match="1 MB"):
        check_text("x" * 1_000_001)
    with pytest.raises(ZerolayerError, match="10,000 characters"):
        checked("## Long\n" + "Never guess. " * 1000)


@pytest.mark.parametrize(
    "piece",
    [
        "the **x** and ",
        "no, ",
        "(“",
        "不得",
        "的，",
        "when ",
        "except ",
        "**",
        "a prevails over ",
        "甲优先于",
        "时，",
        "为",
        "1. ",
        '"',
        "at least 5 days of ",
        "乙、",
        "must not ",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    for text in (piece * 400, ". Then ".join([(piece * 800)[:700]] * 12)):
        start = time.perf_counter()
        checked("## A\n" + text[:9000] + "\n")
        assert time.perf_counter() - start < 5


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *list('ab 0123.,;:-#>*"“”「」（()\n是不得超过的须，。时'),
                "must not exceed ",
                "unless ",
                "## ",
                "- also: ",
            ]
        ),
        max_size=120,
    ).map("".join)
)
def test_any_text_is_read_without_a_crash(text: str) -> None:
    for source in (HEAD + "## A\n" + text, text):
        result = check_text(source)
        for reading in result.readings:
            say_back(reading)
            json.dumps(reading.to_json())
        for diagnostic in result.diagnostics:
            assert 1 <= diagnostic.line <= source.count("\n") + 1
            format_diagnostic(diagnostic, source)


def test_command_line(tmp_path: Path) -> None:
    run = CliRunner()
    path = tmp_path / "rules.md"
    path.write_text(HEAD + "## A\nThe **x fee** is at most USD 5.\n", "utf-8")
    result = run.invoke(check, [str(path), "--json"])
    assert result.exit_code == 0
    printed = json.loads(result.output)
    assert printed["diagnostics"] == [] and printed["readings"][0]["operator"] == "<="
    path.write_text(HEAD + "## A\nNever guess the weight.\n", "utf-8")
    assert run.invoke(check, [str(path)]).exit_code == 0
    assert run.invoke(check, [str(path), "--strict"]).exit_code == 1
    path.write_text(HEAD + "## A\nBe nice.\n", "utf-8")
    assert run.invoke(check, [str(path)]).exit_code == 1
    path.write_bytes(b"\xff\xfe\x00")
    for unreadable in (path, tmp_path / "none.md"):
        assert isinstance(run.invoke(check, [str(unreadable)]).exception, ZerolayerError)
