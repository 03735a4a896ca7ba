"""Which agent the events of an Inspect sample belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.values import text


@dataclass(slots=True)
class Spans:
    """Which agent each span's events belong to; old logs open and close steps without naming them in events."""

    paths: dict[str, str] = field(default_factory=dict)
    inner: dict[str, bool] = field(default_factory=dict)
    """Whether a span lies inside an agent or a tool, so that an agent in it is a sub-agent."""
    counts: dict[str, int] = field(default_factory=dict)
    stack: list[str] = field(default_factory=list)

    def agent(self, event: Mapping[str, JSON], outer: str) -> str:
        """Return the agent path of an event inside the agent `outer`."""
        span = text(event.get("span_id"))
        if span in self.paths:
            return self.paths[span]
        return self.stack[-1] if self.stack else outer

    def child(self, parent: str, name: str) -> str:
        """Name a new sub-agent; the second of one name gets a number."""
        path = f"{parent}/{name}" if parent else name
        self.counts[path] = self.counts.get(path, 0) + 1
        return path if self.counts[path] == 1 else f"{path}/{self.counts[path]}"
