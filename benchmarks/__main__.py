"""python -m benchmarks: one verb per benchmark, and `report` for all of them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from zerolayer.errors import ZerolayerError

EXAMPLE = "\n\nExample: python -m benchmarks report --size quick --out out/benchmarks"


@click.group(help=(__doc__ or "") + EXAMPLE)
def main() -> None:
    pass


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """What every verb takes; a ZerolayerError becomes one sentence and exit code 2."""

    @functools.wraps(command)
    def run(size: str, model: str, threads: int, **rest: Any) -> None:
        import torch

        from benchmarks.measure import SIZES

        torch.set_num_threads(threads)
        try:
            command(SIZES[size], model, **rest)
        except ZerolayerError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)

    for option in (
        click.option(
            "--size",
            type=click.Choice(["tiny", "quick", "full"]),
            default="quick",
            show_default=True,
            help="How much is measured; only full is worth quoting.",
        ),
        click.option("--model", default="smollm2", show_default=True, help="Name or folder."),
        click.option(
            "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of torch."
        ),
    ):
        run = option(run)
    return run


@main.command()
@_options
def scan(size: Any, model: str) -> None:
    """Finding triggers, beside peers."""
    _show(_scan(size, model))


@main.command()
@_options
def watch(size: Any, model: str) -> None:
    """What watching costs where nothing is decided."""
    _show(_watch(size, model))


@main.command()
@_options
def decision(size: Any, model: str) -> None:
    """What one decision costs, to its worst case."""
    _show(_decision(size, model).figures)


@main.command()
@_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for figures.csv (appended to) and the plots.",
)
def report(size: Any, model: str, out: Path) -> None:
    """All benchmarks: tables, a CSV and plots."""
    from benchmarks.peers import importable
    from benchmarks.record import append_csv

    out.mkdir(parents=True, exist_ok=True)
    figures = []
    decided = _decision(size, model)
    for part in (decided.figures, _watch(size, model), _scan(size, model)):
        _show(part)
        append_csv(part, out / "figures.csv")
        figures += part
    _show([f for f in figures if f.limit is not None], "What must be reached")
    if importable("matplotlib"):
        from benchmarks.plots import draw

        for path in draw(figures, decided.samples, out):
            click.echo(f"drawn: {path}", err=True)


@main.command()
@click.option("--model", default="smollm2", show_default=True, help="Name or folder.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--contracts", "count", default=12, show_default=True, type=click.IntRange(1))
@click.option("--contexts", default="256,512,1024,2048", show_default=True)
@click.option("--steps", default=16, show_default=True, type=click.IntRange(1))
@click.option("--threads", default=2, show_default=True, type=click.IntRange(1), help="Of torch.")
def sfcl(
    model: str, data: Path, out: Path, count: int, contexts: str, steps: int, threads: int
) -> None:
    """The every-token check against the decision machine, on real contracts."""
    import torch
    from rich.console import Console

    import ska_builder.packs
    from benchmarks import sfcl
    from benchmarks.record import append_csv, device
    from ska_builder.build import build
    from ska_builder.packs import shipped_heed
    from ska_builder.rules import checked_rules
    from zerolayer.console import progress_bar
    from zerolayer.models import load_model

    torch.set_num_threads(threads)
    loaded, tokenizer = load_model(model)
    rules = Path(ska_builder.packs.__file__).parent / "contracts.rules.md"
    heed = shipped_heed(model, loaded)
    pack = build(checked_rules(rules), loaded, tokenizer, heed, with_anchors=False)
    texts = [p.read_text("utf-8") for p in sfcl.contracts(data)[:count]]
    lengths = sorted(int(c) for c in contexts.split(","))
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as bar:
        task = bar.add_task("contracts", total=len(texts))
        points, counts = sfcl.run(
            loaded, tokenizer, pack, texts, lengths, steps, lambda n: bar.advance(task, n)
        )
    console = Console(width=120)
    console.print(sfcl.summary(points))
    console.print(
        f"{device()}; {len(texts)} contracts of {counts.tokens:,} tokens: "
        f"SFCL checks {counts.tokens:,} times, the decision machine decides {counts.decisions:,} "
        f"times; the check's time grows with context to the power {sfcl.exponent(points):.2f}"
    )
    append_csv(sfcl.figures(points), out / "figures.csv")
    sfcl.draw(points, out / "sfcl.png")


def _scan(size: Any, name: str) -> Any:
    from benchmarks import scan
    from zerolayer.models import load_model

    model, tokenizer = load_model(name)
    return scan.run(tokenizer, model.config.vocab_size, size)


def _watch(size: Any, name: str) -> Any:
    from benchmarks import watch
    from zerolayer.models import load_model

    return watch.run(*load_model(name), size)


def _decision(size: Any, name: str) -> Any:
    from benchmarks import decision
    from zerolayer.models import load_model

    model, tokenizer = load_model(name)
    return decision.run(tokenizer, model.config.vocab_size, size)


def _show(figures: Sequence[Any], title: str = "") -> None:
    from rich.console import Console

    from benchmarks.record import device, table
    from benchmarks.scan import CAPTION

    console = Console() if Console().is_terminal else Console(width=150)
    name = title or f"{figures[0].benchmark}, on {device()}"
    caption = CAPTION if any(f.benchmark == "scan" for f in figures) else ""
    console.print(table(figures, name, caption))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
