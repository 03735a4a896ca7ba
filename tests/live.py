"""Stored rollouts that can be rerun, and attempts of reruns that have ended, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from django.utils import timezone

from harnesslab.actions.engines.registration import register
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.recipe import HarnessSource, Recipe, SideEffects
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Origin, Outcome, Replayability
from harnesslab.core.trace.events import RolloutStarted, ToolCall
from harnesslab.core.trace.trace import Trace
from harnesslab.requests.engines import EngineRequest
from harnesslab.store.models import Engine, Job, JobState, RegressionCase, Rerun, Rollout
from harnesslab.store.text import frozen
from tests.recordings import COMMANDS, recording

ENGINE = "E"


def engine(name: str = ENGINE) -> Engine:
    """Register an engine that nobody answers at."""
    known = Engine.objects.filter(name=name).first()
    return known or register(EngineRequest(name=name, kind="openai", address="http://127.0.0.1:9", model="m-1"))


def rerunnable(
    commands: Sequence[str] = COMMANDS, *, effects: SideEffects = SideEffects.SANDBOXED, trial: int = 0
) -> Rollout:
    """Store a rollout with a recipe; it has no repository, so that a revision's name is kept as it is given."""
    engine()
    made = recording(commands, trial=trial, origin=Origin.LIVE, replayability=Replayability.LIVE, engine=ENGINE)
    rollout = store_recording(made, None)
    recipe = Recipe(HarnessSource("loop", ""), CaseDefinition("case-1", "do it"), ENGINE, tools={"run": effects})
    Rollout.objects.filter(pk=rollout.pk).update(recipe=frozen(recipe.to_json()), grade=Replayability.LIVE, missing="")
    return Rollout.objects.get(pk=rollout.pk)


def asked(parent: Rollout, plan: RerunPlan | None = None, regression: RegressionCase | None = None) -> Rerun:
    """Ask for a rerun."""
    return reruns.request(parent.pk, plan or RerunPlan(mode=Mode.LIVE, attempts=3), user=None, regression=regression)


def attempted(
    rerun: Rerun, attempt: int, *, same: bool | None, outcome: Outcome = Outcome.SOLVED, bad: bool | None = None
) -> Rollout:
    """Store a rollout as what an attempt made, and end its job."""
    mode = Mode(str(rerun.plan["mode"])).value
    made = store_recording(recording(outcome=outcome, origin=Origin.LIVE, tags=(f"{rerun.pk} {attempt}",)), None)
    Rollout.objects.filter(pk=made.pk).update(
        rerun=rerun, attempt=attempt, mode=mode, facts=frozen({"same": same, "bad": bad})
    )
    Job.objects.filter(group=f"rerun {rerun.pk}", payload__attempt=attempt).update(
        state=JobState.DONE, result={"rollout": made.pk}
    )
    return Rollout.objects.get(pk=made.pk)


def running(rerun: Rerun, attempt: int) -> Job:
    """Let an attempt's job run."""
    job = Job.objects.get(group=f"rerun {rerun.pk}", payload__attempt=attempt)
    Job.objects.filter(pk=job.pk).update(
        state=JobState.RUNNING, started_at=timezone.now(), done=2, message="step 2: 20 tokens, 9.5 tokens/s, 2 s"
    )
    return Job.objects.get(pk=job.pk)


def timed_out(step: int) -> Rollout:
    """Store a rerunnable rollout whose command in a step timed out."""
    engine()
    made = recording(origin=Origin.LIVE, replayability=Replayability.LIVE)
    events = tuple(
        msgspec.structs.replace(event, timed_out=True, exit_code=None)
        if isinstance(event, ToolCall) and event.step == step
        else event
        for event in made.trace.events
    )
    changed = replace(made, trace=Trace(events, made.trace.payloads, made.trace.digests))
    assert isinstance(events[0], RolloutStarted)
    rollout = store_recording(changed, None)
    recipe = Recipe(
        HarnessSource("loop", ""), CaseDefinition("case-1", "do it"), ENGINE, tools={"run": SideEffects.SANDBOXED}
    )
    Rollout.objects.filter(pk=rollout.pk).update(recipe=frozen(recipe.to_json()), grade=Replayability.LIVE, missing="")
    return Rollout.objects.get(pk=rollout.pk)
