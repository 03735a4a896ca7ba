"""Sizes in words."""

from __future__ import annotations


def mebibytes(size: int) -> str:
    """Return a number of bytes in MiB."""
    return f"{size / 2**20:g} MiB"
