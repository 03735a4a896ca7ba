"""A growing transcript: one agent's message list, and the calls that sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ModelCall, ToolCall, ToolRequest, Window
from harnesslab.core.trace.trace import TraceBuilder


@dataclass(slots=True)
class Transcript:
    """One agent's growing message list, from which its model calls are made in time linear in what is new."""

    builder: TraceBuilder
    agent: str = ""
    _kept: int = 0
    _new: list[JSON] = field(default_factory=list)

    def say(self, *messages: JSON) -> None:
        """Append messages that the next call will have sent."""
        self._new.extend(messages)

    def restart(self, messages: Sequence[JSON] = ()) -> None:
        """Replace the whole list, as a compaction of the context does."""
        self._kept, self._new = 0, list(messages)

    def rewind(self, count: int) -> None:
        """Take the last messages back, as a return to an earlier point does."""
        fresh = min(count, len(self._new))
        del self._new[len(self._new) - fresh :]
        self._kept -= count - fresh

    @property
    def length(self) -> int:
        """How many messages the next call will have sent."""
        return self._kept + len(self._new)

    def call(self, *, tools: JSON = None, **fields: Any) -> ModelCall:
        """Append a model call that sent everything said so far."""
        window = Window(self._kept, tuple(map(self.builder.payload, self._new)))
        self._kept, self._new = self._kept + len(self._new), []
        position = None if tools is None else self.builder.payload(tools)
        return self.builder.add(ModelCall(agent=self.agent, input=window, tools=position, **fields))


def tool_call(request: ToolRequest, **fields: Any) -> ToolCall:
    """Make the tool call of a request, with what else is known of it."""
    return ToolCall(
        **{
            "name": request.name,
            "arguments": request.arguments,
            "raw": request.raw,
            "id": request.id,
            **fields,
        }
    )
