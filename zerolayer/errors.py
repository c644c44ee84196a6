"""Errors that a user can mend: one sentence with what, where, and what to do."""

from __future__ import annotations


class ZerolayerError(ValueError):
    """A wrong input. Command lines print its message and exit with code 2."""
