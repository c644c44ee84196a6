"""The command `zerolayer`: generate, check, eval, demo."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from zerolayer.commands.check import check
from zerolayer.console import DTYPES, progress_bar, run
from zerolayer.errors import ZerolayerError

SETS = click.Choice(
    ["conflicts", "contrast", "statements", "dialogues", "neutral", "probe", "cuad"]
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="zerolayer")
def cli() -> None:
    """Language models that keep to rules written in plain language.

    \b
    Example:
      ska-build build rules.md --model smollm2 -o pack.safetensors
      zerolayer generate --model smollm2 --pack pack.safetensors \\
          --source contract.md --ask "What is the payment period?"
    """


cli.add_command(check)


def main() -> None:
    """Run the command line; a wrong input ends in one sentence and exit code 2."""
    run(cli)


def _model(name: str, dtype: str) -> tuple[Any, Any]:
    import torch

    from zerolayer.models import load_model

    return load_model(name, dtype=getattr(torch, dtype))


@cli.command()
@click.option("--model", "name", default="smollm2", show_default=True, help="Model to load.")
@click.option("--dtype", type=DTYPES, default="float32", show_default=True)
@click.option("--pack", "pack_path", required=True, type=click.Path(path_type=Path))
@click.option("--source", "sources", multiple=True, type=click.Path(path_type=Path))
@click.option("--ask", required=True, help="The question.")
@click.option("--lead", default="", help="Beginning of the answer.")
@click.option("--max-tokens", default=96, show_default=True, type=click.IntRange(1, 4096))
@click.option("--temperature", default=0.0, show_default=True, type=click.FloatRange(0, 5))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option(
    "--conversation", "talk_path", type=click.Path(path_type=Path),
    help="File that keeps the turns; a follow-up goes on with it.",
)  # fmt: skip
@click.option(
    "--mode",
    type=click.Choice(["dds", "sfcl"]),
    default="dds",
    show_default=True,
    help="dds: the decision machine. sfcl: a check of every token instead, to compare or debug.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def generate(
    name: str,
    dtype: str,
    pack_path: Path,
    sources: tuple[Path, ...],
    ask: str,
    lead: str,
    max_tokens: int,
    temperature: float,
    seed: int,
    talk_path: Path | None,
    mode: str,
    as_json: bool,
) -> None:
    """Answer a question about sources, with a pack attached; decisions are marked.

    \b
    Example:
      zerolayer generate --pack pack.safetensors --source a.md --source b.md \\
          --ask "What is the payment period?" --conversation talk.json
      zerolayer generate --pack pack.safetensors --conversation talk.json \\
          --ask "And for public bodies?"
    """
    from zerolayer.attach import attach
    from zerolayer.engines.hf import Sampling, chat_prompt
    from zerolayer.engines.hf import generate as run_model
    from zerolayer.evaluation.answers import question_prompt, source_block
    from zerolayer.pack import Pack
    from zerolayer.runtime.session import Runtime
    from zerolayer.sfcl import SemanticCheck
    from zerolayer.sources import read_source
    from zerolayer.tables import event_table

    if not ask.strip():
        raise ZerolayerError("the question is empty; give one with --ask")
    documents = [read_source(path) for path in sources]
    pack = Pack.load(pack_path)
    talk = _conversation(talk_path, pack, documents) if talk_path is not None else None
    model, tokenizer = _model(name, dtype)
    runtime = Runtime(pack, model, tokenizer)
    if talk is None:
        prompt = chat_prompt(tokenizer, question_prompt((), source_block(documents), ask))
        session = runtime.session(documents, ask)
    else:
        session = runtime.session_of(talk.plans(ask))
        prompt = talk.prompt(tokenizer, source_block(talk.sources))
    show: Callable[[str], None] | None = None if as_json else _stream
    check = SemanticCheck(model, pack) if mode == "sfcl" else None
    with attach(model, pack), check or nullcontext():
        answer = run_model(
            model,
            tokenizer,
            prompt,
            session if check is None else None,
            lead=lead,
            max_new_tokens=max_tokens,
            sampling=Sampling(temperature=temperature, seed=seed),
            on_text=show,
        )
    if talk is not None and talk_path is not None:
        talk.record(answer.text)
        talk.save(talk_path)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "text": answer.text,
                    "finish_reason": answer.finish_reason,
                    "events": [e.to_json() for e in answer.events],
                    "tokens": len(answer.tokens),
                    "decision_tokens": answer.decision_tokens,
                    "seconds": round(answer.seconds, 3),
                    "decision_seconds": round(answer.decision_seconds, 6),
                    "sfcl": check.to_json() if check is not None else None,
                },
                ensure_ascii=False,
            )
        )
        return
    click.echo()
    if answer.events:
        Console(stderr=True).print(event_table(answer.events))
    if check is not None:
        told = check.to_json()
        click.echo(
            f"SFCL: {told['calls']} tokens checked in {told['layers']} norms, "
            f"{len(told['events'])} margins below {check.threshold:g}, {told['seconds']:.3f} s, "
            f"{told['history_bytes'] / 1e6:.1f} MB kept",
            err=True,
        )
    if answer.finish_reason == "stopped" and session is not None:
        click.echo(f"stopped: {session.stopped}", err=True)


def _conversation(path: Path, pack: Any, documents: list[Any]) -> Any:
    """The conversation in a file, or a new one."""
    from zerolayer.conversation import Conversation

    if not path.exists():
        return Conversation(pack, documents)
    talk = Conversation.load(path)
    if documents:
        raise ZerolayerError(f"{path} has its sources; leave --source out, or name a new file")
    if list(talk.rules.slots) != list(pack.slots):
        raise ZerolayerError(f"{path} was begun with other rules; name a new file")
    return talk


def _stream(text: str) -> None:
    click.echo(text, nl=False)
    sys.stdout.flush()


@cli.command(name="eval")
@click.argument("which", type=SETS)
@click.option("--data", required=True, type=click.Path(path_type=Path), help="Folder of the sets.")
@click.option("--model", "name", default="smollm2", show_default=True)
@click.option("--dtype", type=DTYPES, default="float32", show_default=True)
@click.option("--pack", "pack_path", type=click.Path(path_type=Path))
@click.option("--arms", default=None, help="Comma-separated; default: all but random.")
@click.option("--language", type=click.Choice(["en", "zh"]), default=None)
@click.option("--every", default=1, type=click.IntRange(1), help="Take every n-th group of items.")
@click.option("--json", "form", flag_value="json", help="Print one JSON object.")
@click.option("--markdown", "form", flag_value="markdown", help="Print a Markdown table.")
def evaluate(
    which: str,
    data: Path,
    name: str,
    dtype: str,
    pack_path: Path | None,
    arms: str | None,
    language: str | None,
    every: int,
    form: str | None,
) -> None:
    """Measure on an evaluation set, or on neutral text.

    conflicts, contrast, statements and dialogues are files in the folder --data; neutral takes
    the text files below it and compares perplexity without and with the pack; probe makes the
    probes of contrast's rules and reads its continuations with them; cuad reads the contracts of
    a folder with labels.jsonl and contracts/, with the shipped contract rules.
    """
    from zerolayer.evaluation.stats import read_items

    if which == "neutral":
        _print(_neutral(data, name, dtype, pack_path, every), form)
        return
    items = read_items(data, {"probe": "contrast", "cuad": "labels"}.get(which, which))
    if language:
        items = [i for i in items if i.get("language", "en") == language]
    if every > 1:
        items = _thin(items, every)
    if not items:
        raise ZerolayerError(f"no item of {which} is left to evaluate")
    if which == "statements":
        from zerolayer.evaluation import statements

        with progress_bar() as bar:
            task = bar.add_task("statements", total=len(items))
            figures = statements.evaluate(items, lambda n: bar.advance(task, n))
        _print({"set": which, "n": len(items), **figures}, form)
        return
    if which == "cuad":
        from ska_builder.packs import contract_slots
        from zerolayer.evaluation import cuad

        with progress_bar() as bar:
            task = bar.add_task("contracts", total=len(items))
            figures = cuad.evaluate(
                items, data / "contracts", contract_slots(), lambda n: bar.advance(task, n)
            )
        _print({"set": which, "n": len(items), **figures}, form)
        return
    if which == "probe":
        from ska_builder.contrast.statements import LEARNED
        from zerolayer.evaluation import probe

        items = [i for i in items if i["kind"] in LEARNED]
        model, tokenizer = _model(name, dtype)
        with progress_bar() as bar:
            task = bar.add_task("probe", total=len(items))
            figures = probe.evaluate(
                model, tokenizer, items, advance=lambda n: bar.advance(task, n)
            )
        _print({"set": which, "n": len(items), "model": name, "dtype": dtype, **figures}, form)
        return
    from zerolayer.evaluation import answers, contrast, dialogues

    allowed = {
        "contrast": contrast.ARMS,
        "conflicts": answers.ARMS,
        "dialogues": dialogues.ARMS,
    }[which]
    chosen = tuple(arms.split(",")) if arms else tuple(a for a in allowed if a != "random")
    unknown = [a for a in chosen if a not in allowed]
    if unknown:
        raise ZerolayerError(f"unknown arm {unknown[0]!r}; {which} has {', '.join(allowed)}")
    from zerolayer.pack import Pack

    pack = Pack.load(pack_path) if pack_path else None
    run_set = answers.conflicts if which == "conflicts" else dialogues.evaluate
    if set(chosen) == {"sources"}:
        figures = run_set(None, None, items, chosen, pack)
        _print({"set": which, "n": len(items), "arms": figures}, form)
        return
    model, tokenizer = _model(name, dtype)
    with progress_bar() as bar:
        if which == "contrast":
            result = _contrast(model, tokenizer, name, items, chosen, pack, bar)
        else:
            pack = pack or _heed(name, model)
            if pack is None and {"anchors", "all"} & set(chosen):
                raise ZerolayerError(_no_heed("anchors and all", name))
            task = bar.add_task(which, total=len(items) * len(chosen))
            result = run_set(model, tokenizer, items, chosen, pack, lambda n: bar.advance(task, n))
    _print({"set": which, "n": len(items), "model": name, "dtype": dtype, "arms": result}, form)


def _neutral(data: Path, name: str, dtype: str, pack_path: Path | None, every: int) -> Any:
    from zerolayer.evaluation import neutral
    from zerolayer.pack import Pack

    model, tokenizer = _model(name, dtype)
    pack = Pack.load(pack_path) if pack_path else _heed(name, model)
    if pack is None:
        raise ZerolayerError(f"no pack ships with the project for {name}; give one with --pack")
    chosen = neutral.windows(data, tokenizer, per_document=2)[::every]
    with progress_bar() as bar:
        task = bar.add_task("neutral", total=2 * len(chosen))
        figures = neutral.evaluate(model, pack, chosen, lambda n: bar.advance(task, n))
    return {"set": "neutral", "n": len(chosen), "model": name, "dtype": dtype, **figures}


def _thin(items: list[dict[str, Any]], every: int) -> list[dict[str, Any]]:
    """Every n-th counterbalance group (or item), whole."""
    groups = list(dict.fromkeys(i.get("counterbalance_group", i["id"]) for i in items))
    kept = set(groups[::every])
    return [i for i in items if i.get("counterbalance_group", i["id"]) in kept]


def _heed(name: str, model: Any) -> Any:
    from ska_builder.packs import shipped_heed

    return shipped_heed(name, model)


def _no_heed(arms: str, name: str) -> str:
    return (
        f"the arms {arms} need heed anchors for {name}; make them with "
        f"ska-build heed --model {name} -o heed.safetensors and give --pack, or name other --arms"
    )


def _contrast(
    model: Any,
    tokenizer: Any,
    name: str,
    items: list[dict[str, Any]],
    chosen: tuple[str, ...],
    pack: Any,
    bar: Progress,
) -> dict[str, Any]:
    from ska_builder.build import rule_packs
    from zerolayer.evaluation import contrast

    heed = pack or _heed(name, model)
    if heed is None and {"heed", "all", "random"} & set(chosen):
        raise ZerolayerError(_no_heed("heed, all and random", name))
    passes = sum(contrast.RANDOM_DRAWS if arm == "random" else 1 for arm in chosen) + 1
    task = bar.add_task("contrast", total=len(items) * passes)
    return contrast.evaluate(
        model,
        tokenizer,
        items,
        chosen,
        heed,
        rule_packs(model, tokenizer) if {"anchors", "all"} & set(chosen) else None,
        lambda n: bar.advance(task, n),
    )


def _print(result: dict[str, Any], form: str | None) -> None:
    from zerolayer.tables import figures_markdown, figures_table

    if form == "json":
        click.echo(json.dumps(result, ensure_ascii=False))
    elif form == "markdown":
        click.echo(figures_markdown(result))
    else:
        Console().print(figures_table(result))


@cli.command()
@click.option("--model", "name", default="smollm2", show_default=True)
def demo(name: str) -> None:
    """The main job on a real model: examples/contract, from rules to a guarded answer."""
    from zerolayer.demo import run_demo

    run_demo(name)
