"""Which entries of a pi or droid session are on which branch, and which were copied from the one it was forked from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.inputs import JsonLine, Unit
from harnesslab.formats.reading.lineage import LEFT, Lineage, SessionEntry, copied_from, mark
from harnesslab.formats.reading.session_events import SessionEvents
from harnesslab.formats.reading.siblings import siblings_of
from harnesslab.formats.reading.values import items, mapping, moment, text, without_nulls

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOLD = ("branch_summary", "custom_message")
"""Kinds of lines besides messages that the model is told of."""


class Branches:
    """Follows a session's entries from branch to branch."""

    def __init__(self, events: SessionEvents, root: str, copied: Mapping[int, str]) -> None:
        self._events = events
        self._copied = copied
        self._lineage: Lineage = events.lineage
        self._lineage.name(self._lineage.root, root)
        self._owners: list[tuple[int, SessionEntry]] = []
        self._replies: dict[int, SessionEntry] = {}

    def enter(self, row: Mapping[str, JSON]) -> None:
        """Take the context to where an entry stands, and note its id."""
        lineage = self._lineage
        parent = lineage.named(text(row.get("parentId")))
        if parent is None and "parentId" in row and row["parentId"] is None:
            parent = lineage.root
        message = mapping(row.get("message"))
        kinds = [mapping(block).get("type") for block in items(message.get("content"))]
        is_result = message.get("role") == "toolResult" or "tool_result" in kinds
        calls = sum(kind in ("toolCall", "tool_use") for kind in kinds)
        entry = lineage.result(parent) if is_result else lineage.begin(parent, calls=calls)
        lineage.name(entry, text(row.get("id")))

    def note(self, row: Mapping[str, JSON]) -> None:
        """Let a line that is no message change the context, as a compaction does, which keeps the end of it."""
        if row.get("type") == "compaction":
            head = self._lineage.named(text(row.get("firstKeptEntryId")))
            kept = self._lineage.between(head, self._lineage.tip)
            self._lineage.restart([{"role": "user", "content": row.get("summary")}, *kept])
        elif row.get("type") in _TOLD:
            told = row.get("summary") if row.get("type") == "branch_summary" else row.get("content")
            self._lineage.say({"role": "user", "content": told})

    def leave(self, line: JsonLine, first: int) -> None:
        """Note that the events from a position on are those of the last entry."""
        self._replies.setdefault(self._events.step, self._lineage.tip)
        for index in range(first, len(self._events.builder.events)):
            self._owners.append((index, self._lineage.tip))
            if line.number in self._copied:
                mark(self._events.builder, index, copied_from(self._copied[line.number]))

    def close(self) -> None:
        """Append the calls without a result, and mark what is not on the path to the last entry."""
        first = len(self._events.builder.events)
        self._events.close()
        events = self._events.builder.events
        steps = ((index, self._replies.get(events[index].step)) for index in range(first, len(events)))
        self._owners += [(index, entry) for index, entry in steps if entry is not None]
        live = self._lineage.live()
        for index, entry in self._owners:
            if entry not in live:
                mark(self._events.builder, index, {LEFT: True})


def copied_entries(unit: Unit, header: Mapping[str, JSON], lines: Sequence[JsonLine]) -> dict[int, str]:
    """Return by line number the session that an entry was copied from: those older than the fork, or in its parent."""
    stated = text(header.get("parentSession")) or text(header.get("branchedFrom"))
    if not stated:
        return {}
    name = PurePosixPath(stated.replace("\\", "/")).name
    siblings = siblings_of(unit)
    path = next((path for path in siblings or () if PurePosixPath(path).name == name != unit.name), "")
    theirs = [line.value for line in siblings.lines(path)] if siblings is not None and path else []
    found = _ID.findall(name)
    session = text(theirs[0].get("id")) if theirs else (found[-1] if found else PurePosixPath(name).stem)
    ids = {text(row.get("id")) for row in theirs if row.get("type") not in ("session", "session_start")} - {""}
    begun = moment(header.get("timestamp"))
    copied: dict[int, str] = {}
    for line in lines:
        at = moment(line.value.get("timestamp"))
        older = begun is not None and at is not None and at < begun
        if line.value is not header and (text(line.value.get("id")) in ids if ids else older):
            copied[line.number] = session
    return copied


def links(header: Mapping[str, JSON], copied: Mapping[int, str]) -> dict[str, JSON]:
    """Return the facts of a session, with those it was copied from."""
    return {**dict(header), **without_nulls({"copied_from": sorted(set(copied.values())) or None})}
