"""Compiled trigger automata on disk, by content: the same patterns and vocabulary compile once."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from zerolayer import _host, automaton
from zerolayer.errors import ZerolayerError
from zerolayer.models import cache_dir
from zerolayer.regex import Regex

MAX_BYTES = 1 << 30  # of all cached arenas; the longest unused go first

logger = logging.getLogger(__name__)


def cached_triggers(
    phrases: Sequence[Sequence[str | Regex]], vocabulary: automaton.Vocabulary
) -> Tensor:
    """`automaton.compile_triggers`, or what an earlier call with the same arguments has made.

    Raises:
        ZerolayerError: as `compile_triggers` does. A damaged file is no error: it is made again.
    """
    patterns = automaton.patterns_of(phrases, vocabulary)
    stamp = f"{_host.FORMAT}|{vocabulary.fingerprint()}|{vocabulary.dummy_prefix}|{patterns}"
    folder = cache_dir() / "automata"
    path = folder / f"{hashlib.sha256(stamp.encode()).hexdigest()}.arena"
    found = _read(path)
    if found is not None:
        return found
    made = automaton.compile_patterns(patterns, vocabulary)
    _write(path, made)
    return made


def _read(path: Path) -> Tensor | None:
    try:
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    try:
        arena = automaton.from_bytes(data)
        automaton.validate(arena)
    except ZerolayerError as error:
        logger.warning("the cached automaton %s is damaged (%s) and is made again", path, error)
        return None
    return arena


def _write(path: Path, arena: Tensor) -> None:
    if arena.numel() > MAX_BYTES:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(arena.numpy().data)
            os.replace(scratch, path)
        finally:
            Path(scratch).unlink(missing_ok=True)
        _shrink(path.parent)
    except OSError as error:
        logger.warning("the automaton cannot be cached in %s: %s", path.parent, error)


def _shrink(folder: Path) -> None:
    """Remove the files that were unused longest until the rest is within MAX_BYTES."""
    files = []
    for path in folder.glob("*.arena"):
        with contextlib.suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > MAX_BYTES:
            path.unlink(missing_ok=True)
