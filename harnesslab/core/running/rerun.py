"""What a rerun is: a mode, a switch for every boundary, a step to fork at, and what it would cost.

*Recorded*: the harness runs, everything else is served from the record; it costs nothing and shows only that the
record is complete. *Live*: everything is executed anew. *Hybrid*: a switch for each boundary. A *fork* serves the
first k steps and re-executes their commands to rebuild the environment, and is live from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.running.recipe import SAME, Recipe, SideEffects, side_effects
from harnesslab.core.trace.events import ModelCall, ToolCall, UserTurn, boundary
from harnesslab.core.trace.trace import Trace

MOST_ATTEMPTS = 1000
NEAR_DEADLINE = 0.8
"""A command that took this share of its time limit may not end within it next time."""


class Mode(StrEnum):
    """What a rerun executes anew; part of every finding made with it."""

    RECORDED = "recorded"
    LIVE = "live"
    HYBRID = "hybrid"


class Switch(StrEnum):
    """Where a boundary's answers come from."""

    RECORDED = "recorded"
    LIVE = "live"
    FAIL = "fail"
    """Ask nothing: the boundary answers with an error."""


class OnMiss(StrEnum):
    """What happens when the record has no answer."""

    STOP = "stop"
    LIVE = "live"
    """Go live from there, labelled."""


SWITCHED = ("model", "tool", "user", "clock")
"""Boundaries a worker controls; `tool:<name>` switches one tool."""


class RerunPlan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request to execute a rollout again."""

    mode: Mode
    switches: Mapping[str, Switch] = msgspec.field(default_factory=dict)
    """For mode hybrid: by boundary; what is not named is recorded."""
    on_miss: OnMiss = OnMiss.STOP
    from_step: int | None = None
    """Fork: the first step that is not served."""
    attempts: int = 1
    engine: str = ""
    """Name of a registered engine; empty for the one it was recorded with."""
    temperature: float | None = None
    max_tokens: int | None = None
    seed: str = SAME
    """`same` as recorded, `drawn` anew for each attempt, or a root seed in decimal."""
    revision: str = ""
    """Another revision of the harness; empty for the recorded one."""
    self_test: bool = False
    """Serve a record with one altered answer that is known to flow on: it must diverge."""

    @property
    def overrides(self) -> Mapping[str, JSON]:
        """Settings that it changes in every request."""
        stated = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {name: value for name, value in stated.items() if value is not None}

    def switch(self, name: str) -> Switch:
        """Say where a boundary's answers come from once the fork is past."""
        match self.mode:
            case Mode.RECORDED:
                return Switch.RECORDED
            case Mode.LIVE:
                return Switch.LIVE
            case Mode.HYBRID:
                general = self.switches.get(name.partition(":")[0], Switch.RECORDED)
                return self.switches.get(name, general)

    def forked(self, step: int) -> bool:
        """Say whether a step is served from the record to reach the fork."""
        return self.from_step is not None and step < self.from_step


def asks_engine(recipe: Recipe, plan: RerunPlan | None) -> bool:
    """Say whether a rollout may ask its engine; without a plan it is a fresh one, which does."""
    user = recipe.case.user
    if plan is None or (plan.mode is not Mode.RECORDED and plan.on_miss is OnMiss.LIVE):
        return True
    played = user is not None and bool(user.persona) and plan.switch("user") is Switch.LIVE
    return played or plan.switch("model") is Switch.LIVE


@dataclass(frozen=True, slots=True)
class Unsafe:
    """Why a fork can't be rebuilt, and the last step that can be forked at: that of the call which may not repeat.

    A fork at that step is safe, since the step itself runs anew and nothing of it has to be rebuilt.
    """

    why: str
    nearest: int


def unsafe_fork(trace: Trace, step: int | None = None) -> Unsafe | None:
    """Say why the environment before `step` can't be rebuilt by running its commands again; None where it can.

    Without a step, the environment is that at the end of the trace.
    """
    for event in trace.events:
        before = step is None or event.step < step
        if isinstance(event, ToolCall) and before and (why := _unrepeatable(event)):
            return Unsafe(why, event.step)
    return None


