"""Generated identifiers are named by order of first use, so that two traces can be compared.

Ids in their own fields (tool-call ids) are renamed whatever they look like; in text, the shapes of `PATTERN`
are. Two traces that differ only by a relabelling of ids become equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harnesslab.core.canonical import JSON, in_order

PATTERN = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|(?:call|toolu|msg|resp|fc|req)_[0-9A-Za-z]{12,}"
    r"|chatcmpl-[0-9A-Za-z]{12,}"
)
ID_KEYS = frozenset({"id", "tool_call_id", "call_id", "tool_use_id", "response_id", "item_id"})
"""Keys of message objects whose values are generated identifiers."""


class Renamer:
    """Gives each identifier of one trace a name that depends only on when it is first used."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def id(self, value: str) -> str:
        """Return the name of an identifier from a field of its own; an empty one stays empty."""
        if not value:
            return ""
        return self._names.setdefault(value, f"<id {len(self._names) + 1}>")

    def note(self, value: JSON) -> None:
        """Name the identifiers in a value that is not compared itself, so that no later use of them is hidden."""
        if isinstance(value, str):
            self.text(value)
        elif isinstance(value, Mapping):
            for _, item in in_order(value):
                self.note(item)
        elif isinstance(value, Sequence):
            for item in value:
                self.note(item)

    def text(self, value: str) -> str:
        """Return text with the identifiers in it renamed."""
        if "-" not in value and "_" not in value:
            return value
        return PATTERN.sub(lambda match: self.id(match.group()), value)
