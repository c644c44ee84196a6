"""Source documents from files: Markdown or text, with an optional front matter.

---
id: A1
kind: amendment
date: 2025-06-15
rank: 2
---
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import yaml

from zerolayer.decisions.ledger import Source
from zerolayer.errors import ZerolayerError
from zerolayer.files import read_utf8


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
    for key in ("id", "kind"):
        if isinstance(head.get(key), list | dict):  # nested aliases could grow without bound
            raise ZerolayerError(f"source {path}: {key} must be a text")
    kind = path.stem.replace("-", " ").replace("_", " ")
    return Source.from_json(
        {
            "id": str(head.get("id", path.name)),
            "kind": str(head.get("kind", kind)),
            "date": str(head["date"]) if isinstance(head.get("date"), date) else head.get("date"),
            "rank": head.get("rank"),
            "text": text,
        }
    )
