"""The job that runs a rollout: a fresh one of a case, or an attempt of a rerun."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.conf import settings
from django.db import DatabaseError, connections

from harnesslab.actions.engines import slots
from harnesslab.actions.engines.guarded import GuardedEngine
from harnesslab.actions.engines.registration import note_health
from harnesslab.actions.repositories import harness_cache
from harnesslab.actions.reruns import job_specs as orders
from harnesslab.actions.rollouts.recorder import Placement, Recorder, RolloutEnding
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.ports import EngineDown, SandboxRefused
from harnesslab.core.running.recipe import HarnessKind, Recipe
from harnesslab.core.running.record import altered
from harnesslab.core.running.rerun import asks_engine
from harnesslab.core.running.rollout import UNSCORABLE, Outcome, Recording, Replayability, Source
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.engines import engine_named
from harnesslab.queries.reruns.job_specs import JobSpec, load
from harnesslab.runtime.driver.episode import DrivenEpisode
from harnesslab.runtime.driver.run import Begun, Done, RolloutParts, run
from harnesslab.runtime.engines.catalogue import engine as make_engine
from harnesslab.runtime.sandboxes.choice import sandboxes_for
from workers.tasks.job_runs import JobRun

INFRA_TRIES = 3
"""How often a rollout is begun that infrastructure fails; each is kept, and the last one counts."""
PAUSE_S = 1.0
OWN_TOOLS = "tool: the agent runs its tools by itself, so that their results can't be served from a record"
log = logging.getLogger(__name__)


class RolloutFailed(HarnessLabError):
    """Infrastructure failed a rollout at every attempt."""


def run_rollout(attempt: JobRun) -> dict[str, Any]:
    """Run the rollout that a job names; a rollout that a lost worker left open is closed first."""
    orders.interrupt_left_open(attempt.job)
    ended = orders.ended_already(attempt.job)
    if ended is not None:
        return {"rollout": ended.pk, "outcome": ended.outcome}
    order = load(attempt.payload)
    for number in range(INFRA_TRIES):
        made = _Run(order, attempt).go()
        if made.cut_short and attempt.stopped():
            return {"cancelled": True, "rollout": made.rollout}
        if made.outcome is not Outcome.INFRA_ERROR:
            return {"rollout": made.rollout, "outcome": made.outcome.value}
        if number + 1 < INFRA_TRIES:
            time.sleep(PAUSE_S * 2**number)
    _look_at_engine(order)
    raise RolloutFailed(f"infrastructure failed it {INFRA_TRIES} times, the last time because {made.why}")


def _look_at_engine(order: JobSpec) -> None:
    """Keep whether a rollout's engine still answers, once infrastructure failed it for good."""
    if not asks_engine(order.recipe, order.plan):
        return
    row = engine_named(order.recipe.engine)
    client = make_engine(row.kind, row.address, row.model, row.options, settings.CONFIG.home)
    try:
        note_health(row.pk, client.health())
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class Made:
    """A rollout that was made."""

    rollout: int | None
    outcome: Outcome
    why: str
    diverged: bool = False

    @property
    def cut_short(self) -> bool:
        """Whether it came to no end of its own: one that did stays, though a stop was asked for meanwhile."""
        return self.outcome in UNSCORABLE and not self.diverged


