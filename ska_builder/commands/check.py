"""`ska-build check`: what a rules file says, and what is wrong in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from ska_builder.language import format_diagnostic, say_back
from ska_builder.rules import read_rules


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
    checked = read_rules(Path(rules), load_tokenizer(model) if model else None)
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
            click.echo(format_diagnostic(diagnostic, checked.text), err=True)
    warnings = len(checked.diagnostics) - len(checked.errors)
    if not as_json:
        click.echo(
            f"{len(checked.readings)} norms, {len(checked.errors)} errors, {warnings} warnings",
            err=True,
        )
    sys.exit(1 if checked.errors or (strict and warnings) else 0)
