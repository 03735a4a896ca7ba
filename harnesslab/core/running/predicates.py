"""What a bad decision looks like: a predicate on the events of a rollout from a step on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.documents import read
from harnesslab.core.trace.events import AnyEvent, ModelCall, ToolCall
from harnesslab.core.trace.trace import Trace

MOST_STEPS = 1_000_000


class What(StrEnum):
    """What is looked at."""

    TOOL_CALL = "tool call"
    """A tool was called."""
    ARGUMENT = "argument"
    """A tool was called with an argument that holds a text."""
    FAILURE = "failure"
    """A tool call failed: another exit code than 0, an error, or a timeout."""
    ANSWER = "answer"
    """The model's answer holds a text."""


class Predicate(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A condition on a decision; it holds where any event of its steps meets it."""

    what: What
    tool: str = ""
    """Of which tool; empty for any."""
    argument: str = ""
    """Of which argument; empty for any."""
    holds: str = ""
    """The text that must be there."""
    steps: int = 1
    """How many steps are looked at, from the one the case begins with."""

    @classmethod
    def from_json(cls, document: JSON) -> Predicate:
        """Read a predicate; raises `InvalidValue` naming what is wrong."""
        return read(document, cls, "predicate")

    def to_json(self) -> dict[str, JSON]:
        """Return the predicate as JSON."""
        built: dict[str, JSON] = msgspec.to_builtins(self)
        return built

    @property
    def sentence(self) -> str:
        """Say what must not happen."""
        tool = self.tool or "any tool"
        where = "at that step" if self.steps == 1 else f"within {self.steps} steps"
        match self.what:
            case What.TOOL_CALL:
                return f"calls {tool} {where}"
            case What.ARGUMENT:
                return f"calls {tool} with {self.argument or 'an argument'} holding {self.holds!r} {where}"
            case What.FAILURE:
                return f"a call of {tool} fails {where}"
            case What.ANSWER:
                return f"answers with {self.holds!r} {where}"

    def met(self, trace: Trace, first: int) -> bool | None:
        """Say whether it is met in the steps from `first`; None where the trace doesn't get there."""
        reached = False
        for event in trace.events:
            if first <= event.step < first + self.steps and isinstance(event, ModelCall | ToolCall):
                reached = reached or (isinstance(event, ModelCall) and event.error is None)
                if self._meets(event):
                    return True
        return False if reached else None

    def _meets(self, event: AnyEvent) -> bool:
        match self.what, event:
            case (What.ANSWER, ModelCall()):
                return event.error is None and self.holds in (event.text or "")
            case (What.TOOL_CALL, ToolCall()):
                return event.name == self.tool
            case (What.ARGUMENT, ToolCall()):
                return self._of_tool(event) and self.holds in self._argument_text(event)
            case (What.FAILURE, ToolCall()):
                return self._of_tool(event) and (
                    event.exit_code not in (None, 0) or bool(event.error) or event.timed_out
                )
        return False

    def _of_tool(self, event: ToolCall) -> bool:
        return not self.tool or event.name == self.tool

    def _argument_text(self, event: ToolCall) -> str:
        given = event.arguments
        if self.argument:
            given = given.get(self.argument) if isinstance(given, Mapping) else None
        if isinstance(given, str):
            return given
        return "" if given is None else canonical_bytes(given).decode(errors="replace")
