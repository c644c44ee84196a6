"""zerolayer: rules in plain language for open-weights language models.

model, tokenizer = zerolayer.load_model("smollm2")
with zerolayer.attach(model, zerolayer.Pack.load("pack.safetensors")):
    ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zerolayer.attach import attach
    from zerolayer.decisions.machine import DecisionMachine
    from zerolayer.errors import ZerolayerError
    from zerolayer.models import load_model
    from zerolayer.pack import Pack

__all__ = ["Conversation", "DecisionMachine", "Pack", "ZerolayerError", "attach", "load_model"]

_HOME = {
    "attach": "zerolayer.attach",
    "Conversation": "zerolayer.conversation",
    "DecisionMachine": "zerolayer.decisions.machine",
    "ZerolayerError": "zerolayer.errors",
    "load_model": "zerolayer.models",
    "Pack": "zerolayer.pack",
}


def __getattr__(name: str) -> Any:
    """Loads on first use: torch and transformers take seconds, `--help` should not."""
    if name not in _HOME:
        raise AttributeError(f"module 'zerolayer' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
