"""Packs that ship with the project: heed anchors of the default model."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from zerolayer.models import fingerprint
from zerolayer.pack import Pack


def shipped_heed(name: str, model: Any) -> Pack | None:
    """The shipped heed anchors of a model, or None where the project ships none for it."""
    path = Path(str(resources.files("ska_builder.packs").joinpath(f"heed-{name}.safetensors")))
    if "/" in name or not path.is_file():
        return None
    pack = Pack.load(path)
    return pack if pack.model == fingerprint(model) else None
