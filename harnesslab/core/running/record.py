"""Serving a rerun from a recording: the n-th occurrence of a request gets the n-th answer, and never a guess.

Requests are equal when their messages, tools and settings are, as the harness asked for them: overrides of a rerun
and seeds don't count, generated ids are renamed by order of first use, and scrub rules apply where tools are live.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from harnesslab.core.canonical import JSON, canonical_bytes, sha256
from harnesslab.core.contracts.comparators import ContentReader, Payloads
from harnesslab.core.contracts.contract import RAW, Contract, Level
from harnesslab.core.errors import NotComparable
from harnesslab.core.trace.events import ClockRead, ModelCall, RolloutEnded, ToolCall, UserTurn, Verification, Window
from harnesslab.core.trace.messages import view
from harnesslab.core.trace.seals import ListDigests
from harnesslab.core.trace.trace import Trace, model_inputs

ASKED = "asked"
"""Key in a model call's `extra` of the settings that the harness itself stated."""
_UNASKED = frozenset({"seed"})
ALTERED = " (altered by the self-test)"


class RequestKeys:
    """Gives each request of one rollout, in order, the key under which a record serves it."""

    def __init__(self, payloads: Payloads, rules: Sequence[str] = ()) -> None:
        self._reader = ContentReader(Contract(Level.TEXT, tuple(rules)), payloads)
        self._inputs = ListDigests()

    def key(self, agent: str, window: Window, tools: int | None, request: Mapping[str, JSON]) -> bytes:
        """Return the key of the next request of an agent."""
        added = [self._reader.payload_digest(position) for position in window.add]
        given = self._inputs.change(agent, window.keep, added)
        schemas = "" if tools is None else self._reader.payload_digest(tools).hex()
        settings = {name: value for name, value in request.items() if name not in _UNASKED}
        return sha256(canonical_bytes([agent, given.hex(), schemas, settings]))


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that the record doesn't hold: the nearest one it does, and where the two part."""

    boundary: str
    why: str
    nearest: int | None = None
    """Event position of the nearest recorded request that was not served yet."""
    recorded: str = ""
    """The differing text as recorded."""
    now: str = ""
    """The differing text as asked now."""

    def to_json(self) -> JSON:
        """Return the miss as it is kept in a trace."""
        kept: dict[str, JSON] = {"boundary": self.boundary, "why": self.why, "nearest": self.nearest}
        return {**kept, "recorded": self.recorded, "asked": self.now}


@dataclass(frozen=True, slots=True)
class _Asked:
    """One recorded request with its attempts; the last one is what the harness was told."""

    key: bytes
    index: int
    attempts: tuple[ModelCall, ...]

    def again(self, key: bytes, event: ModelCall) -> bool:
        """Say whether an event is another attempt at it, rather than the harness asking once more."""
        last = self.attempts[-1]
        return key == self.key and event.step == last.step and event.attempt == last.attempt + 1


class Record:
    """What a recording answers; each answer is served once."""

    def __init__(self, trace: Trace, rules: Sequence[str] = ()) -> None:
        self._trace = trace
        self._rules = tuple(rules)
        self._models: dict[bytes, deque[tuple[int, tuple[ModelCall, ...]]]] = defaultdict(deque)
        self._in_order: deque[tuple[int, tuple[ModelCall, ...]]] = deque()
        self._tools: dict[bytes, deque[tuple[int, ToolCall]]] = defaultdict(deque)
        self._users = deque(event for event in trace.events if isinstance(event, UserTurn) and event.simulated)
        self._clocks = deque(event for event in trace.events if isinstance(event, ClockRead))
        self._served: set[int] = set()
        self._index()

    def _index(self) -> None:
        keys = RequestKeys(self._trace.payloads, self._rules)
        failed: dict[str, _Asked] = {}
        for index, event in enumerate(self._trace.events):
            if isinstance(event, ModelCall):
                key = keys.key(event.agent, event.input, event.tools, settings_of(event))
                earlier = failed.pop(event.agent, None)
                if earlier is not None and not earlier.again(key, event):
                    self._add(earlier)
                    earlier = None
                found = _Asked(key, index, (*(earlier.attempts if earlier is not None else ()), event))
                if event.error is None:
                    self._add(found)
                else:
                    failed[event.agent] = found  # until its agent's next call says whether that tries it again
            elif isinstance(event, ToolCall) and (event.has_result or event.error is not None):
                self._tools[_tool_key(event.name, event.arguments, event.raw)].append((index, event))
        for left in sorted(failed.values(), key=lambda item: item.index):
            self._add(left)

    def _add(self, found: _Asked) -> None:
        self._models[found.key].append((found.index, found.attempts))
        self._in_order.append((found.index, found.attempts))

    def model(self, key: bytes) -> tuple[ModelCall, ...] | None:
        """Serve a request: the recorded attempts, failed ones first; None is a miss."""
        return self._serve(self._models.get(key))

    def model_in_order(self) -> tuple[ModelCall, ...] | None:
        """Serve the next recorded answer whatever was asked: a frozen prefix under another harness revision."""
        return self._serve(self._in_order)

    def _serve(self, waiting: deque[tuple[int, tuple[ModelCall, ...]]] | None) -> tuple[ModelCall, ...] | None:
        while waiting:
            index, attempts = waiting.popleft()
            if index not in self._served:  # each answer waits in two queues, by its key and in order
                self._served.add(index)
                return attempts
        return None

    def tool(self, name: str, arguments: JSON, raw: str | None = None) -> ToolCall | None:
        """Serve a tool call by its name and arguments; None is a miss."""
        waiting = self._tools.get(_tool_key(name, arguments, raw))
        if not waiting:
            return None
        index, event = waiting.popleft()
        self._served.add(index)
        return event

    def user(self) -> UserTurn | None:
        """Serve what the simulated user said next; None is a miss."""
        return self._users.popleft() if self._users else None

    def verdict(self) -> tuple[Verification | None, RolloutEnded] | None:
        """Serve the recorded verdict and end, where each recorded result of a tool was served; None where not."""
        verdicts = [event for event in self._trace.events if isinstance(event, Verification)]
        ends = [event for event in self._trace.events if isinstance(event, RolloutEnded)]
        if any(self._tools.values()) or not ends:
            return None
        return verdicts[-1] if verdicts else None, ends[-1]

    def clock(self) -> ClockRead | None:
        """Serve the next reading of the clock; None is a miss."""
        return self._clocks.popleft() if self._clocks else None

    def missed_model(self, messages: Sequence[JSON], step: int) -> Miss:
        """Explain a request that is not in the record by the nearest one that was not served."""
        best: tuple[int, int, list[JSON]] | None = None
        for index, _, positions in model_inputs(self._trace):
            if index in self._served:
                continue
            stored = [self._trace.payloads[position] for position in positions]
            common = _common(stored, messages)
            if best is None or common > best[1]:
                best = (index, common, stored)
        if best is None:
            return Miss("model", f"step {step + 1} asks the model again, and every recorded answer was served")
        return _explained(best, messages)

    def missed_tool(self, name: str, arguments: JSON, step: int) -> Miss:
        """Explain a tool call that is not in the record by the next recorded one of that tool."""
        for index, event in enumerate(self._trace.events):
            if isinstance(event, ToolCall) and event.name == name and index not in self._served:
                recorded, now = _text(event.arguments), _text(arguments)
                why = f"{name} was called with arguments that the record doesn't hold"
                if recorded == now:
                    why = f"{name} was called once more than recorded"
                return Miss(f"tool:{name}", why, index, recorded, now)
        return Miss(f"tool:{name}", f"{name} was called in step {step + 1}, and the record holds no further call of it")