class _Run:
    """One execution of an order."""

    def __init__(self, order: JobSpec, attempt: JobRun) -> None:
        self._order, self._attempt = order, attempt
        self._recorder: Recorder | None = None
        self._began = time.monotonic()

    def go(self) -> Made:
        """Run it and close its recorder, whatever happens."""
        try:
            done = self._run()
        except (EngineDown, SandboxRefused) as error:
            return self._abandon(error.sentence)
        except BaseException as error:
            self._abandon(error.sentence if isinstance(error, HarnessLabError) else f"{type(error).__name__}: {error}")
            raise
        return self._close(done)

    def _run(self) -> Done:
        order, stopped = self._order, self._attempt.stopped
        row = engine_named(order.recipe.engine)
        client = make_engine(row.kind, row.address, row.model, row.options, settings.CONFIG.home)
        guarded = GuardedEngine(client, slots.slots(), row.pk, row.ceiling, row.model, stopped)
        trace = order.record
        if trace is not None and order.plan is not None and order.plan.self_test:
            trace = altered(trace)
        parts = RolloutParts(
            recipe=order.recipe,
            engine=guarded,
            sandboxes=sandboxes_for(order.recipe),
            cache=harness_cache(),
            plan=order.plan,
            trace=trace,
            model=row.model,
            seed_honoured=row.seed_honoured,
            ceiling=row.ceiling,
            queue=guarded.queue,
            leave=connections.close_all,
        )
        try:
            return run(parts, lambda begun: self._open(begun, row.model), stopped, self._after_step)
        finally:
            client.close()

    def _open(self, begun: Begun, model: str) -> Recorder:
        order = self._order
        facts = _recording(order, begun, model)
        placement = Placement(
            recipe=_with_commit(order.recipe, begun.commit).to_json(),
            rerun=order.rerun,
            attempt=order.attempt,
            job=self._attempt.job,
            mode=order.plan.mode.value if order.plan is not None else "",
        )
        self._recorder = Recorder(facts, placement)
        self._attempt.progress(0, "the sandbox is open; waiting for the first step")
        return self._recorder

    def _after_step(self, episode: DrivenEpisode) -> None:
        counts, seconds = episode.counts, max(time.monotonic() - self._began, 0.001)
        rate = f", {counts.output_tokens / seconds:.1f} tokens/s" if counts.output_tokens else ""
        served = f", {counts.served} answers served" if counts.served else ""
        self._attempt.progress(
            max(episode.step, 0) + 1,
            f"step {max(episode.step, 0) + 1}: {counts.output_tokens:,} tokens{rate}{served}, {seconds:.0f} s",
        )

    def _close(self, done: Done) -> Made:
        recorder, result = self._recorder, done.result
        if recorder is None:
            return Made(None, Outcome.INFRA_ERROR, result.why)
        ending = RolloutEnding(result.outcome, result.reward, result.state, result.diff, result.why or None, done.facts)
        rollout = recorder.finish(ending)
        orders.conclude(rollout.pk, diverged=result.diverged)
        return Made(rollout.pk, result.outcome, result.why, result.diverged)

    def _abandon(self, why: str) -> Made:
        """Close what was begun when something ends it from outside, so that no rollout stays open."""
        recorder = self._recorder
        if recorder is None:
            return Made(None, Outcome.INFRA_ERROR, why)
        try:
            if not recorder.finished:
                recorder.finish(RolloutEnding(Outcome.INFRA_ERROR, error=why, facts={"why": why}))
        except DatabaseError as error:  # the sweeper closes it once the database is back
            log.warning("rollout %s stays open: %s", recorder.rollout.pk, error)
        return Made(recorder.rollout.pk, Outcome.INFRA_ERROR, why)


def _with_commit(recipe: Recipe, commit: str) -> Recipe:
    harness = msgspec.structs.replace(recipe.harness, revision=commit)
    return msgspec.structs.replace(recipe, harness=harness)


def _recording(order: JobSpec, begun: Begun, model: str) -> Recording:
    """Return what is known of a rollout at its beginning."""
    recipe, belonging = order.recipe, order.belonging
    budgets = recipe.case.budgets
    return Recording(
        manifest=begun.manifest,
        trace=Trace((), (), ()),
        outcome=Outcome.RUNNING,
        case=recipe.case.name,
        source=Source("worker", begun.manifest.digest, "worker"),
        project=belonging.project,
        panel=belonging.panel,
        experiment=belonging.experiment,
        harness=recipe.harness.name,
        revision=begun.commit,
        model=model,
        engine=recipe.engine,
        trial=belonging.trial,
        trial_stated=True,
        tags=belonging.tags,
        origin=order.origin,
        replayability=Replayability.LIVE,
        missing=OWN_TOOLS if recipe.harness.kind is HarnessKind.COMMAND else "",
        started_at=datetime.now(UTC),
        budgets={"steps": budgets.steps, "wall": budgets.wall, "context": budgets.context, "output": budgets.output},
    )