def _unrepeatable(call: ToolCall) -> str:
    what = f"{call.name} in step {call.step + 1}"
    if call.timed_out:
        return f"{what} timed out, and where it stops the next time is chance"
    if call.extra.get("left_running"):
        return f"{what} left processes running in the background"
    limit = call.extra.get("limit")
    near = isinstance(limit, int | float) and call.latency is not None and call.latency >= NEAR_DEADLINE * limit
    return f"{what} came near its time limit" if near else ""


@dataclass(frozen=True, slots=True)
class Control:
    """What a rerun can do with one boundary of a recording."""

    boundary: str
    events: int
    switches: tuple[Switch, ...]
    why: str = ""
    """Why a switch is missing, or what must be known of it."""


def controls(trace: Trace, tools: Mapping[str, SideEffects], *, kind: str) -> list[Control]:
    """List the boundaries of a recording and what can be switched; `kind` is the harness's: loop, command or none."""
    # the instruction is a turn of the user's too, but comes from the case: nobody answers it anew
    instruction = sum(isinstance(event, UserTurn) and not event.simulated for event in trace.events)
    counts = Counter(map(boundary, trace.events)) - Counter(user=instruction)
    counts.setdefault("model", 0)
    return [_control(name, count, tools, kind) for name, count in counts.items() if name != "harness"]


def _control(name: str, count: int, tools: Mapping[str, SideEffects], kind: str) -> Control:
    if kind == "none":
        return Control(name, count, (), "there is no harness that a worker can run again")
    every = tuple(Switch)
    if name == "model":
        return Control(name, count, every)
    if kind == "command":
        why = "a command harness runs its own tools; they are seen through the messages only"
        return Control(name, count, (Switch.LIVE,), why)
    head, _, tool = name.partition(":")
    if head == "tool" and side_effects(tools, tool) is SideEffects.EXTERNAL:
        why = "declared external: it is never executed again, its results are served from the record"
        return Control(name, count, (Switch.RECORDED, Switch.FAIL), why)
    if head in SWITCHED:
        return Control(name, count, every)
    return Control(name, count, (), "workers don't control this boundary")


@dataclass(frozen=True, slots=True)
class RerunCost:
    """What a rerun would cost, from the recorded run; None where the recording states no figure."""

    calls: int
    prompt_tokens: int | None
    output_tokens: int | None
    seconds: float | None
    """Of one attempt."""
    commands: int
    """Commands executed anew, those that rebuild the environment included."""

    def times(self, attempts: int) -> RerunCost:
        """Return the cost of several attempts."""
        tokens = [None if value is None else value * attempts for value in (self.prompt_tokens, self.output_tokens)]
        seconds = None if self.seconds is None else self.seconds * attempts
        return RerunCost(self.calls * attempts, tokens[0], tokens[1], seconds, self.commands * attempts)


def cost(trace: Trace, plan: RerunPlan, external: Collection[str] = ()) -> RerunCost:
    """Estimate one attempt from the recorded run: every call sends its whole transcript again, and external tools
    don't run."""
    asked = [
        event
        for event in trace.events
        if isinstance(event, ModelCall)
        and event.error is None
        and plan.switch("model") is Switch.LIVE
        and not plan.forked(event.step)
    ]
    run = [
        event
        for event in trace.events
        if isinstance(event, ToolCall) and event.name not in external and _runs(event, plan)
    ]
    return RerunCost(
        calls=len(asked),
        prompt_tokens=_sum([event.usage.input if event.usage else None for event in asked]),
        output_tokens=_sum([event.usage.output if event.usage else None for event in asked]),
        seconds=_seconds([event.latency for event in (*asked, *run)]),
        commands=len(run),
    )


def _runs(call: ToolCall, plan: RerunPlan) -> bool:
    return plan.forked(call.step) or plan.switch(f"tool:{call.name}") is Switch.LIVE


def _sum(values: list[int | None]) -> int | None:
    stated = [value for value in values if value is not None]
    return sum(stated) if len(stated) == len(values) else None


def _seconds(values: list[float | None]) -> float | None:
    stated = [value for value in values if value is not None]
    return sum(stated) if len(stated) == len(values) else None
