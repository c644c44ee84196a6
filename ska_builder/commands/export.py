"""`ska-build export`: static anchors folded into an ordinary checkpoint."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from zerolayer.console import DTYPES
from zerolayer.errors import ZerolayerError


def fold(model: Any, tokenizer: Any, pack: Any, folder: Path) -> tuple[int, int]:
    """Write a checkpoint whose norm weights contain the pack's static part Δγ.

    It loads without zerolayer, and its logits are those of the model with the static part attached,
    as both round the sum once to the weight's dtype.

    Args:
        folder: is created; must not exist.

    Returns:
        (norms that were changed, gated anchors that were left out).

    Raises:
        ZerolayerError: the pack has no static part or is another model's, or the folder exists.
    """
    from zerolayer.attach import attach, static_part

    static = static_part(pack)
    if not static.anchors:
        raise ZerolayerError(
            "the pack has no static part, only gated anchors, which stay at run time; "
            "nothing can be folded"
        )
    if folder.exists():
        raise ZerolayerError(f"{folder} exists already; name a new folder")
    if not folder.parent.is_dir():
        raise ZerolayerError(f"cannot write {folder}: there is no folder {folder.parent}")
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        with attach(model, static):
            model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        scratch.chmod(0o755)
        for file in scratch.iterdir():
            file.chmod(0o644)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return len(static.anchors), sum(a.count for a in pack.anchors.values())


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@click.option("--fold", "folds", is_flag=True, required=True, help="Fold the static anchors in.")
@click.option("--model", "name", default="smollm2", show_default=True)
@click.option("--dtype", type=DTYPES, default="float32", show_default=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
def export(pack: Path, folds: bool, name: str, dtype: str, output: Path) -> None:
    """Write a checkpoint with PACK's static anchors in its weights; it needs no zerolayer.

    Gated anchors and the decision machine stay behind: they work at run time alone.

    \b
    Example:
      ska-build export pack.safetensors --fold --model smollm2 -o smollm2-contracts
    """
    import torch

    from zerolayer.models import load_model
    from zerolayer.pack import Pack

    loaded = Pack.load(pack)
    model, tokenizer = load_model(name, dtype=getattr(torch, dtype))
    norms, gated = fold(model, tokenizer, loaded, output)
    click.echo(f"{output}: {norms} norms changed; {gated} gated anchors were left out")
