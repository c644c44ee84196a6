"""What all command lines share: how errors end, how progress shows, common choices."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from zerolayer.errors import ZerolayerError

DTYPES = click.Choice(["float32", "bfloat16", "float16"])


def run(group: click.Group) -> None:
    """Run a click group with this project's habits for errors."""
    try:
        group(standalone_mode=False)
    except ZerolayerError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except BrokenPipeError:  # the reader of the output has seen enough
        sys.stderr.close()
        sys.exit(2)
    except OSError as error:
        click.echo(f"error: {error.filename or 'a file'}: {error.strerror or error}", err=True)
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)


def progress_bar() -> Progress:
    """A bar on stderr with the time that is left; nothing when stderr is no terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
