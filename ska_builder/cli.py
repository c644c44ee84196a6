"""The command `ska-build`: new, check, explain, diff, build, heed, export."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import click

from ska_builder.commands.check import check
from ska_builder.commands.diff import diff
from ska_builder.commands.explain import explain
from ska_builder.commands.export import export
from ska_builder.commands.new import new
from zerolayer.console import DTYPES, progress_bar, run
from zerolayer.errors import ZerolayerError


class DefaultBuild(click.Group):
    """`ska-build rules.md ...` is `ska-build build rules.md ...`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["build", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=DefaultBuild, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="zerolayer")
def cli() -> None:
    """Compile rules written in plain language for a language model.

    \b
    Example:
      ska-build new rules.md
      ska-build check rules.md
      ska-build rules.md --model smollm2 -o pack.safetensors
    """


for command in (new, check, explain, diff, export):
    cli.add_command(command)


@cli.command()
@click.argument("rules", type=click.Path(path_type=Path))
@click.option("--model", "name", default="smollm2", show_default=True)
@click.option("--dtype", type=DTYPES, default="float32", show_default=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option(
    "--no-anchors", is_flag=True, help="Build slots and triggers alone, without anchors and probes."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON.")
def build(
    rules: Path, name: str, dtype: str, output: Path, no_anchors: bool, as_json: bool
) -> None:
    """Compile RULES for a model into a pack."""
    import torch

    from ska_builder.build import build as compile_rules
    from ska_builder.packs import shipped_heed
    from ska_builder.rules import checked_rules
    from zerolayer.models import load_model

    if not output.parent.is_dir():
        raise ZerolayerError(f"cannot write {output}: there is no folder {output.parent}")
    checked = checked_rules(rules)
    model, tokenizer = load_model(name, dtype=getattr(torch, dtype))
    with progress_bar() as bar:
        task = bar.add_task("building", total=None)

        def say(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        pack = compile_rules(
            checked,
            model,
            tokenizer,
            None if no_anchors else shipped_heed(name, model),
            with_anchors=not no_anchors,
            progress=say,
        )
    pack.save(output)
    if as_json:
        click.echo(
            json.dumps(
                {"pack": str(output), "made": pack.made, "probes": pack.probes}, ensure_ascii=False
            )
        )
        return
    size = output.stat().st_size / 1e6
    click.echo(f"{output}: {len(pack.readings)} readings, {len(pack.slots)} slots, {size:.2f} MB")
    for record in pack.probes:
        said = record["reason"] or f"made, F1 on held-out wording {record['test_f1']:.2f}"
        click.echo(f"{rules}:{record['line']}: probe of {record['rule']}: {said}")


@cli.command()
@click.option("--model", "name", default="smollm2", show_default=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option("--steps", default=260, show_default=True, type=click.IntRange(1, 100_000))
@click.option(
    "--pairs",
    default=8,
    show_default=True,
    type=click.IntRange(1, 4096),
    help="Contrast pairs per step.",
)
@click.option("--anchors", default=4, show_default=True, type=click.IntRange(1, 64))
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--neutral",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder with text on which the budget is measured; else a part of the shipped text.",
)
@click.option(
    "--budget",
    default=0.04,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    help="Neutral KL that the anchors may cost, nats per token.",
)
@click.option("--log", type=click.Path(path_type=Path), help="Write one JSON line per step.")
def heed(
    name: str,
    output: Path,
    steps: int,
    pairs: int,
    anchors: int,
    seed: int,
    folder: Path | None,
    budget: float,
    log: Path | None,
) -> None:
    """Train a model's heed anchors on the project's own contrast data; resumes after a kill.

    \b
    Example:
      ska-build heed --model smollm2 --neutral ~/texts -o heed.safetensors
    """
    from ska_builder.anchors.heed import (
        Settings,
        folder_windows,
        gate_rates,
        limit_strength,
        neutral_windows,
        train,
    )
    from ska_builder.contrast.pairs import generate_all, neutral_text
    from zerolayer.automaton import Vocabulary
    from zerolayer.models import fingerprint, load_model
    from zerolayer.pack import Pack

    if not output.parent.is_dir():
        raise ZerolayerError(f"cannot write {output}: there is no folder {output.parent}")
    model, tokenizer = load_model(name)
    settings = Settings(anchors=anchors, steps=steps, pairs=pairs, seed=seed)
    windows = neutral_windows(tokenizer, neutral_text(), settings.neutral_tokens)
    if folder:
        held = folder_windows(tokenizer, folder, settings.neutral_tokens)
        held = held[:: max(1, len(held) // 24)]
    else:
        windows, held = windows[:-4], windows[-4:]
    lines: list[dict[str, Any]] = []

    def note(entry: dict[str, Any]) -> None:
        lines.append(entry)
        if log:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    with progress_bar() as bar:
        seen = generate_all(seed, 4)
        sets = train(
            model,
            tokenizer,
            seen,
            windows,
            settings,
            checkpoint=output.with_name(output.name + ".checkpoint"),
            progress=lambda r: bar.track(r, description="heed anchors"),
            report=note,
        )
        bar.add_task("strength under the KL budget", total=None)
        sets, curve = limit_strength(model, sets, held, budget)
        trained = {(p.rule, p.context) for p in seen}
        fresh = [p for p in generate_all(seed + 1, 1) if (p.rule, p.context) not in trained]
        unseen = random.Random(seed).sample(fresh, 24)
        gates = gate_rates(model, tokenizer, sets, unseen, held)
    last = lines[-40:]  # none where a finished run was resumed
    Pack(
        model=fingerprint(model),
        tokenizer=Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size).fingerprint(),
        anchors=sets,
        calibration={
            "settings": vars(settings),
            "neutral_kl_by_strength": curve,
            "gate_rates": gates,
            "training": {k: sum(e[k] for e in last) / len(last) for k in ("loss", "kl", "right")}
            if last
            else {},
        },
        builder="ska-build heed 0.1",
    ).save(output)
    output.with_name(output.name + ".checkpoint").unlink(missing_ok=True)
    click.echo(f"{output}: {output.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    """Run the command line."""
    run(cli)
