"""`ska-build explain`: everything about one rule in one place."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import click

from ska_builder.commands.check import load_tokenizer
from ska_builder.language import say_back
from ska_builder.rules import checked_rules, slots_of, triggers_of
from zerolayer.errors import ZerolayerError

CARRIERS_SHOWN = 3


@click.command()
@click.argument("rules", type=click.Path(path_type=Path))
@click.argument("rule")
@click.option("--model", metavar="M", help="Show how this model's tokenizer cuts the triggers.")
@click.option(
    "--pack", "pack_path", type=click.Path(path_type=Path), help="Show what was made of the rule."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(
    rules: Path, rule: str, model: str | None, pack_path: Path | None, as_json: bool
) -> None:
    """Show how RULE, a heading of RULES, is read, where it triggers, and what was made of it.

    \b
    Example:
      ska-build explain rules.md Payment --model smollm2 --pack pack.safetensors
    """
    checked = checked_rules(rules)
    found = next((r for r in checked.rules if r.heading == rule), None)
    if found is None:
        headings = [r.heading for r in checked.rules]
        near = difflib.get_close_matches(rule, headings, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(headings)}"
        raise ZerolayerError(f"{rules} has no rule {rule!r}; {hint}")
    readings = [r for r in checked.readings if r.rule == rule]
    triggers = [p for t in triggers_of(readings, slots_of(readings)) for p in t["phrases"]]
    tokenizer = load_tokenizer(model) if model else None
    told: dict[str, Any] = {
        "rule": rule,
        "line": found.line,
        "source": found.quote,
        "prose": found.prose,
        "readings": [{**r.to_json(), "said": say_back(r)} for r in readings],
        "triggers": [
            {
                "phrase": phrase,
                "tokens": _tokens(tokenizer, " " + phrase) if tokenizer is not None else None,
            }
            for phrase in triggers
        ],
        "contrast": {"good": found.good, "bad": found.bad, "carriers": _carriers(readings)},
        "made": _made(pack_path, rule) if pack_path else None,
    }
    if as_json:
        click.echo(json.dumps(told, ensure_ascii=False, indent=2))
        return
    click.echo(f"{rule} ({rules}:{found.line})")
    if found.quote:
        click.echo(f"  from: {found.quote}")
    for reading in told["readings"]:
        click.echo(f"  {reading['kind']}: {reading['said']}")
    click.echo("  a decision point where a text says:" if triggers else "  no trigger of its own")
    for trigger in told["triggers"]:
        tokens = f"   [{'|'.join(trigger['tokens'])}]" if trigger["tokens"] else ""
        click.echo(f"    {trigger['phrase']}{tokens}")
    click.echo("  it learns from:")
    for sign, sentences in (("+", found.good), ("-", found.bad)):
        for sentence in sentences:
            click.echo(f"    {sign} {sentence}")
    for sentence in told["contrast"]["carriers"]:
        click.echo(f"    ~ {sentence}")
    for made in told["made"] or ():
        layers = f" in {', '.join(made['layers'])}" if made.get("layers") else ""
        click.echo(
            f"  anchors: {made['anchors']}{layers}" + (made["reason"] and f"; {made['reason']}")
        )
        for point in made.get("curve", ()):
            click.echo(f"    gain {point['gain']:g}: neutral KL {point['kl']:.4f} nats per token")


def _tokens(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer.decode([i]) for i in tokenizer(text, add_special_tokens=False).input_ids]


def _carriers(readings: list[Any]) -> list[str]:
    """Some of the sentences that teach a key where the rule's subject is spoken of."""
    from ska_builder.anchors.rule import carriers, subject

    shown = []
    for reading in readings:
        name = subject(reading)
        if name and reading.kind != "precedence":
            made = carriers(reading.language)["train"][:CARRIERS_SHOWN]
            shown += [carrier.format(name=name) for carrier in made]
    return shown


def _made(path: Path, rule: str) -> list[dict[str, Any]]:
    from zerolayer.pack import Pack

    made = [m for m in Pack.load(path).made if m.get("rule") == rule]
    if not made:
        raise ZerolayerError(f"pack {path} was built without the rule {rule!r}; build it again")
    return made
