"""How comparison reads a trace: by position, so that a stored trace of any length is never read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.trace.events import AnyEvent, ModelCall
from harnesslab.core.trace.trace import Trace, messages_at


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """Which case a trace is of, and where it was read; empty where nobody said."""

    case: str = ""
    format: str = ""
    """The importer that read it; empty for what a worker recorded."""
    digest: str = ""
    """Of the source's bytes."""
    position: int = 0
    """Among the rollouts of its source."""
    crash_origin: str = ""
    """Whose a crash was, as recorded; see `core.running.rollout.CrashOrigin`."""


class TraceReader(Protocol):
    """A readable trace with the facts of its rollout that comparing needs."""

    @property
    def identity(self) -> SourceIdentity:
        """Its case and its source."""

    @property
    def manifest(self) -> Manifest:
        """The conditions it ran under."""

    @property
    def outcome(self) -> str:
        """How it ended."""

    @property
    def kinds(self) -> Sequence[str]:
        """The tag of each event."""

    @property
    def steps(self) -> Sequence[int]:
        """The step of each event."""

    def event(self, index: int) -> AnyEvent:
        """Return one event."""

    def messages(self, index: int, start: int = 0) -> list[JSON]:
        """Return the messages, from the `start`-th on, of the model call at an event position."""

    def payload(self, position: int) -> JSON:
        """Return one payload, such as the tool schemas of a model call."""

    def path(self, contract: Contract) -> comparators.Path:
        """Return the path under a contract; raises `NotComparable`."""


class MemoryTraceReader:
    """A trace reader over a trace in memory."""

    def __init__(self, trace: Trace, manifest: Manifest, outcome: str, identity: SourceIdentity | None = None) -> None:
        self._trace = trace
        self.identity = identity or SourceIdentity(case=str(manifest.value("panel.case") or ""))
        self.manifest = manifest
        self.outcome = outcome
        self.kinds = [kind_of(event) for event in trace.events]
        self.steps = [event.step for event in trace.events]
        self._paths: dict[str, comparators.Path] = {}

    def event(self, index: int) -> AnyEvent:
        """Return one event."""
        return self._trace.events[index]

    def messages(self, index: int, start: int = 0) -> list[JSON]:
        """Return the messages, from the `start`-th on, of the model call at an event position."""
        return messages_at(self._trace, index)[start:]

    def payload(self, position: int) -> JSON:
        """Return one payload."""
        return self._trace.payloads[position]

    def path(self, contract: Contract) -> comparators.Path:
        """Return the path under a contract, computed once."""
        if contract.key not in self._paths:
            self._paths[contract.key] = comparators.path(self._trace, contract)
        return self._paths[contract.key]


def kind_of(event: AnyEvent) -> str:
    """Return an event's tag, such as `model_call`."""
    return str(event.__struct_config__.tag)


def turns(reader: TraceReader) -> int:
    """Count agent turns: the distinct steps with a model call, or with anything where there is none."""
    tag = kind_of(ModelCall())
    stepped = {step for step, kind in zip(reader.steps, reader.kinds, strict=True) if kind == tag}
    return len(stepped) or len(set(reader.steps))
