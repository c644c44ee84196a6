"""Rules files from disk or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from ska_builder.language.document import MAX_FILE
from zerolayer.errors import ZerolayerError


def read_text(path: str) -> str:
    """The text of a rules file, or of standard input for "-".

    Raises:
        ZerolayerError: the file cannot be read, is larger than 1 MB, or is not UTF-8.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ZerolayerError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_FILE:
        raise ZerolayerError(f"{path} is larger than 1 MB; split it into several rules files")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ZerolayerError(
            f"{path} is not UTF-8 (byte {error.start} is {data[error.start]:#04x}); "
            "save it as UTF-8"
        ) from error
