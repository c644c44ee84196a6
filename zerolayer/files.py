"""Text files that come from outside: bounded in size, UTF-8."""

from __future__ import annotations

import sys
from pathlib import Path

from zerolayer.errors import ZerolayerError

MAX_BYTES = 4 << 20


def read_utf8(path: Path, what: str, limit: int = MAX_BYTES) -> str:
    """The text of a file, or of standard input for "-", with plain line ends.

    Args:
        what: how the file is called in messages ("source", "rules file").
        limit: bytes.

    Raises:
        ZerolayerError: missing, unreadable, larger than the limit, or not UTF-8.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with path.open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise ZerolayerError(f"{what} {path} cannot be read: {error.strerror or error}") from error
    if len(data) > limit:
        raise ZerolayerError(f"{what} {path} is larger than {limit / 1e6:.0f} MB; split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ZerolayerError(
            f"{what} {path} is not UTF-8 (byte {error.start} is {data[error.start]:#04x}); "
            "save it as UTF-8"
        ) from error
    return text.replace("\r\n", "\n")
