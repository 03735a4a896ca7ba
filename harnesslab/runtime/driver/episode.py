"""The state of one rollout while it runs, shared by its boundaries."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import EnginePort, Sandbox
from harnesslab.core.running.recipe import Recipe
from harnesslab.core.running.record import Miss, Record, RequestKeys
from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.answers import SERVED
from harnesslab.core.trace.events import AnyEvent, HarnessAction, ModelCall, ToolCall
from harnesslab.core.trace.sent import SentBodies
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.runtime.driver.queueing import QueueTime

MOST_EVENTS = 200_000
"""Events of one rollout: a harness that floods its worker fills neither memory nor the store."""
STORE_EVERY_S = 0.25
"""Seconds between two writes of a recorded rerun: what is served can be served again."""


CALLS_A_STEP = 64
"""Calls of the model that one step may hold, so that no harness draws answers without end within its step budget."""


class Writer(Protocol):
    """What stores the events of a running rollout."""

    builder: TraceBuilder

    def flush(self) -> None:
        """Store the events added since the last time."""


class Ended(Exception):
    """The episode is over."""

    def __init__(self, outcome: Outcome, why: str = "", *, origin: str = "") -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why
        self.origin = origin
        """Of a crash, see `core.running.rollout.CrashOrigin`."""


class Diverged(Ended):
    """A rerun left its record: a miss, or an environment that drifted."""

    def __init__(self, miss: Miss) -> None:
        super().__init__(Outcome.INTERRUPTED, f"the rerun left its record: {miss.why}")
        self.miss = miss


@dataclass(slots=True)
class Counts:
    """What a rollout itself sent and ran: how a live rerun is proven live."""

    requests: int = 0
    answers: int = 0
    response_ids: int = 0
    output_tokens: int = 0
    commands: int = 0
    served: int = 0
    """Answers taken from a record."""

    def to_json(self) -> dict[str, JSON]:
        """Return the counts as JSON."""
        counts: dict[str, JSON] = asdict(self)
        return counts


@dataclass(slots=True)
class DrivenEpisode:
    """One rollout's boundaries, its recorder and where it stands."""

    recipe: Recipe
    writer: Writer
    engine: EnginePort
    sandbox: Sandbox
    stopped: Callable[[], bool]
    plan: RerunPlan | None = None
    record: Record | None = None
    rules: Sequence[str] = ()
    seed_honoured: bool | None = None
    model: str = ""
    counts: Counts = field(default_factory=Counts)
    step: int = -1
    attempt: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    """How often each agent's model, the simulated user and the clock were asked: the place in their streams."""
    unbuilt: list[ToolCall] = field(default_factory=list)
    """Commands whose results were served and that did not run here, so that the work folder lacks what they did."""
    calls_in_step: int = 0
    """Calls of the model within the step: rejected answers and other agents' calls open none of their own."""
    missed: Miss | None = None
    """The first miss of a rerun that went on live after it."""
    began: float = field(default_factory=time.monotonic)
    queue: QueueTime = field(default_factory=QueueTime)
    """How long it could do nothing but wait for its turn at an engine."""
    keys: RequestKeys = field(init=False)
    bodies: SentBodies = field(default_factory=SentBodies)
    rejected: bool = False
    """Whether the harness rejected the model's last answer, so that the next call is a retry of the step."""
    said: list[JSON] = field(default_factory=list)
    """The conversation with the simulated user, as that user sees it."""
    _held: ModelCall | ToolCall | None = None
    _stored: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.keys = RequestKeys(self.writer.builder.payloads, self.rules)

    def at(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    @property
    def deadline(self) -> float:
        """When its time budget is used up, monotonic; later by what it waits for its turn at an engine."""
        return self.began + self.recipe.case.budgets.wall + self.queue.seconds

    def remaining(self) -> float:
        """Seconds of its time budget that are left; raises `Ended` where none is, or where it was stopped."""
        if self.stopped():
            raise Ended(Outcome.INTERRUPTED, "stopped on request")
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise Ended(Outcome.TIMEOUT, f"the time budget of {self.recipe.case.budgets.wall:g} s is used up")
        return seconds

    def switch(self, boundary: str) -> Switch:
        """Say where a boundary's answers come from at this step."""
        if self.plan is None or self.missed is not None:
            return Switch.LIVE
        if self.plan.forked(max(self.step, 0)):
            return Switch.RECORDED
        return self.plan.switch(boundary)

    @property
    def rebuilding(self) -> bool:
        """Whether this step is before the fork, so that commands run to rebuild the environment."""
        return self.plan is not None and self.missed is None and self.plan.forked(max(self.step, 0))

    def another_call(self) -> None:
        """Count a call of the model that opens no step; raises `Ended` where a step has had too many."""
        self.calls_in_step += 1
        if self.calls_in_step >= CALLS_A_STEP:
            raise Ended(Outcome.STEP_CAP, f"one step asked the model {CALLS_A_STEP} times")

    def open_step(self) -> None:
        """Begin the next step; raises `Ended` where the step budget is used up."""
        if self.step + 1 >= self.recipe.case.budgets.steps:
            raise Ended(Outcome.STEP_CAP, f"the step budget of {self.recipe.case.budgets.steps} is used up")
        self.step += 1
        self.calls_in_step = 0

    def bound(self) -> None:
        """Raise `Ended` where an untrusted program has made more events than a rollout may have."""
        if len(self.writer.builder.events) >= MOST_EVENTS:
            raise Ended(Outcome.CRASH, f"the harness made more than {MOST_EVENTS:,} events", origin="harness")

    def hold(self, event: ModelCall | ToolCall) -> None:
        """Keep a call back until the harness's next message, which may reject it or say what the model is shown."""
        self.release()
        self._held = event

    def amend(self, **changes: JSON) -> bool:
        """Change the held call; False where there is none."""
        if self._held is None:
            return False
        self._held = msgspec.structs.replace(self._held, **changes)
        return True

    @property
    def held(self) -> ModelCall | ToolCall | None:
        """The call that is kept back."""
        return self._held

    def release(self) -> None:
        """Add the held call to the trace."""
        held, self._held = self._held, None
        if isinstance(held, ModelCall):
            self.writer.builder.answer(held)
        elif held is not None:
            self.writer.builder.add(held)

    def settle(self) -> None:
        """Store what is known so far, before something that may take long: who watches sees it, a kill keeps it."""
        self.release()
        self.writer.flush()

    def store(self) -> None:
        """Store the events added since the last time: at once, but now and then where all of them are served."""
        if self.plan is not None and self.plan.mode is Mode.RECORDED:
            now = time.monotonic()
            if now - self._stored < STORE_EVERY_S:
                return
            self._stored = now
        self.writer.flush()

    def add(self, event: AnyEvent) -> None:
        """Add an event after the held one."""
        self.release()
        self.writer.builder.add(event)

    def miss(self, nearest: Miss, *, live: bool) -> None:
        """Record a miss; raises `Diverged` unless the rerun goes on live."""
        if not live:
            raise self.left(nearest)
        self._note_miss("went live after a miss", nearest)
        self.missed = nearest

    def left(self, nearest: Miss) -> Diverged:
        """Record that the rerun left its record, and return what to raise."""
        self._note_miss("left the record", nearest)
        return Diverged(nearest)

    def _note_miss(self, name: str, found: Miss) -> None:
        self.add(HarnessAction(name=name, detail=found.to_json(), step=max(self.step, 0), at=self.at()))


def labelled(served: str, extra: Mapping[str, JSON] | None = None) -> dict[str, JSON]:
    """Return an event's `extra` with where its answer came from; a live answer needs no word."""
    return {**(extra or {}), **({SERVED: served} if served else {})}
