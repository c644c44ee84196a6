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
from zerolayer.values import Value, renderings

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
    from zerolayer.cli import progress_bar
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
    from zerolayer.cli import progress_bar
    from zerolayer.engines.hf import chat_prompt, generate
    from zerolayer.evaluation.answers import question_prompt, source_block
    from zerolayer.runtime.session import session_for

    table = Table(show_lines=True)
    for title in ("question", "without the pack", "with the pack"):
        table.add_column(title, ratio=1)
    events: list[DecisionEvent] = []
    spent = decided = 0.0
    thrown = tokens = 0
    with progress_bar() as bar:
        for question, lead in bar.track(QUESTIONS, description="answers"):
            prompt = chat_prompt(tokenizer, question_prompt((), source_block(sources), question))
            ends = ("\n",)
            plain = generate(model, tokenizer, prompt, lead=lead, max_new_tokens=32, stop=ends)
            session = session_for(pack, model, tokenizer, sources, question)
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


def made_table(pack: Pack) -> Table:
    """What was made of each rule: slot, trigger, action, anchors or why none."""
    table = Table()
    for title in ("rule", "kind", "slot or term", "action", "anchors"):
        table.add_column(title)
    made = {(m["rule"], m["line"]): m for m in pack.made}
    for reading in pack.readings:
        entry = made.get((reading.rule, reading.line), {})
        name = reading.slot.name if reading.slot else str(reading.details.get("term", ""))
        count = entry.get("anchors", 0)
        said = f"{count}, neutral KL {entry['kl']:.4f}" if count else entry.get("reason", "")
        table.add_row(reading.rule, reading.kind, name, reading.action or "default", said)
    return table


def pack_line(pack: Pack) -> str:
    """Sizes of the pack's parts."""
    heed = sum(int((a.rule < 0).sum()) for a in pack.anchors.values())
    own = sum(int((a.rule >= 0).sum()) for a in pack.anchors.values())
    arena = 0 if pack.automaton is None else pack.automaton.numel()
    weights = sum(
        t.numel() * t.element_size()
        for a in pack.anchors.values()
        for t in (a.keys, a.values, a.thresholds, a.gains)
    )
    return (
        f"pack: {own} rule anchors and {heed} heed anchors in {len(pack.anchors)} norms "
        f"({weights / 1e6:.2f} MB), automaton {arena / 1e3:.0f} kB, "
        f"{len(pack.triggers)} triggers"
    )


def event_table(events: Sequence[DecisionEvent]) -> Table:
    """Decisions as a table."""
    table = Table()
    for title in ("rule", "slot", "stated", "settled", "verdict", "source", "action", "µs"):
        table.add_column(title)
    for e in events:
        table.add_row(
            e.rule,
            e.slot,
            _shown(e.stated, e.slot),
            _shown(e.settled, e.slot) if e.settled is not None else "–",
            e.verdict,
            ", ".join(e.sources),
            e.action,
            str(e.microseconds),
        )
    return table


def _shown(value: Value, slot: str) -> str:
    language = "zh" if any("\u4e00" <= c <= "\u9fff" for c in slot) else "en"
    return renderings(value, language)[0]


def figures_table(result: dict[str, Any]) -> Table:
    """An evaluation's figures: a row per arm, or one row where there are none."""
    rows: dict[str, dict[str, Any]] = result.get("arms") or {result["set"]: result}
    flat = {
        name: {k: v for k, v in figures.items() if not isinstance(v, dict)}
        for name, figures in rows.items()
    }
    titles = list(dict.fromkeys(k for figures in flat.values() for k in figures))
    table = Table(title=f"{result['set']}, {result['n']} items")
    for title in ("arm", *titles):
        table.add_column(title)
    for name, figures in flat.items():
        table.add_row(name, *(str(figures.get(t, "")) for t in titles))
    return table
