"""An agent's conversations, told apart by how their message lists begin, and the tool results seen in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ModelCall, ToolCall, ToolRequest
from harnesslab.core.trace.messages import result_of
from harnesslab.runtime.gateway.requests import AgentRequest, call_id

SEEN = "seen in the messages"
"""Value of `observed` in the `extra` of a tool call that an agent ran by itself."""
_OPENING = ("system", "developer")


@dataclass(slots=True)
class Talk:
    """One conversation: what was last sent, and which of its tool calls wait for a result."""

    agent: str
    messages: Sequence[JSON] = ()
    last_request: AgentRequest | None = None
    step: int = 0
    attempt: int = 0
    seed: int | None = None
    failed: bool = False
    """Whether the last request got no answer."""
    calls: dict[str, tuple[ToolRequest, int, int]] = field(default_factory=dict)
    """By id: the call, its place among those of its answer, its step."""
    completed: dict[int, int] = field(default_factory=dict)
    """Results seen by step."""

    def repeats(self, request: AgentRequest) -> bool:
        """Say whether a request is the last one again, because it failed or because the agent says so."""
        last = self.last_request
        if last is None or not (self.failed or request.retry):
            return False
        return (last.messages, last.tools, last.settings) == (request.messages, request.tools, request.settings)

    def note(self, event: ModelCall) -> None:
        """Remember the calls of an answer."""
        self.failed = event.error is not None
        for number, call in enumerate(event.tool_calls):
            self.calls[call_id(event, number)] = (call, number, event.step)

    def results(self, added: Sequence[JSON], at: float) -> Iterator[ToolCall]:
        """Yield the tool calls whose results are new in a request."""
        for message in added:
            if isinstance(message, Mapping) and message.get("role") == "tool":
                yield self._result(message, at)

    def _result(self, message: Mapping[str, JSON], at: float) -> ToolCall:
        ident = message.get("tool_call_id")
        name = ident if isinstance(ident, str) else ""
        known = self.calls.pop(name, None)
        call, place, step = known or (ToolRequest(str(message.get("name") or "unknown")), None, self.step)
        order = self.completed.get(step, 0)
        self.completed[step] = order + 1
        return ToolCall(
            name=call.name,
            arguments=call.arguments,
            raw=call.raw,
            id=name,
            step=step,
            agent=self.agent,
            at=at,
            result=result_of(message),
            emitted=place,
            completed=order,
            extra={"observed": SEEN, **({} if known else {"call": "no answer of the model made it"})},
        )


class Talks:
    """The conversations of one rollout in order of their first request."""

    def __init__(self) -> None:
        self._talks: list[Talk] = []

    def of(self, request: AgentRequest) -> tuple[Talk, Sequence[JSON]]:
        """Return the conversation that a request goes on with, or a new one, and the messages new to it."""
        opening = _opening(request.messages)
        found: Talk | None = None
        longest = 0
        for talk in self._talks:
            common = _common(talk.messages, request.messages)
            whole = common == len(talk.messages) == len(request.messages)
            # a system prompt alone makes no conversation, but a request of nothing else that comes again goes on
            if (common > opening or whole) and common > longest:
                found, longest = talk, common
        if found is None:
            number = len(self._talks)
            found = Talk(f"conversation/{number + 1}" if number else "")
            self._talks.append(found)
        return found, request.messages[longest:]


def _opening(messages: Sequence[JSON]) -> int:
    """Count the messages before the first that is no system prompt: they don't tell conversations apart."""
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _OPENING:
            return number
    return len(messages)


def _common(a: Sequence[JSON], b: Sequence[JSON]) -> int:
    for number, (one, two) in enumerate(zip(a, b, strict=False)):
        if one is not two and one != two:
            return number
    return min(len(a), len(b))
