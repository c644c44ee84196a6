"""From a rules file to a pack: readings, slots, triggers, anchors, probes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ska_builder import probe
from ska_builder.anchors import rule as rule_anchors
from ska_builder.anchors.heed import neutral_windows
from ska_builder.contrast.pairs import neutral_text
from ska_builder.language import Checked, read_norms
from ska_builder.rules import checked_rules, slots_of, triggers_of
from zerolayer import automaton
from zerolayer.anchors import join
from zerolayer.arena_cache import cached_triggers
from zerolayer.attach import attach
from zerolayer.models import cache_dir, fingerprint
from zerolayer.pack import Pack

BUILDER = "ska-build 0.2"
NEUTRAL_ROWS, NEUTRAL_TOKENS = 8, 128


def build(
    checked: Checked,
    model: Any,
    tokenizer: Any,
    heed: Pack | None = None,
    with_anchors: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> Pack:
    """Compile checked rules for a model.

    Args:
        heed: a pack with the model's heed anchors, built upon where given.
        with_anchors: False builds the tables of the decision machine alone, without anchors and
            without probes: nothing that runs the model.
        progress: called with (what, done, total).
    """
    say = progress or (lambda what, done, total: None)
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)
    slots = slots_of(checked.readings)
    made = _anchors(checked, model, tokenizer, say) if with_anchors else []
    anchors = rule_anchors.fuse(made)
    if heed is not None:
        for path, base in heed.anchors.items():
            joined = join(base, anchors.get(path))
            assert joined is not None
            anchors[path] = joined
    print_of = fingerprint(model)
    probes: list[probe.MadeProbe] = []
    if with_anchors:
        # A probe reads the hidden states of the model as it will run, with its anchors.
        with attach(model, Pack(print_of, vocabulary.fingerprint(), anchors)):
            probes = _probes(checked, model, tokenizer, say)
    heads = [p.head for p in probes if p.head is not None]
    triggers = triggers_of(checked.readings, slots)
    triggers += [
        {"rule": p.record["rule"], "line": p.record["line"], "phrases": p.record["phrases"]}
        for p in probes
        if p.head is not None
    ]
    say("triggers", 0, 1)
    arena = cached_triggers([t["phrases"] for t in triggers], vocabulary) if triggers else None
    return Pack(
        model=print_of,
        tokenizer=vocabulary.fingerprint(),
        anchors=anchors,
        automaton=arena,
        probe=torch.stack(heads) if heads else None,
        probes=[p.record for p in probes],
        readings=list(checked.readings),
        slots=slots,
        triggers=triggers,
        made=[
            {
                "rule": m.rule,
                "line": m.line,
                "anchors": sum(a.count for a in m.anchors.values()),
                "reason": m.reason,
                **m.record,
            }
            for m in made
        ],
        source=checked.text,
        calibration={"heed": heed.calibration} if heed is not None else {},
        builder=BUILDER,
        signed=[{"rules_sha256": hashlib.sha256(checked.text.encode()).hexdigest()}],
    )


def _anchors(
    checked: Checked, model: Any, tokenizer: Any, say: Callable[[str, int, int], None]
) -> list[rule_anchors.Made]:
    plain = neutral_capture(model, tokenizer)
    prose = {r.heading: r.prose for r in checked.rules}
    made = []
    for i, reading in enumerate(checked.readings):
        say(f"anchors: {reading.rule}", i, len(checked.readings))
        made.append(rule_anchors.make(model, tokenizer, reading, prose[reading.rule], plain, i))
    say("anchors", len(checked.readings), len(checked.readings))
    return made


def _probes(
    checked: Checked, model: Any, tokenizer: Any, say: Callable[[str, int, int], None]
) -> list[probe.MadeProbe]:
    rules = {r.heading: r for r in checked.rules}
    made = []
    for i, reading in enumerate(checked.readings):
        say(f"probes: {reading.rule}", i, len(checked.readings))
        own = rules[reading.rule]
        made.append(probe.make(model, tokenizer, reading, own.good, own.bad))
    return made


def neutral_capture(model: Any, tokenizer: Any) -> rule_anchors.Neutral:
    """The project's neutral text, captured once for a model."""
    windows: Tensor = neutral_windows(tokenizer, neutral_text(), NEUTRAL_TOKENS)
    with torch.no_grad():
        return rule_anchors.neutral(model, windows[:NEUTRAL_ROWS])


def cached_build(
    path: Path,
    model: Any,
    tokenizer: Any,
    heed: Pack | None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Pack, bool]:
    """Build, or take the pack of the same rules, model and builder from the user's cache."""
    checked = checked_rules(path)
    stamp = f"{BUILDER}|{checked.text}|{fingerprint(model)}|{heed.calibration if heed else None}"
    target = (
        cache_dir() / "packs" / f"{hashlib.sha256(stamp.encode()).hexdigest()[:24]}.safetensors"
    )
    if target.is_file():
        return Pack.load(target), True
    pack = build(checked, model, tokenizer, heed, progress=progress)
    target.parent.mkdir(parents=True, exist_ok=True)
    pack.save(target)
    return pack, False


def rule_packs(model: Any, tokenizer: Any) -> Callable[[str], Pack]:
    """Makes packs with the anchors of single rules, general text captured once."""
    plain = neutral_capture(model, tokenizer)
    print_of = fingerprint(model)
    vocabulary = automaton.Vocabulary.from_tokenizer(tokenizer, model.config.vocab_size)

    def make(rule: str) -> Pack:
        made = [
            rule_anchors.make(model, tokenizer, reading, rule, plain, i)
            for i, reading in enumerate(read_norms([rule]))
        ]
        return Pack(print_of, vocabulary.fingerprint(), rule_anchors.fuse(made))

    return make