def settings_of(event: ModelCall) -> Mapping[str, JSON]:
    """Return the settings that the harness stated, without what the worker added."""
    stated = event.extra.get(ASKED)
    return stated if isinstance(stated, Mapping) else event.settings


def _explained(best: tuple[int, int, list[JSON]], messages: Sequence[JSON]) -> Miss:
    index, common, stored = best
    if common == len(stored) == len(messages):
        return Miss("model", "the same messages were sent with other tools or settings", index)
    recorded = _shown(stored[common]) if common < len(stored) else "–"
    now = _shown(messages[common]) if common < len(messages) else "–"
    why = f"message {common} of the request is not what was recorded"
    if recorded == "–":
        why = f"the request has {len(messages) - common} more messages than the nearest recorded one"
    elif now == "–":
        why = f"the request lacks the last {len(stored) - common} messages of the nearest recorded one"
    return Miss("model", why, index, recorded, now)


def _common(stored: Sequence[JSON], messages: Sequence[JSON]) -> int:
    left, right = ContentReader(RAW, ()), ContentReader(RAW, ())
    for index, (one, two) in enumerate(zip(stored, messages, strict=False)):
        if one is not two and canonical_bytes(left.message(one)) != canonical_bytes(right.message(two)):
            return index
    return min(len(stored), len(messages))


def _tool_key(name: str, arguments: JSON, raw: str | None) -> bytes:
    return canonical_bytes([name, raw if arguments is None else arguments])


def _shown(message: JSON) -> str:
    seen = view(message)
    return seen.text or canonical_bytes(message).decode(errors="replace")


def _text(arguments: JSON) -> str:
    return canonical_bytes(arguments).decode(errors="replace")


def flows_on(trace: Trace) -> int | None:
    """Return the position of the tool call with the longest result that a later model call was given, or None.

    Altering that result in a copy must make a recorded rerun diverge: the self-test of the method. A short one, such
    as a single digit, may stand in a later request by chance.
    """
    found = [
        (len(event.result), -index)
        for index, event in enumerate(trace.events)
        if isinstance(event, ToolCall) and isinstance(event.result, str) and _given_later(trace, index, event)
    ]
    return -max(found)[1] if found else None


def _given_later(trace: Trace, index: int, call: ToolCall) -> bool:
    shown = call.seen if isinstance(call.seen, str) else call.result
    later: Iterable[ModelCall] = (event for event in trace.events[index + 1 :] if isinstance(event, ModelCall))
    text = str(shown)
    return bool(text.strip()) and any(
        text in _shown(trace.payloads[place]) for event in later for place in event.input.add
    )


def altered(trace: Trace) -> Trace:
    """Return a copy with one tool result changed that is known to flow on: served, it must make a rerun diverge.

    Raises `NotComparable` where no result does.
    """
    place = flows_on(trace)
    call = trace.events[place] if place is not None else None
    if place is None or not isinstance(call, ToolCall):
        raise NotComparable("no result of a tool flows on into a later request, so that nothing can be altered")
    changed = msgspec.structs.replace(call, result=f"{call.result}{ALTERED}", seen=None)
    return Trace((*trace.events[:place], changed, *trace.events[place + 1 :]), trace.payloads, trace.digests)
