"""Comparable content: what of an event counts at a level, and the digests that comparing runs on.

Each event that counts at a level has two digests: `own`, of what happened there, and one that adds the input
it was given. `path` chains the latter, so equal paths mean equal behaviour so far, and the first divergence of
two traces is found by bisection, without reading any payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harnesslab.core.canonical import JSON, canonical_bytes, in_order, nested_within, parse, sha256
from harnesslab.core.contracts import scrub
from harnesslab.core.contracts.content import ANSWER_KEYS, behaviour, output, record, tool_action
from harnesslab.core.contracts.contract import Contract, Level, Scope
from harnesslab.core.errors import NotComparable
from harnesslab.core.trace.events import AnyEvent, ModelCall
from harnesslab.core.trace.renaming import ID_KEYS, Renamer
from harnesslab.core.trace.seals import ListDigests
from harnesslab.core.trace.trace import Trace

EMBEDDED_DEPTH = 60
"""JSON inside text that is nested deeper than this is compared as text."""


class Payloads(Protocol):
    """A payload table, or something that reads one."""

    def __getitem__(self, position: int, /) -> JSON:
        """Return the payload at a position."""


WIDTH = 16
"""Bytes kept of each comparable digest."""
_START = bytes(WIDTH)


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


def path(trace: Trace, contract: Contract) -> Path:
    """Return a trace's path under a contract; raises `NotComparable` where the trace lacks what it compares."""
    builder = PathBuilder(contract, trace.payloads)
    for event in trace.events:
        builder.add(event)
    return builder.path()


class PathBuilder:
    """Makes a path event by event, so that a trace need not be in memory as a whole.

    `scrubber` may be one that other builders with the same rules use.
    """

    def __init__(self, contract: Contract, payloads: Payloads, scrubber: scrub.Scrubber | None = None) -> None:
        self.contract = contract
        self._reader = ContentReader(contract, payloads, scrubber)
        self._index = 0
        self._calls = 0
        self._indices: list[int] = []
        self._own, self._chain = bytearray(), bytearray()
        self._last = _START

    def add(self, event: AnyEvent) -> None:
        """Take the next event; raises `NotComparable` where it lacks what the contract compares."""
        if isinstance(event, ModelCall) and event.error is None:
            self._calls += 1
            if not _supported(event, self.contract.level):
                raise self._not_comparable()
        digests = self._reader.digests(event)
        self._index += 1
        if digests is None:
            return
        self._last = sha256(self._last + digests[1])[:WIDTH]
        self._indices.append(self._index - 1)
        self._own += digests[0][:WIDTH]
        self._chain += self._last

    def path(self) -> Path:
        """Return the path of all events added; raises `NotComparable` where none of them is what is compared."""
        if self.contract.level in (Level.LOGPROBS, Level.TOKEN_IDS) and not self._calls:
            raise self._not_comparable()
        return Path(self.contract, self._indices, bytes(self._own), bytes(self._chain), self._reader.removed)

    def _not_comparable(self) -> NotComparable:
        return NotComparable(f"the trace does not record {self.contract.level.value}")


def _supported(call: ModelCall, level: Level) -> bool:
    """Say whether a model call holds what a level compares."""
    if level is Level.TOKEN_IDS:
        return call.token_ids is not None
    return level is not Level.LOGPROBS or call.logprobs is not None


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


class ContentReader:
    """Reads a trace's events in order into comparable content under one contract."""

    def __init__(self, contract: Contract, payloads: Payloads, scrubber: scrub.Scrubber | None = None) -> None:
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
        answered = output(event, self._level)
        return sha256(canonical_bytes(self.rewrite({key: answered[key] for key in ANSWER_KEYS})))

    def content(self, event: AnyEvent) -> JSON:
        """Return what of an event counts, with ids renamed and rules applied, or None where nothing does."""
        if self._scope is Scope.TOOL_CALLS:
            raw = tool_action(event, self._level)
        else:
            raw = behaviour(event) if self._level is Level.BEHAVIOUR else record(event, self._level)
        found = None if raw is None else self.rewrite(raw)
        if self._scope is Scope.TOOL_CALLS or self._level is Level.BEHAVIOUR:
            self._renamer.note(record(event, Level.TEXT))
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
