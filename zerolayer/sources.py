"""Source documents from files: Markdown or text, with an optional front matter.

---
id: A1
kind: amendment
date: 2025-06-15
rank: 2
---
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from zerolayer.decisions.ledger import Source
from zerolayer.errors import ZerolayerError

MAX_BYTES = 4 << 20


def read_utf8(path: Path, what: str) -> str:
    """The text of a file, or of standard input for "-".

    Args:
        what: how the file is called in messages ("source", "answer").

    Raises:
        ZerolayerError: missing, empty, larger than 4 MiB, or not UTF-8.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ZerolayerError(f"{what} {path} cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise ZerolayerError(f"{what} {path} is larger than 4 MiB; split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ZerolayerError(
            f"{what} {path} is not UTF-8 (byte {error.start}); save it as UTF-8"
        ) from error
    if not text.strip():
        raise ZerolayerError(f"{what} {path} is empty")
    return text.replace("\r\n", "\n")


def read_source(path: str | Path) -> Source:
    """Read one source; without front matter its id and kind are the file's name.

    Raises:
        ZerolayerError: missing, empty, larger than 4 MiB, not UTF-8, or faulty front matter.
    """
    path = Path(path)
    text = read_utf8(path, "source")
    head: dict[str, Any] = {}
    if text.startswith("---\n"):
        block, mark, rest = text[4:].partition("\n---\n")
        if not mark:
            raise ZerolayerError(f"source {path}: the front matter is not closed with ---")
        try:
            head = yaml.safe_load(block) or {}
        except yaml.YAMLError as error:
            raise ZerolayerError(f"source {path}: the front matter is no YAML: {error}") from error
        if not isinstance(head, dict):
            raise ZerolayerError(f"source {path}: the front matter must be lines of key: value")
        text = rest
    if not text.strip():
        raise ZerolayerError(f"source {path} is empty below its front matter")
    rank = head.get("rank")
    if rank is not None and not isinstance(rank, int):
        raise ZerolayerError(f"source {path}: rank must be a whole number, not {rank!r}")
    kind = path.stem.replace("-", " ").replace("_", " ")
    return Source.from_json(
        {
            "id": str(head.get("id", path.name)),
            "kind": str(head.get("kind", kind)),
            "date": str(head["date"]) if head.get("date") else None,
            "rank": rank,
            "text": text,
        }
    )
