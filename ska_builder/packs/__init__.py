"""What ships with the project: heed anchors of the default model, rules for contracts."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from ska_builder.rules import checked_rules, slots_of
from zerolayer.models import fingerprint
from zerolayer.pack import Pack
from zerolayer.readings import Slot


def shipped_heed(name: str, model: Any) -> Pack | None:
    """The shipped heed anchors of a model, or None where the project ships none for it."""
    path = Path(str(resources.files("ska_builder.packs").joinpath(f"heed-{name}.safetensors")))
    if "/" in name or not path.is_file():
        return None
    pack = Pack.load(path)
    return pack if pack.model == fingerprint(model) else None


def contract_slots() -> list[Slot]:
    """The slots of the shipped rules for commercial contracts (contracts.rules.md); the governing
    law has states and countries as its choices."""
    folder = Path(str(resources.files("ska_builder.packs")))
    places = tuple((folder / "jurisdictions.txt").read_text("utf-8").splitlines())
    slots = slots_of(checked_rules(folder / "contracts.rules.md").readings)
    return [replace(s, choices=places) if s.name == "governing law" else s for s in slots]
