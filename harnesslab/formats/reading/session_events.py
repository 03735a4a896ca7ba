"""A session's events one by one, for the agents whose files hold messages or events and no requests."""

from __future__ import annotations

from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.trace.events import HarnessAction, RolloutStarted, ToolRequest, UserTurn
from harnesslab.core.trace.messages import MessageView
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.conversation import model_output
from harnesslab.formats.reading.lineage import Lineage
from harnesslab.formats.reading.transcript import Transcript, tool_call


class SessionEvents:
    """Appends model calls, results, turns and notes, and keeps which calls still wait for a result."""

    def __init__(self, manifest: Manifest) -> None:
        self.builder = TraceBuilder()
        self.builder.add(RolloutStarted(manifest=manifest.digest))
        self.transcript = Transcript(self.builder)
        self.lineage = Lineage(self.transcript)
        self.step = -1
        self._waiting: list[tuple[int, int, ToolRequest]] = []
        self._completed: dict[int, int] = {}

    @property
    def waiting(self) -> bool:
        """Say whether a call of the last reply has no result yet."""
        return any(step == self.step for step, _, _ in self._waiting)

    def waits_for(self, call_id: str) -> bool:
        """Say whether the call with this id has no result yet."""
        return any(request.id == call_id for _, _, request in self._waiting)

    def reply(self, message: JSON, seen: MessageView, **fields: Any) -> None:
        """Append the model call that a reply came from."""
        self.step += 1
        self.transcript.call(**{**model_output(seen), "step": self.step, **fields})
        self.lineage.say(message)
        self._waiting += [(self.step, emitted, request) for emitted, request in enumerate(seen.tool_calls)]

    def result(self, call_id: str, name: str, **fields: Any) -> None:
        """Append the tool call with this id, the first of the latest reply; one that nobody asked for is alone."""
        latest = max((step for step, _, request in self._waiting if request.id == call_id), default=None)
        for index, (step, emitted, request) in enumerate(self._waiting):
            if step == latest and request.id == call_id:
                del self._waiting[index]
                completed = self._completed.get(step, 0)
                self._completed[step] = completed + 1
                self.builder.add(tool_call(request, step=step, emitted=emitted, completed=completed, **fields))
                return
        self.builder.add(tool_call(ToolRequest(name or "unnamed", id=call_id), step=max(self.step, 0), **fields))

    def turn(self, content: JSON, **fields: Any) -> None:
        """Append what a person said."""
        written: dict[str, JSON] = {"provenance": "person", **fields.pop("extra", {})}
        self.builder.add(UserTurn(content=content, step=self.step + 1, extra=written, **fields))

    def note(self, name: str, detail: JSON, **fields: Any) -> None:
        """Append something the harness did."""
        self.builder.add(HarnessAction(name=name.replace("_", " "), detail=detail, step=max(self.step, 0), **fields))

    def close(self) -> None:
        """Append the calls without a result."""
        for step, emitted, request in self._waiting:
            self.builder.add(tool_call(request, step=step, emitted=emitted, has_result=False))
        self._waiting = []
