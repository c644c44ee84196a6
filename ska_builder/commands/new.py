"""`ska-build new`: a commented rules file to begin with."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from zerolayer.errors import ZerolayerError


@click.command()
@click.argument("path", default="rules.md", type=click.Path(path_type=Path))
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
def new(path: Path, language: str) -> None:
    """Write a starter rules file with one rule of each kind to PATH; nothing is overwritten.

    \b
    Example:
      ska-build new rules.md
      ska-build new 规则.md --language zh
    """
    text = resources.files("ska_builder.language").joinpath(f"starter.{language}.md")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.read_text("utf-8"))
    except FileExistsError:
        raise ZerolayerError(f"{path} exists already; name another file") from None
    except FileNotFoundError:
        raise ZerolayerError(f"cannot write {path}: there is no folder {path.parent}") from None
    click.echo(f"{path}: six rules to change; read them back with ska-build check {path}")
