"""The ordered record of a rollout: events, and the payload table that holds each message once.

An agent sends its whole transcript again at every step. A trace keeps each message, and each set of tool
schemas, once, at a position in order of first use; a model call's `Window` says how its message list differs
from the previous call of the same agent. Everything here is linear in what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harnesslab.core.canonical import JSON, canonical_bytes, sha256
from harnesslab.core.errors import InvalidValue
from harnesslab.core.trace.events import AnyEvent, ModelCall, RolloutEnded, Window

E = TypeVar("E", bound=AnyEvent)


@dataclass(frozen=True, slots=True)
class Trace:
    """One rollout's events with the payloads they name by position.

    `digests[i]` is the SHA-256 of the canonical bytes of `payloads[i]`.
    """

    events: Sequence[AnyEvent]
    payloads: Sequence[JSON]
    digests: Sequence[bytes]

    @property
    def steps(self) -> int:
        """Number of agent turns: the distinct steps with a model call, or with anything where there is none."""
        return len({event.step for event in self.events if isinstance(event, ModelCall)}) or len(
            {event.step for event in self.events}
        )


class Windows:
    """Follows the message lists of a trace's model calls, one list per agent."""

    def __init__(self) -> None:
        self._lists: dict[str, list[int]] = {}

    def open(self, event: ModelCall) -> list[int]:
        """Apply the event's window and return the agent's message list as positions; a later call changes it."""
        positions = self._lists.setdefault(event.agent, [])
        if not 0 <= event.input.keep <= len(positions):
            raise InvalidValue(f"a model call keeps {event.input.keep} messages of {len(positions)}")
        del positions[event.input.keep :]
        positions.extend(event.input.add)
        return positions

    def state(self) -> dict[str, list[int]]:
        """Return a copy of every agent's current list."""
        return {agent: list(positions) for agent, positions in self._lists.items()}

    @classmethod
    def at(cls, state: dict[str, list[int]]) -> Windows:
        """Continue from a state that `state()` returned."""
        windows = cls()
        windows._lists = {agent: list(positions) for agent, positions in state.items()}
        return windows


def model_inputs(trace: Trace) -> Iterator[tuple[int, ModelCall, list[int]]]:
    """Yield (event position, model call, its messages as payload positions); the list is reused."""
    windows = Windows()
    for index, event in enumerate(trace.events):
        if isinstance(event, ModelCall):
            yield index, event, windows.open(event)


def messages_at(trace: Trace, index: int) -> list[JSON]:
    """Return the messages of the model call at event position `index`."""
    for position, _, messages in model_inputs(trace):
        if position == index:
            return [trace.payloads[item] for item in messages]
    raise InvalidValue(f"event {index} is not a model call")


@dataclass(slots=True)
class TraceBuilder:
    """Puts a trace together in order; the only way to make one."""

    events: list[AnyEvent] = field(default_factory=list)
    payloads: list[JSON] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    _positions: dict[bytes, int] = field(default_factory=dict)
    _sent: dict[str, list[JSON]] = field(default_factory=dict)
    _windows: Windows = field(default_factory=Windows)

    def payload(self, value: JSON) -> int:
        """Return the position of a payload, adding it at its first use."""
        key = sha256(canonical_bytes(value))
        position = self._positions.get(key)
        if position is None:
            position = self._positions[key] = len(self.payloads)
            self.payloads.append(value)
            self.digests.append(key)
        return position

    def add(self, event: E) -> E:
        """Append an event whose positions, if any, are already in the payload table."""
        if isinstance(event, ModelCall):
            limit = len(self.payloads)
            named = event.input.add if event.tools is None else (*event.input.add, event.tools)
            if any(not 0 <= position < limit for position in named):
                raise InvalidValue("a model call names a payload that is not in the table")
            self._windows.open(event)
            self._sent.pop(event.agent, None)
        self.events.append(event)
        return event

    def model_call(self, messages: Sequence[JSON], *, tools: JSON = None, agent: str = "", **fields: Any) -> ModelCall:
        """Append a model call given its whole message list and its tool schemas (None: not recorded)."""
        window, schemas = self.ask(messages, tools=tools, agent=agent)
        return self.answer(ModelCall(agent=agent, input=window, tools=schemas, **fields))

    def ask(self, messages: Sequence[JSON], *, tools: JSON = None, agent: str = "") -> tuple[Window, int | None]:
        """Return (window, position of the tool schemas) of a request whose call `answer` appends next.

        Where a trace is made, answer before the next `ask` of the same agent: this list counts as sent from here on,
        so that a second window would be a change of a list that no event holds.
        """
        return self._window(agent, messages), None if tools is None else self.payload(tools)

    def answer(self, event: ModelCall) -> ModelCall:
        """Append the call of the request that `ask` was last given for its agent."""
        self._windows.open(event)
        self.events.append(event)
        return event

    def _window(self, agent: str, messages: Sequence[JSON]) -> Window:
        """Describe a message list as a change of the agent's previous one, comparing values, not digests."""
        previous = self._sent.get(agent)
        current = list(messages)
        if previous is None:  # the last call came by `add`, so that its list is known by positions alone
            positions = self._windows.state().get(agent, [])
            previous = [self.payloads[position] for position in positions]
        keep = _common_prefix(previous, current)
        current[:keep] = previous[:keep]  # one object per message, so that the next comparison is by identity
        self._sent[agent] = current
        return Window(keep, tuple(self.payload(message) for message in current[keep:]))

    def close(self, outcome: str, **fields: Any) -> Trace:
        """Append the closing event and return the trace."""
        step = self.events[-1].step if self.events else 0
        self.events.append(RolloutEnded(outcome=outcome, count=len(self.events) + 1, step=step, **fields))
        return self.trace()

    def trace(self) -> Trace:
        """Return what has been recorded so far."""
        return Trace(tuple(self.events), tuple(self.payloads), tuple(self.digests))


def _common_prefix(a: Sequence[JSON], b: Sequence[JSON]) -> int:
    """Return how many leading items are the same JSON."""
    for index, (one, two) in enumerate(zip(a, b, strict=False)):
        if one is not two and not (one == two and _alike(one, two)):
            return index
    return min(len(a), len(b))


def _alike(a: JSON, b: JSON) -> bool:
    """Say whether two values that Python calls equal are the same JSON: True is not 1."""
    if a is b or isinstance(a, str) or a is None:
        return True
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return all(_alike(item, b[name]) for name, item in a.items())
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return all(map(_alike, a, b))
    return type(a) is type(b) or canonical_bytes(a) == canonical_bytes(b)


def rebuild(events: Iterable[AnyEvent], payloads: Sequence[JSON]) -> Trace:
    """Return the trace of stored events and payloads, computing the payloads' digests."""
    return Trace(tuple(events), tuple(payloads), tuple(sha256(canonical_bytes(item)) for item in payloads))
