"""Whole numbers in addresses, forms and arguments: ASCII digits, and few enough for every database."""

from __future__ import annotations

import re

_NATURAL = re.compile("[0-9]{1,18}")


def natural(text: str) -> int | None:
    """Return the number from 0 that a text is, or None; `str.isdigit` takes "²", and `int` refuses it."""
    return int(text) if _NATURAL.fullmatch(text) else None
