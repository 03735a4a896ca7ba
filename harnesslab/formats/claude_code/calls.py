"""The tool calls of a Claude Code session that wait for a result, paired by id and, where ids repeat, by position."""

from __future__ import annotations

from dataclasses import dataclass, field

from harnesslab.core.trace.events import ToolRequest
from harnesslab.formats.reading.lineage import SessionEntry


@dataclass(slots=True)
class Waiting:
    """A tool call whose result has not come yet."""

    request: ToolRequest
    step: int
    emitted: int
    agent: str
    entry: SessionEntry
    """The reply that asked for it; once its result has come, the result."""


@dataclass(slots=True)
class OpenCalls:
    """The calls that wait, by id in the order in which they were made: a server may give every call one id."""

    _waiting: dict[str, list[Waiting]] = field(default_factory=dict)
    _completed: dict[int, int] = field(default_factory=dict)

    def add(self, call: Waiting) -> None:
        """Note a call that was made."""
        self._waiting.setdefault(call.request.id, []).append(call)

    def claim(self, call_id: str, entry: SessionEntry) -> Waiting | None:
        """Remove and return the call that a result answers: of the nearest reply before it, the first with that id."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            return None
        asking = {each.entry for each in waiting}
        above: SessionEntry | None = entry
        while above is not None and above not in asking:
            above = above.parent
        latest = max(each.step for each in waiting)
        chosen = next(each for each in waiting if (each.entry is above if above else each.step == latest))
        waiting.remove(chosen)
        return chosen

    def completed(self, step: int) -> int:
        """Return how many calls of a step had their result before, and count one more."""
        self._completed[step] = self._completed.get(step, 0) + 1
        return self._completed[step] - 1

    def rest(self) -> list[Waiting]:
        """Return the calls without a result, as they were made."""
        return sorted((call for calls in self._waiting.values() for call in calls), key=lambda c: (c.step, c.emitted))
