"""`ska-build check`: what a rules file says, and what is wrong in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from ska_builder.language import check_text, format_diagnostic, say_back
from ska_builder.language.document import MAX_FILE
from zerolayer.errors import ZerolayerError


def read_text(path: str) -> str:
    """The text of a rules file, or of standard input for "-".

    Raises:
        ZerolayerError: the file cannot be read, is larger than 1 MB, or is not UTF-8.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ZerolayerError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_FILE:
        raise ZerolayerError(f"{path} is larger than 1 MB; split it into several rules files")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ZerolayerError(
            f"{path} is not UTF-8 (byte {error.start} is {data[error.start]:#04x}); "
            "save it as UTF-8"
        ) from error


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model that stands under that name or path."""
    from zerolayer.models import load_model

    return load_model(model)[1]


@click.command()
@click.argument("rules", metavar="RULES.md")
@click.option("--json", "as_json", is_flag=True, help="Print readings and diagnostics as JSON.")
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@click.option("--model", metavar="M", help="Also warn of terms that this model cannot produce.")
def check(rules: str, as_json: bool, strict: bool, model: str | None) -> None:
    """Read RULES.md and say back what it was understood to say.

    Exit code 0 where it is clean or has warnings only, 1 on errors (with --strict, on warnings
    too), 2 where it cannot be read.

    \b
    Example:
      ska-build check rules.md
      ska-build check rules.md --json --strict
    """
    try:
        text = read_text(rules)
        tokenizer = load_tokenizer(model) if model else None
        checked = check_text(text, rules, tokenizer)
    except ZerolayerError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if as_json:
        shown = {
            "readings": [r.to_json() for r in checked.readings],
            "diagnostics": [d.to_json() for d in checked.diagnostics],
        }
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        heading = None
        for reading in checked.readings:
            if reading.rule != heading:
                click.echo(f"{reading.rule}")
                heading = reading.rule
            click.echo(f"  {reading.line:>4}  {reading.kind}: {say_back(reading)}")
        for diagnostic in checked.diagnostics:
            click.echo(format_diagnostic(diagnostic, text), err=True)
    warnings = len(checked.diagnostics) - len(checked.errors)
    if not as_json:
        click.echo(
            f"{len(checked.readings)} norms, {len(checked.errors)} errors, {warnings} warnings",
            err=True,
        )
    sys.exit(1 if checked.errors or (strict and warnings) else 0)
