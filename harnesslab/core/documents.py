"""Reading values back from the documents they were written as."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue

T = TypeVar("T")


def read(document: JSON, kind: type[T], where: str) -> T:
    """Return a value of a kind; raises `InvalidValue` naming what is wrong, and where."""
    try:
        return msgspec.convert(document, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidValue(str(error), where=where) from None
