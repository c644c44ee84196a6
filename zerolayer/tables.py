"""Tables of what was made, decided and measured, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from zerolayer.decisions.events import DecisionEvent
from zerolayer.pack import Pack
from zerolayer.values import Value, renderings


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
    """An evaluation's figures as a table for the terminal."""
    titles, rows = figures_cells(result)
    table = Table(title=f"{result['set']}, {result['n']} items")
    for title in titles:
        table.add_column(title)
    for row in rows:
        table.add_row(*row)
    return table


def figures_markdown(result: dict[str, Any]) -> str:
    """The same figures as a Markdown table."""
    titles, rows = figures_cells(result)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def figures_cells(result: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Titles and rows: one per arm, or one in all where there are no arms.

    contrast gets a column for each kind of rule, the others one for each single figure.
    """
    arms: dict[str, dict[str, Any]] = result.get("arms") or {result["set"]: result}
    flat = {name: _single_figures(figures) for name, figures in arms.items()}
    titles = list(dict.fromkeys(k for figures in flat.values() for k in figures))
    rows = [[name, *(str(figures.get(t, "")) for t in titles)] for name, figures in flat.items()]
    return ["arm" if "arms" in result else "set", *titles], rows


def _single_figures(figures: dict[str, Any]) -> dict[str, Any]:
    if "by_kind" in figures:
        kinds = {k: f"{100 * v['accuracy']:.1f}" for k, v in figures["by_kind"].items()}
        low, high = figures["ci95"]
        cells = kinds | {
            "mean": f"{100 * figures['mean_over_kinds']:.1f}",
            "95 %": f"{100 * low:.1f}–{100 * high:.1f}",
        }
        if "against_prompt" in figures:
            paired = figures["against_prompt"]
            cells["fixed / broken"] = f"{paired['fixed']} / {paired['broken']}"
            cells["p"] = f"{paired['p']:.2g}"
        return cells
    if "draws" in figures:
        return {
            "mean": f"{100 * figures['mean_over_kinds']:.1f}",
            "best draw": f"{100 * figures['best_draw']:.1f}",
        }
    return {k: v for k, v in figures.items() if not isinstance(v, dict) and k != "set"}
