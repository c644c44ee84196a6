"""Bad input ends in one sentence and exit code 2, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ska_builder.cli import cli as ska_build
from zerolayer import console
from zerolayer.cli import cli as zerolayer_cli
from zerolayer.pack import Pack


def run(group: Any, args: list[str], capsys: Any, monkeypatch: Any) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["command", *args])
    code = 0
    try:
        console.run(group)
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def call(capsys: Any, monkeypatch: Any) -> Any:
    return lambda group, *args: run(group, list(args), capsys, monkeypatch)


@pytest.fixture
def tiny(llama: Any, byte_level: Any, tmp_path: Path) -> Path:
    """The tiny model as a folder."""
    folder = tmp_path / "tiny"
    llama.save_pretrained(folder)
    byte_level.save_pretrained(folder)
    return folder


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.md"
    path.write_text(
        "---\ndomain: test\nlanguages: [en]\n---\n# T\n\n## Payment\n"
        "The **payment period** must match the sources.\n- type: duration\n- action: enforce\n"
    )
    return path


def test_unknown_model(call: Any, rules: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    for name in ("nonesuch", "./nowhere", str(tmp_path)):
        code, _, err = call(ska_build, str(rules), "--model", name, "-o", str(out))
        assert code == 2 and "model" in err and "Traceback" not in err and not out.exists()


def test_rules_with_errors(call: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "bad.md", tmp_path / "p.safetensors"
    path.write_text("---\ndomain: t\nlanguages: [en]\n---\n# T\n\n## A\nBe careful.\n")
    code, _, err = call(ska_build, str(path), "--model", "smollm2", "-o", str(out))
    assert code == 2 and "unreadable-sentence" in err and "bad.md:8" in err and not out.exists()
    path.write_bytes(b"\xff\xfe\x00")
    code, _, err = call(ska_build, str(path), "--model", "smollm2", "-o", str(out))
    assert code == 2 and "not UTF-8" in err
    code, _, err = call(ska_build, str(tmp_path / "none.md"), "-o", str(out))
    assert code == 2 and "none.md" in err


def test_build_and_generate(call: Any, tiny: Path, rules: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    code, said, err = call(
        ska_build, str(rules), "--model", str(tiny), "-o", str(out), "--no-anchors"
    )
    assert code == 0 and "1 readings" in said, err
    assert Pack.load(out).slots[0].name == "payment period"
    source = tmp_path / "contract.md"
    source.write_text("---\nkind: contract\n---\nThe payment period is 30 days.\n")
    asked = ("generate", "--model", str(tiny), "--pack", str(out), "--ask", "When?", "--max-tokens", "12")  # fmt: skip  # noqa: E501
    code, said, err = call(
        zerolayer_cli, *asked, "--source", str(source), "--lead", "The payment period:", "--json"
    )
    assert code == 0, err
    answer = json.loads(said)
    assert answer["text"].split(":")[1].lstrip(" *").startswith(("30 days", "thirty"))
    assert answer["events"][0]["verdict"] == "consistent"
    assert answer["events"][0]["sources"] == ["contract.md"]

    talk = ("--lead", "The payment period:", "--json", "--conversation", str(tmp_path / "t.json"))
    code, _, err = call(zerolayer_cli, *asked, "--source", str(source), *talk)
    assert code == 0, err
    code, said, err = call(zerolayer_cli, *asked, *talk)
    assert code == 0 and json.loads(said)["events"][0]["sources"] == ["contract.md"], err
    turns = json.loads((tmp_path / "t.json").read_text("utf-8"))["turns"]
    assert [t["said"][0]["speaker"] for t in turns] == ["answer", "answer"]
    code, _, err = call(zerolayer_cli, *asked, "--source", str(source), *talk)
    assert code == 2 and "has its sources" in err

    source.write_text("")
    code, _, err = call(zerolayer_cli, *asked, "--source", str(source))
    assert code == 2 and "is empty" in err
    source.write_bytes(b"\xff\xff")
    code, _, err = call(zerolayer_cli, *asked, "--source", str(source))
    assert code == 2 and "not UTF-8" in err
    source.write_text("word " * 3000)
    code, _, err = call(zerolayer_cli, *asked, "--source", str(source))
    assert code == 2 and "context of 256" in err
    code, _, err = call(zerolayer_cli, *asked, "--source", str(tmp_path / "no.md"))
    assert code == 2 and "cannot be read" in err
    out.write_bytes(out.read_bytes()[:500])
    code, _, err = call(zerolayer_cli, *asked)
    assert code == 2 and "truncated or damaged" in err


def test_pack_of_another_tokenizer(
    call: Any, tiny: Path, byte_fallback: Any, rules: Path, tmp_path: Path
) -> None:
    out = tmp_path / "p.safetensors"
    assert call(ska_build, str(rules), "--model", str(tiny), "-o", str(out), "--no-anchors")[0] == 0
    byte_fallback.save_pretrained(tiny)
    code, _, err = call(
        zerolayer_cli, "generate", "--model", str(tiny), "--pack", str(out), "--ask", "When?"
    )
    assert code == 2 and "another tokenizer" in err


def test_eval_input(call: Any, tmp_path: Path) -> None:
    code, _, err = call(zerolayer_cli, "eval", "statements", "--data", str(tmp_path))
    assert code == 2 and "statements.jsonl" in err
    (tmp_path / "statements.jsonl").write_text("[1]\n")
    code, _, err = call(zerolayer_cli, "eval", "statements", "--data", str(tmp_path))
    assert code == 2 and "statements.jsonl:1" in err
    code, _, err = call(zerolayer_cli, "eval", "nonesuch", "--data", str(tmp_path))
    assert code == 2 and "nonesuch" in err


def test_help_names_an_example(call: Any) -> None:
    for group in (zerolayer_cli, ska_build):
        code, out, _ = call(group, "--help")
        assert code == 0 and "Example" in out
