"""What a rollout's trace adds up to: calls, tokens, attempts, repairs, firings, tools and times.

The only counter: rows of lists, efficiency, decisions and MLflow spans all go by it and by `core.trace.answers`.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.askings import Askings, Repair
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.answers import REQUESTOR, USER, is_served, served, spent, stated_usage
from harnesslab.core.trace.events import AnyEvent, HarnessAction, ModelCall, RolloutEnded, ToolCall, Verification
from harnesslab.core.trace.stated import total_usage
from harnesslab.core.trace.tool_uses import LARGEST, ToolUse, named, time_of
from harnesslab.core.trace.trace import Trace

VERSION = 3
"""Of the counter. It grows with each change by which a stored trace would be counted otherwise; `harnesslab recount`
and the sweeper bring stored rows to it. What version 1 wrote states none: it took answers from a record for spent
tokens in the columns, and an unstated time for 0 s. Version 2 did not say whether the verdict was served, and took no
totals that a source states for the whole where no call states any."""
_NOTHING_ASKED = {"input": 0, "cached": 0, "output": 0, "reasoning": 0, "model": 0.0, "waited": 0.0}
_SECONDS = ("waited", "model", "tool", "verify")
_HANDED_IN = frozenset({Outcome.SOLVED, Outcome.FAILED_VERIFICATION, Outcome.VERIFY_TIMEOUT})
_STOPPED = frozenset({Outcome.STEP_CAP, Outcome.TIMEOUT, Outcome.NO_VALID_ACTION, Outcome.REFUSED})


class TraceStatistics(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts over one trace; what no event states stays None, never 0."""

    version: int = 1
    """Of the counter that made them."""
    steps: int = 0
    """Turns: steps at which a model was asked."""
    actions: int = 0
    """Tool calls, those that the harness added by itself included and those of a simulated user not; what
    harness-training calls steps used."""
    calls: int = 0
    """Model calls that an engine answered; those served from a cache or a record are in `served`."""
    served: int = 0
    input: int | None = None
    """Tokens spent, cached ones included: of the calls in `calls`, and of failed requests that state any; where none
    does, what the source states for the whole rollout.

    0 where every request was served. A call that states none adds nothing: see `unstated`.
    """
    cached: int | None = None
    output: int | None = None
    """Reasoning included."""
    reasoning: int | None = None
    served_input: int | None = None
    """Tokens of the calls in `served`: shown, never spent."""
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
    waited: float | None = None
    """Seconds that requests waited for their turn."""
    model: float | None = None
    """Seconds of the calls in `calls` and of failed requests, waiting left out."""
    tool: float | None = None
    verify: float | None = None
    elapsed: float | None = None
    """Seconds from the first event that states its time to the last."""
    verdict_served: bool = False
    """Whether the last verdict came from a record: it says nothing of this rollout."""
    tests_passed: int | None = None
    tests: int | None = None

    def to_json(self) -> JSON:
        """Return the counts as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> TraceStatistics:
        """Read counts that `to_json` wrote, of any version: 0 s in the first says that no event may state a time."""
        found = msgspec.convert(document, type=cls)
        if found.version > 1:
            return found
        unknown = {name: None for name in _SECONDS if not getattr(found, name)}
        return msgspec.structs.replace(found, **unknown)


def trace_statistics(trace: Trace, outcome: Outcome) -> TraceStatistics:
    """Count one trace in one pass."""
    return Tally.of(trace.events).whole(outcome)


class Tally:
    """What the events so far add up to, in time linear in them however often it is asked."""

    def __init__(self) -> None:
        self.events = 0
        self._steps: set[int] = set()
        self._numbers: Counter[str] = Counter()
        self._sums: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._span: tuple[float, float, int] | None = None
        self._billable = self._free = 0
        self._askings = Askings()
        self._firings: dict[str, dict[int, None]] = {}
        self._judged = self._verdict_served = False
        self._tests: tuple[int, int] | None = None

    @classmethod
    def of(cls, events: Iterable[AnyEvent]) -> Tally:
        """Count events that are there already."""
        tally = cls()
        for event in events:
            tally.add(event)
        return tally

    def add(self, event: AnyEvent) -> None:
        """Count one more event."""
        self.events += 1
        self._at(event.at)
        match event:
            case ModelCall():
                self._model(event)
            case ToolCall() if event.extra.get(REQUESTOR) == USER:
                pass  # no action of the agent
            case ToolCall():
                self._askings.ran(event)
                self._numbers["actions"] += 1
                self._time("tool", event.latency)
            case HarnessAction(mechanism=str(mechanism)) if mechanism:
                self._firings.setdefault(named(self._firings, mechanism), {})[event.step] = None
            case Verification():
                self._verified(event)
            case RolloutEnded():
                self._ended(event)
            case _:
                pass

    def numbers(self) -> TraceStatistics:
        """Return what a row of a list shows of the trace so far, in constant time: all else is at its default."""
        first, last, times = self._span or (0.0, 0.0, 0)
        known: dict[str, Any] = {name: value for name, value in self._sums.items() if value <= LARGEST}
        if self._free and not self._billable:  # nothing was asked for, which is known to cost nothing
            known |= _NOTHING_ASKED
        return TraceStatistics(
            version=VERSION,
            steps=len(self._steps),
            elapsed=last - first if times > 1 and math.isfinite(last - first) else None,
            **{**known, **self._numbers, **self._seconds},
        )

    def whole(self, outcome: Outcome) -> TraceStatistics:
        """Return what the events add up to where they are a whole trace; more can still be added."""
        askings = copy.deepcopy(self._askings)  # closing ends what is open
        askings.close()
        passed, tests = self._tests or (None, None)
        return msgspec.structs.replace(
            self.numbers(),
            submitted=_submitted(outcome, judged=self._judged),
            first_attempts=askings.first_attempts,
            first_valid=askings.first_valid,
            fatal=askings.fatal,
            repairs=askings.repairs,
            tools=askings.tools.whole(),
            firings={name: tuple(steps) for name, steps in self._firings.items()},
            verdict_served=self._verdict_served,
            tests_passed=passed,
            tests=tests,
        )

    def _model(self, event: ModelCall) -> None:
        free, cost, tokens = served(event), spent(event), stated_usage(event)
        self._steps.add(event.step)
        self._free += free
        self._billable += not free
        self._sum("input", cost.input)
        self._sum("output", cost.output)
        self._sum("cached", cost.cache_read)
        self._sum("reasoning", cost.reasoning)
        if free:
            self._sum("served_input", tokens.input)
            self._sum("served_output", tokens.output)
        else:
            self._time("model", event.latency)
            self._time("waited", event.extra.get("waited"))
        self._askings.add_call(event, cost.output)
        if event.error is None:
            self._numbers["served" if free else "calls"] += 1
            self._numbers["unstated"] += not free and tokens.input is None and tokens.output is None

    def _ended(self, event: RolloutEnded) -> None:
        """Take the totals that the source states for the whole, where no call states any."""
        if self._free or {"input", "output"} & self._sums.keys():
            return
        whole = total_usage(event)
        for name, value in (
            ("input", whole.input),
            ("output", whole.output),
            ("cached", whole.cache_read),
            ("reasoning", whole.reasoning),
        ):
            self._sum(name, value)

    def _verified(self, event: Verification) -> None:
        self._judged = self._judged or event.passed is not None
        self._verdict_served = is_served(event)
        self._time("verify", event.latency)
        if event.tests:
            self._tests = sum(test.passed is True for test in event.tests), len(event.tests)

    def _sum(self, name: str, value: int | None) -> None:
        if value is not None:
            self._sums[name] = self._sums.get(name, 0) + value

    def _time(self, name: str, value: JSON) -> None:
        seconds = time_of(value)
        if seconds is not None:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def _at(self, at: float | None) -> None:
        if at is None or not math.isfinite(at):
            return
        first, last, times = self._span or (at, at, 0)
        self._span = min(first, at), max(last, at), times + 1


def _submitted(outcome: Outcome, *, judged: bool) -> bool | None:
    if outcome in _HANDED_IN:
        return True
    if outcome in _STOPPED:
        return False
    return True if judged else None
