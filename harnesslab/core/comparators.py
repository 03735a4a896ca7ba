"""Comparable content: what of an event counts at a level, and the digests that comparing runs on.

Each event that counts at a level has two digests: `own`, of what happened there, and one that adds the input
it was given. `path` chains the latter, so equal paths mean equal behaviour so far, and the first divergence of
two traces is found by bisection, without reading any payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harnesslab.core import scrub
from harnesslab.core.canonical import JSON, canonical_bytes, in_order, nested_within, parse, sha256
from harnesslab.core.contract import Contract, Level, Scope
from harnesslab.core.errors import NotComparable
from harnesslab.core.events import (
    AnyEvent,
    ClockRead,
    HarnessAction,
    MemoryAccess,
    ModelCall,
    NetworkExchange,
    Retrieval,
    RolloutEnded,
    RolloutStarted,
    SubagentCall,
    ToolCall,
    ToolRequest,
    UserTurn,
    Verification,
)
from harnesslab.core.renaming import ID_KEYS, Renamer
from harnesslab.core.seals import ListDigests
from harnesslab.core.trace import Trace

EMBEDDED_DEPTH = 60
"""JSON inside text that is nested deeper than this is compared as text."""
WIDTH = 16
"""Bytes kept of each comparable digest."""
_START = bytes(WIDTH)
ANSWER_KEYS = ("text", "reasoning", "refusal", "calls", "finish")


@dataclass(frozen=True, slots=True)
class Path:
    """A trace under one contract: for each event that counts, its position, own digest and path digest.

    `own` and `path` hold `WIDTH` bytes an event; `indices[i]` is the event's position in the trace.
    """

    contract: Contract
    indices: Sequence[int]
    own: bytes
    path: bytes
    removed: scrub.Removed = field(default_factory=scrub.Removed, compare=False)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def head(self) -> bytes:
        """Digest of the whole path."""
        return self.path[-WIDTH:] if self.path else _START

    def own_at(self, position: int) -> bytes:
        """Return the own digest at a position of the path."""
        return self.own[position * WIDTH : (position + 1) * WIDTH]


def supports(events: Iterable[AnyEvent], level: Level) -> bool:
    """Say whether a trace holds what a level compares."""
    if level not in (Level.LOGPROBS, Level.TOKEN_IDS):
        return True
    calls = [event for event in events if isinstance(event, ModelCall) and event.error is None]
    if level is Level.TOKEN_IDS:
        return bool(calls) and all(call.token_ids is not None for call in calls)
    return bool(calls) and all(call.logprobs is not None for call in calls)


def path(trace: Trace, contract: Contract, scrubber: scrub.Scrubber | None = None) -> Path:
    """Return a trace's path under a contract; raises `NotComparable` where the trace lacks what it compares.

    `scrubber` may be one that other paths with the same rules have used.
    """
    if not supports(trace.events, contract.level):
        raise NotComparable(f"the trace does not record {contract.level.value}")
    reader = Reader(contract, trace.payloads, scrubber)
    indices, own, chain = [], bytearray(), bytearray()
    last = _START
    for index, event in enumerate(trace.events):
        digests = reader.digests(event)
        if digests is None:
            continue
        last = sha256(last + digests[1])[:WIDTH]
        indices.append(index)
        own += digests[0][:WIDTH]
        chain += last
    return Path(contract, indices, bytes(own), bytes(chain), reader.removed)


def first_difference(a: Path, b: Path) -> int | None:
    """Return the first path position where two traces differ, or None; one ending early is a difference."""
    shorter = min(len(a), len(b))
    low, high = 0, shorter
    while low < high:
        middle = (low + high) // 2
        span = slice(middle * WIDTH, (middle + 1) * WIDTH)
        if a.path[span] == b.path[span]:
            low = middle + 1
        else:
            high = middle
    return low if low < shorter or len(a) != len(b) else None


class Reader:
    """Reads a trace's events in order into comparable content under one contract."""

    def __init__(self, contract: Contract, payloads: Sequence[JSON], scrubber: scrub.Scrubber | None = None) -> None:
        self.removed = scrub.Removed()
        self._level = contract.level
        self._scope = contract.scope
        self._scrubber = scrubber or scrub.Scrubber(scrub.rules(contract.rules))
        self._renamer = Renamer()
        self._payloads = payloads
        self._payload_digests: dict[int, bytes] = {}
        self._inputs = ListDigests()

    def digests(self, event: AnyEvent) -> tuple[bytes, bytes] | None:
        """Return (own digest, digest with input), or None where the event doesn't count at this level."""
        content = self.content(event)
        if content is None:
            return None
        own = sha256(canonical_bytes(content))
        if not isinstance(event, ModelCall) or self._level is Level.BEHAVIOUR:
            return own, own
        added = [self.payload_digest(position) for position in event.input.add]
        given = self._inputs.change(event.agent, event.input.keep, added)
        tools = b"" if event.tools is None else self.payload_digest(event.tools)
        return own, sha256(own + given + tools)

    def answer_digest(self, event: ModelCall) -> bytes:
        """Return the digest of what a model answered, without which attempt it was and what the harness made of it."""
        output = _output(event, self._level)
        return sha256(canonical_bytes(self.rewrite({key: output[key] for key in ANSWER_KEYS})))

    def content(self, event: AnyEvent) -> JSON:
        """Return what of an event counts, with ids renamed and rules applied, or None where nothing does."""
        if self._scope is Scope.TOOL_CALLS:
            raw = _tool_action(event, self._level)
        else:
            raw = _behaviour(event) if self._level is Level.BEHAVIOUR else _record(event, self._level)
        found = None if raw is None else self.rewrite(raw)
        if self._scope is Scope.TOOL_CALLS or self._level is Level.BEHAVIOUR:
            self._renamer.note(_record(event, Level.TEXT))
        return found

    def rewrite(self, value: JSON) -> JSON:
        """Return a value with ids renamed, JSON inside text read (from level json on) and rules applied."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            # a refusal is protected from every rule
            return {key: item if key == "refusal" else self.rewrite(item) for key, item in in_order(value)}
        if isinstance(value, list | tuple):
            return [self.rewrite(item) for item in value]
        return value

    def message(self, value: JSON) -> JSON:
        """Rewrite a message: ids of its own structure are renamed; those inside arguments and text are data."""
        if not isinstance(value, dict):
            return self.rewrite(value)
        return {key: self._message_part(key, item) for key, item in in_order(value)}

    def _message_part(self, key: str, item: JSON) -> JSON:
        if key in ID_KEYS and isinstance(item, str):
            return self._renamer.id(item)
        if key in ("tool_calls", "content") and isinstance(item, list):
            return [self.message(part) for part in item]
        return item if key == "refusal" else self.rewrite(item)

    def _text(self, value: str) -> JSON:
        if self._level in (Level.JSON, Level.BEHAVIOUR) and value[:1] in ("{", "["):
            try:
                parsed = parse(value)
            except ValueError:
                parsed = None
            if parsed is not None and nested_within(parsed, EMBEDDED_DEPTH):
                return {"json": self.rewrite(parsed)}
        return self._scrubber.scrub(self._renamer.text(value), self.removed)

    def payload_digest(self, position: int) -> bytes:
        """Return the comparable digest of a payload, computed at its first use."""
        known = self._payload_digests.get(position)
        if known is None:
            known = sha256(canonical_bytes(self.message(self._payloads[position])))
            self._payload_digests[position] = known
        return known


def _record(event: AnyEvent, level: Level) -> dict[str, JSON] | None:
    """Return the recorded content of an event at the levels above behaviour; conditions are left to manifests."""
    match event:
        case RolloutStarted():
            return None
        case ModelCall():
            return {"kind": "model", **_output(event, level)}
        case ToolCall():
            return {
                "kind": "tool",
                "name": event.name,
                "arguments": _arguments(event.arguments, event.raw, level),
                "result": event.result if event.has_result else {"missing": True},
                "seen": event.seen,
                "exit": event.exit_code,
                "error": event.error,
                "timed_out": event.timed_out,
            }
        case UserTurn():
            return {"kind": "user", "content": event.content}
        case SubagentCall():
            asked: dict[str, JSON] = {"kind": "subagent", "name": event.name, "input": event.input}
            return {**asked, "output": event.output, "error": event.error}
        case Retrieval():
            return {"kind": "retrieval", "query": event.query, "documents": event.documents}
        case MemoryAccess():
            return {"kind": "memory", "operation": event.operation, "key": event.key, "value": event.value}
        case ClockRead():
            return {"kind": "clock", "value": event.value}
        case NetworkExchange():
            exchange = {"target": event.target, "request": event.request, "response": event.response}
            return {"kind": "network", **exchange, "error": event.error}
        case HarnessAction():
            return {"kind": "harness", "name": event.name, "mechanism": event.mechanism, "detail": event.detail}
        case Verification():
            tests: list[JSON] = [[test.name, test.passed] for test in event.tests]
            verdict: dict[str, JSON] = {"passed": event.passed, "reward": event.reward, "tests": tests}
            return {"kind": "verification", **verdict, "error": event.error}
        case RolloutEnded():
            return {"kind": "ended", "outcome": event.outcome, "diff": event.diff}


def _output(event: ModelCall, level: Level) -> dict[str, JSON]:
    content: dict[str, JSON] = {
        "attempt": event.attempt,
        "rejected": event.rejected is not None,
        "finish": event.finish_reason,
        "error": event.error,
    }
    if level in (Level.TEXT, Level.JSON):
        content["text"] = event.text
        content["reasoning"] = event.reasoning
        content["refusal"] = event.refusal
        content["calls"] = [
            {"name": call.name, "arguments": _arguments(call.arguments, call.raw, level)} for call in event.tool_calls
        ]
        return content
    content["prompt"] = list(event.prompt_token_ids or ())
    content["tokens"] = list(event.token_ids or ())
    if level is Level.LOGPROBS:
        content["logprobs"] = list(event.logprobs or ())
    return content


def _behaviour(event: AnyEvent) -> dict[str, JSON] | None:
    """Return the action of an event: what an agent did, whatever words it used; None where it did nothing."""
    match event:
        case ModelCall(rejected=None, error=None):
            return {
                "kind": "model",
                "calls": [_action(call) for call in event.tool_calls],
                "refused": event.refusal is not None,
            }
        case ToolCall():
            return _tool_action(event, Level.JSON)
        case SubagentCall():
            return {"kind": "subagent", "name": event.name, "input": event.input}
        case Verification():
            return {"kind": "verification", "passed": event.passed}
        case RolloutEnded():
            return {"kind": "ended", "outcome": event.outcome}
    return None


def _tool_action(event: AnyEvent, level: Level) -> dict[str, JSON] | None:
    """Return a tool call without its result; None for any other event."""
    if not isinstance(event, ToolCall):
        return None
    return {"kind": "tool", "name": event.name, "arguments": _arguments(event.arguments, event.raw, level)}


def _action(call: ToolRequest) -> Mapping[str, JSON]:
    return {"name": call.name, "arguments": _arguments(call.arguments, call.raw, Level.JSON)}


def _arguments(arguments: JSON, raw: str | None, level: Level) -> JSON:
    """Return the arguments as emitted at the text level, as values below it."""
    if level in (Level.JSON, Level.BEHAVIOUR):
        return arguments if arguments is not None else raw
    return raw if raw is not None else arguments
