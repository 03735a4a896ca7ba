"""What a rollout's trace adds up to: calls, tokens, attempts, repairs, firings, tools and times."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import AnyEvent, HarnessAction, ModelCall, ToolCall, Usage, Verification
from harnesslab.core.trace.tool_uses import LARGEST, ToolTally, ToolUse, named, seconds_of
from harnesslab.core.trace.trace import Trace

_DIGITS = re.compile(r"[0-9]+")
_SERVED = "served"
_LIVE = "live"
_HANDED_IN = frozenset({Outcome.SOLVED, Outcome.FAILED_VERIFICATION, Outcome.VERIFY_TIMEOUT})
_STOPPED = frozenset({Outcome.STEP_CAP, Outcome.TIMEOUT, Outcome.NO_VALID_ACTION, Outcome.REFUSED})


class Repair(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers that were rejected for one reason."""

    times: int = 0
    recovered: int = 0
    """How often a later attempt of the same step was accepted."""


class TraceStatistics(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts over one trace; what no event states stays None, never 0."""

    steps: int = 0
    """Turns: steps at which a model was asked."""
    actions: int = 0
    """Tool calls, those that the harness added by itself included; what harness-training calls steps used."""
    calls: int = 0
    """Model calls that an engine answered; those served from a cache or a record are in `served`."""
    served: int = 0
    input: int | None = None
    """Tokens of the calls in `calls`, cached ones included."""
    cached: int | None = None
    output: int | None = None
    """Reasoning included."""
    reasoning: int | None = None
    served_input: int | None = None
    """Tokens of the calls in `served`: shown, never billed."""
    served_output: int | None = None
    unstated: int = 0
    """Calls in `calls` that state no tokens."""
    first_attempts: int = 0
    """How often the model was asked for an action and answered; a further attempt is part of the same asking."""
    first_valid: int = 0
    """Those of them whose first answer was not rejected."""
    repairs: Mapping[str, Repair] = msgspec.field(default_factory=dict)
    """By kind of fault."""
    fatal: int = 0
    """Steps in `first_attempts` of which no answer was a valid action."""
    submitted: bool | None = None
    """Whether the work was handed in to be judged; None where the trace can't tell."""
    firings: Mapping[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    """By mechanism, the steps at which it fired, in order."""
    tools: Mapping[str, ToolUse] = msgspec.field(default_factory=dict)
    waited: float = 0.0
    """Seconds that requests waited for their turn."""
    model: float = 0.0
    """Seconds of model calls, waiting left out."""
    tool: float = 0.0
    verify: float = 0.0
    tests_passed: int | None = None
    tests: int | None = None

    def to_json(self) -> JSON:
        """Return the counts as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> TraceStatistics:
        """Read counts that `to_json` wrote."""
        return msgspec.convert(document, type=cls)


def trace_statistics(trace: Trace, outcome: Outcome) -> TraceStatistics:
    """Count one trace in one pass."""
    count = _Count()
    for event in trace.events:
        count.add(event)
    return count.closed(trace, outcome)


@dataclass(slots=True)
class _Asking:
    """One request of an agent for an action, with its attempts so far."""

    step: int
    attempt: int
    answers: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Kinds of fault that wait for a later attempt."""
    accepted: bool = False
    paid: int | None = None
    """Output tokens of the last answer that no named tool call has taken."""
    runs: list[str] = field(default_factory=list)
    """Tools that ran after an answer that named none."""


class _Count:
    """What is known of a trace so far."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = defaultdict(int)
        self._sums: dict[str, int] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._asking: dict[str, _Asking] = {}
        self._repairs: dict[str, list[int]] = {}
        self._firings: dict[str, dict[int, None]] = {}
        self._tools = ToolTally()
        self._judged = False
        self._tests: tuple[int, int] | None = None

    def add(self, event: AnyEvent) -> None:
        """Count one more event."""
        match event:
            case ModelCall():
                self._model(event)
            case ToolCall():
                self._tool(event)
            case HarnessAction(mechanism=str(mechanism)) if mechanism:
                self._firings.setdefault(named(self._firings, mechanism), {})[event.step] = None
            case Verification():
                self._verified(event)
            case _:
                pass

    def _model(self, event: ModelCall) -> None:
        served = _served(event)
        used = event.usage or Usage()
        if not served:
            self._seconds["model"] += seconds_of(event.latency)
            self._seconds["waited"] += seconds_of(event.extra.get("waited"))
        for name, value in (("input", used.input), ("output", used.output)):
            self._sum(f"served_{name}" if served else name, value)
        if not served:
            self._sum("cached", used.cache_read)
            self._sum("reasoning", used.reasoning)
        asking = self._asking_of(event)
        if event.error is not None:
            return
        self._numbers["served" if served else "calls"] += 1
        self._numbers["unstated"] += not served and used.input is None and used.output is None
        self._answered(asking, event)
        self._share(asking, [call.name for call in event.tool_calls], None if served else used.output)

    def _sum(self, name: str, value: int | None) -> None:
        if value is not None and value >= 0:
            self._sums[name] = self._sums.get(name, 0) + value

    def _asking_of(self, event: ModelCall) -> _Asking:
        """Return the asking that a call is an attempt of."""
        known = self._asking.get(event.agent)
        if known is not None and known.step == event.step and event.attempt > known.attempt:
            known.attempt = event.attempt
            return known
        if known is not None:
            self._close(known)
        self._asking[event.agent] = opened = _Asking(event.step, event.attempt)
        return opened

    def _answered(self, asking: _Asking, event: ModelCall) -> None:
        first, asking.answers = asking.answers == 0, asking.answers + 1
        self._numbers["first_attempts"] += first
        if event.rejected is None:
            self._numbers["first_valid"] += first
            asking.accepted = True
            for kind, times in asking.rejected.items():
                self._repairs[kind][1] += times
            asking.rejected.clear()
            return
        kind = named(self._repairs, fault(event.rejected))
        self._repairs.setdefault(kind, [0, 0])[0] += 1
        asking.rejected[kind] += 1

    def _share(self, asking: _Asking, names: list[str], output: int | None) -> None:
        """Give the tokens of an answer to the tools it named, else to those that run before the next one."""
        self._settle(asking)
        if names:
            self._tools.pay(names, output)
        else:
            asking.paid = output

    def _settle(self, asking: _Asking) -> None:
        """Give the tokens of an answer that named no tool to what ran after it."""
        if asking.runs:
            self._tools.pay(asking.runs, asking.paid)
        asking.paid, asking.runs = None, []

    def _tool(self, event: ToolCall) -> None:
        self._tools.ran(event)
        self._numbers["actions"] += 1
        self._seconds["tool"] += seconds_of(event.latency)
        asking = self._asking.get(event.agent)
        if asking is not None and asking.paid is not None:
            asking.runs.append(event.name)

    def _verified(self, event: Verification) -> None:
        self._judged = self._judged or event.passed is not None
        self._seconds["verify"] += seconds_of(event.latency)
        if event.tests:
            self._tests = sum(test.passed is True for test in event.tests), len(event.tests)

    def _close(self, asking: _Asking) -> None:
        self._settle(asking)
        self._numbers["fatal"] += asking.answers > 0 and not asking.accepted

    def closed(self, trace: Trace, outcome: Outcome) -> TraceStatistics:
        """Return what the whole trace adds up to."""
        for asking in self._asking.values():
            self._close(asking)
        passed, tests = self._tests or (None, None)
        return TraceStatistics(
            steps=trace.steps if self._asking else 0,
            submitted=_submitted(outcome, judged=self._judged),
            repairs={kind: Repair(times, recovered) for kind, (times, recovered) in self._repairs.items()},
            firings={name: tuple(steps) for name, steps in self._firings.items()},
            tools=self._tools.whole(),
            tests_passed=passed,
            tests=tests,
            **{name: value for name, value in self._sums.items() if value <= LARGEST},
            **self._numbers,
            **self._seconds,  # type: ignore[arg-type]
        )


def fault(reason: str) -> str:
    """Return the kind of fault that a reason names: what is before its first colon, numbers left out."""
    return _DIGITS.sub("#", reason.partition(":")[0].strip()) or "rejected"


def _served(event: ModelCall) -> bool:
    """Say whether an answer came from a cache or a record; one that went live after a miss was asked for."""
    source = event.extra.get(_SERVED)
    return event.served_from_cache is True or (isinstance(source, str) and not source.startswith(_LIVE))


def _submitted(outcome: Outcome, *, judged: bool) -> bool | None:
    if outcome in _HANDED_IN:
        return True
    if outcome in _STOPPED:
        return False
    return True if judged else None
