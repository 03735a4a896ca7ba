"""Bytes of a source that were no UTF-8: where they stand in an event, and which bytes they were.

Reading keeps such a byte as the lone surrogate U+DC80 to U+DCFF that stands for it, so that nothing is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harnesslab.core.canonical import JSON

KEY = "damaged"
"""Key in an event's `extra` that lists its damaged places."""
EVENTS = "damaged_events"
"""Key in `extra` of the closing event that lists the events with such places, by position."""
MOST = 50
"""Places that are listed of one event; further ones are counted."""
_RUN = re.compile("[\udc80-\udcff]+")


def perhaps(value: object) -> bool:
    """Say quickly whether a value may hold text that no UTF-8 can write."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return True
    except (OverflowError, RecursionError, TypeError, ValueError):  # says nothing of its text
        return True
    return False


def places(value: JSON, at: str = "") -> Iterator[dict[str, JSON]]:
    """Yield where a value is damaged: its path, the character's offset and the bytes in hexadecimal."""
    if isinstance(value, str):
        for run in _RUN.finditer(value):
            found = run.group().encode("utf-8", "surrogateescape").hex()
            yield {"at": readable(at), "offset": run.start(), "bytes": found}
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from places(key, f"{at} (key)")
            yield from places(item, f"{at}.{key}" if at else key)
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from places(item, f"{at}[{index}]")


def listed(marks: Sequence[dict[str, JSON]]) -> list[JSON]:
    """Return places as an event lists them."""
    more: list[JSON] = [{"more": len(marks) - MOST}] if len(marks) > MOST else []
    return [*marks[:MOST], *more]


def readable(text: str) -> str:
    """Return text with each damaged byte written out, such as ⟨ff⟩."""
    return _RUN.sub(lambda run: f"⟨{run.group().encode('utf-8', 'surrogateescape').hex()}⟩", text)
