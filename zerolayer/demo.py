"""The demo: examples/contract, from rules to a guarded answer, shown on the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from zerolayer.decisions.events import DecisionEvent
from zerolayer.errors import ZerolayerError
from zerolayer.pack import Pack
from zerolayer.tables import event_table, made_table, pack_line

EXAMPLE = Path("examples/contract")
# What is asked, and how every answer begins.
QUESTIONS = (
    ("Within what time must the buyer pay an invoice?", "The payment period is"),
    ("Up to what sum is the supplier liable?", "The liability cap is"),
    ("What does the agreement say about pallets?", ""),
)


def run_demo(name: str) -> None:
    """Compile the example's rules for a model, ask questions, show what was decided.

    Raises:
        ZerolayerError: the example is not there (the demo runs in the project's root).
    """
    from ska_builder.build import cached_build
    from ska_builder.language import say_back
    from ska_builder.packs import shipped_heed
    from zerolayer.console import progress_bar
    from zerolayer.models import load_model
    from zerolayer.sources import read_source

    if not (EXAMPLE / "rules.md").is_file():
        raise ZerolayerError(f"no {EXAMPLE}/rules.md here; run the demo in the project's root")
    console = Console(width=None if Console().is_terminal else 110)
    began = time.perf_counter()
    with progress_bar() as bar:
        bar.add_task(f"loading {name}", total=None)
        model, tokenizer = load_model(name)
    loaded = time.perf_counter()
    with progress_bar() as bar:
        task = bar.add_task("compiling rules", total=None)
        pack, cached = cached_build(
            EXAMPLE / "rules.md",
            model,
            tokenizer,
            shipped_heed(name, model),
            lambda what, done, total: bar.update(
                task, description=what, completed=done, total=total
            ),
        )
    built = time.perf_counter()
    console.rule("How the rules were read")
    for reading in pack.readings:
        console.print(f"[bold]{reading.rule}[/] (line {reading.line}): {say_back(reading)}")
    console.rule("What was made of them")
    console.print(made_table(pack))
    console.print(pack_line(pack))
    sources = [read_source(p) for p in sorted(EXAMPLE.glob("*.md")) if p.name != "rules.md"]
    events = _ask(console, model, tokenizer, pack, sources)
    asked = time.perf_counter()
    console.rule("Decisions")
    console.print(event_table(events) if events else "none")
    console.rule("What it cost")
    console.print(
        f"model {loaded - began:.1f} s, rules {built - loaded:.1f} s"
        f"{' (from the cache)' if cached else ''}, answers {asked - built:.1f} s, "
        f"all {asked - began:.1f} s"
    )


def _ask(
    console: Console, model: Any, tokenizer: Any, pack: Pack, sources: Sequence[Any]
) -> list[DecisionEvent]:
    from zerolayer.attach import attach
    from zerolayer.console import progress_bar
    from zerolayer.engines.hf import chat_prompt, generate
    from zerolayer.evaluation.answers import question_prompt, source_block
    from zerolayer.runtime.session import Runtime

    table = Table(show_lines=True)
    for title in ("question", "without the pack", "with the pack"):
        table.add_column(title, ratio=1)
    runtime = Runtime(pack, model, tokenizer)
    events: list[DecisionEvent] = []
    spent = decided = 0.0
    thrown = tokens = 0
    with progress_bar() as bar:
        for question, lead in bar.track(QUESTIONS, description="answers"):
            prompt = chat_prompt(tokenizer, question_prompt((), source_block(sources), question))
            ends = ("\n",)
            plain = generate(model, tokenizer, prompt, lead=lead, max_new_tokens=32, stop=ends)
            session = runtime.session(sources, question)
            with attach(model, pack):
                guarded = generate(
                    model, tokenizer, prompt, session, lead=lead, max_new_tokens=32, stop=ends
                )
            table.add_row(question, plain.text.strip(), guarded.text.strip())
            events += guarded.events
            spent += guarded.seconds
            decided += guarded.decision_seconds
            thrown += guarded.decision_tokens
            tokens += len(guarded.tokens)
    console.rule("Answers")
    console.print(table)
    console.print(
        f"{tokens} tokens in {spent:.1f} s; decisions took {decided * 1e3:.1f} ms "
        f"({decided / spent:.1%}), {thrown} tokens were thrown away by repairs"
    )
    return events
