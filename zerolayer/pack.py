"""The pack: anchors, decision machine, slots, rules and their readings in one safetensors file.

Tensors are named `ska.<module path>.{keys,values,thresholds,gains,rule,delta_weight}`,
`dds.automaton` and `dds.probe.heads`; everything else is JSON in the file's metadata. No code, no
pickle. A pack is untrusted input: loading checks sizes, shapes, dtypes and finiteness before
anything is used.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from zerolayer.anchors import MAX_ANCHORS, AnchorSet
from zerolayer.automaton import validate
from zerolayer.errors import ZerolayerError
from zerolayer.models import Fingerprint
from zerolayer.readings import Reading, Slot

FORMAT = 1
MAX_BYTES = 1 << 30
MAX_METADATA = 16 << 20
MAX_HEADS = 1024
PARTS = {"keys": 2, "values": 2, "thresholds": 1, "gains": 1, "rule": 1, "delta_weight": 1}


@dataclass
class Pack:
    """What ska-build writes for one model."""

    model: Fingerprint
    tokenizer: str  # fingerprint of the vocabulary's bytes
    anchors: dict[str, AnchorSet] = field(default_factory=dict)  # by module path
    automaton: Tensor | None = None  # uint8 arena
    probe: Tensor | None = None  # fp32 [heads, 3, d + 1], the bias last
    probes: list[dict[str, Any]] = field(default_factory=list)  # per rule: layer, figures, reason
    readings: list[Reading] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    triggers: list[dict[str, Any]] = field(default_factory=list)  # {"slot"|"rule", "phrases"}
    made: list[dict[str, Any]] = field(default_factory=list)  # per rule: what was made of it, why
    source: str = ""  # the rules file's text
    calibration: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    builder: str = ""
    signed: list[dict[str, str]] = field(default_factory=list)  # author, date, hash of the rules

    def save(self, path: str | Path) -> None:
        """Write the file to a temporary name and rename it, so that nothing is half-written."""
        path = Path(path)
        tensors: dict[str, Tensor] = {}
        for module, anchors in self.anchors.items():
            for part in PARTS:
                tensor = getattr(anchors, part)
                if tensor is not None:
                    tensors[f"ska.{module}.{part}"] = tensor.contiguous()
        if self.automaton is not None:
            tensors["dds.automaton"] = self.automaton.contiguous()
        if self.probe is not None:
            tensors["dds.probe.heads"] = self.probe.contiguous()
        metadata = {
            "zerolayer": json.dumps(
                {
                    "format": FORMAT,
                    "model": self.model.to_json(),
                    "tokenizer": self.tokenizer,
                    "readings": [r.to_json() for r in self.readings],
                    "slots": [s.to_json() for s in self.slots],
                    "triggers": self.triggers,
                    "made": self.made,
                    "probes": self.probes,
                    "source": self.source,
                    "calibration": self.calibration,
                    "summary": self.summary,
                    "builder": self.builder,
                    "signed": self.signed,
                },
                ensure_ascii=False,
            )
        }
        if not path.parent.is_dir():
            raise ZerolayerError(f"cannot write {path}: there is no folder {path.parent}")
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        try:
            save_file(tensors, scratch, metadata=metadata)
            os.chmod(scratch, 0o644)
            os.replace(scratch, path)
        finally:
            Path(scratch).unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> Pack:
        """Read and check a pack.

        Raises:
            ZerolayerError: missing, truncated or altered file, an unknown format version, a shape,
                dtype or size that does not fit, or a value that is not finite.
        """
        path = Path(path)
        if not path.is_file():
            raise ZerolayerError(f"no pack at {path}; build one with ska-build rules.md -o {path}")
        if path.stat().st_size > MAX_BYTES:
            raise ZerolayerError(f"pack {path} has {path.stat().st_size} bytes, more than 1 GiB")
        try:
            with safe_open(path, framework="pt") as file:
                raw = (file.metadata() or {}).get("zerolayer")
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise ZerolayerError(
                f"pack {path} is truncated or damaged ({error}); build it again with ska-build"
            ) from error
        if raw is None:
            raise ZerolayerError(f"{path} is a safetensors file, but not a zerolayer pack")
        if len(raw) > MAX_METADATA:
            raise ZerolayerError(f"pack {path} has more than 16 MiB of metadata")
        try:
            data = json.loads(raw)
            if data["format"] != FORMAT:
                raise ZerolayerError(
                    f"pack {path} has format {data['format']}, this zerolayer reads {FORMAT}; "
                    "build it again with ska-build"
                )
            return cls(
                model=Fingerprint(**data["model"]),
                tokenizer=str(data["tokenizer"]),
                anchors=_anchors(path, tensors, int(data["model"]["hidden_size"])),
                automaton=_automaton(path, tensors),
                probe=_probe(path, tensors, data),
                probes=data.get("probes", []),
                readings=[Reading.from_json(r) for r in data["readings"]],
                slots=[Slot.from_json(s) for s in data["slots"]],
                **{
                    key: data[key]
                    for key in (
                        "triggers",
                        "made",
                        "source",
                        "calibration",
                        "summary",
                        "builder",
                        "signed",
                    )
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if isinstance(error, ZerolayerError):
                raise
            raise ZerolayerError(f"pack {path} has damaged metadata: {error!r}") from error


def _automaton(path: Path, tensors: dict[str, Tensor]) -> Tensor | None:
    arena = tensors.get("dds.automaton")
    if arena is not None and (arena.dtype != torch.uint8 or arena.ndim != 1):
        raise ZerolayerError(f"pack {path}: dds.automaton must be a row of bytes")
    if arena is not None:
        try:
            validate(arena)
        except ZerolayerError as error:
            raise ZerolayerError(f"pack {path}: {error}") from error
    return arena


def _probe(path: Path, tensors: dict[str, Tensor], data: dict[str, Any]) -> Tensor | None:
    """The heads, one for each record without a reason against it."""
    heads = tensors.get("dds.probe.heads")
    records = [r for r in data.get("probes", []) if not r["reason"]]
    width, layers = int(data["model"]["hidden_size"]), int(data["model"]["layers"])
    if heads is not None:
        if heads.dtype != torch.float32 or heads.ndim != 3 or heads.shape[1:] != (3, width + 1):
            raise ZerolayerError(
                f"pack {path}: dds.probe.heads must be float32 [heads, 3, {width + 1}], "
                f"it is {heads.dtype} {list(heads.shape)}"
            )
        if not bool(torch.isfinite(heads).all()):
            raise ZerolayerError(f"pack {path}: dds.probe.heads holds a value that is not finite")
    count = 0 if heads is None else len(heads)
    if count != len(records) or count > MAX_HEADS:
        raise ZerolayerError(
            f"pack {path} has {count} probe heads and {len(records)} records of them; "
            f"both must have one count of at most {MAX_HEADS}"
        )
    for record in records:
        if type(record["layer"]) is not int or not 0 <= record["layer"] < layers:
            raise ZerolayerError(
                f"pack {path}: a probe reads layer {record['layer']!r}, the model has {layers}"
            )
    return heads


def _anchors(path: Path, tensors: dict[str, Tensor], width: int) -> dict[str, AnchorSet]:
    by_module: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name in ("dds.automaton", "dds.probe.heads"):
            continue
        module, _, part = name.removeprefix("ska.").rpartition(".")
        if not name.startswith("ska.") or part not in PARTS or not module:
            raise ZerolayerError(f"pack {path} has an unknown tensor {name}")
        if tensor.ndim != PARTS[part]:
            raise ZerolayerError(f"pack {path}: {name} has {tensor.ndim} dimensions")
        if part in ("keys", "values", "delta_weight") and tensor.shape[-1] != width:
            raise ZerolayerError(
                f"pack {path}: {name} has width {tensor.shape[-1]}, the pack's model has {width}"
            )
        if (part == "rule") != (tensor.dtype == torch.int32):
            raise ZerolayerError(f"pack {path}: {name} has the dtype {tensor.dtype}")
        if part != "rule" and not bool(torch.isfinite(tensor).all()):
            raise ZerolayerError(f"pack {path}: {name} holds a value that is not finite")
        by_module.setdefault(module, {})[part] = tensor
    return {module: _anchor_set(path, module, parts) for module, parts in by_module.items()}


def _anchor_set(path: Path, module: str, parts: dict[str, Tensor]) -> AnchorSet:
    missing = set(PARTS) - {"delta_weight"} - set(parts)
    if missing:
        raise ZerolayerError(f"pack {path}: ska.{module} lacks {', '.join(sorted(missing))}")
    counts = {parts[p].shape[0] for p in PARTS if p != "delta_weight"}
    if len(counts) != 1 or max(counts) > MAX_ANCHORS:
        raise ZerolayerError(
            f"pack {path}: ska.{module} has parts of {sorted(counts)} anchors; "
            f"all must have one count of at most {MAX_ANCHORS}"
        )
    return AnchorSet(**parts)
