"""Asking for reruns, and concluding what an attempt showed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import msgspec
from django.db import IntegrityError, transaction

from harnesslab.accounts.models import User
from harnesslab.actions.comparisons import keep_paths
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.repositories import commit_of
from harnesslab.core.contracts.contract import Contract, Level
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.running.predicates import Predicate
from harnesslab.core.running.recipe import DRAWN, SAME, Recipe
from harnesslab.core.running.record import flows_on
from harnesslab.core.running.rerun import RerunPlan, asks_engine, controls, unsafe_fork
from harnesslab.core.running.rollout import UNSCORABLE
from harnesslab.queries.comparisons.comparison import readers_of
from harnesslab.queries.engines import engine_named
from harnesslab.queries.reruns.listing import get_rerun, own_tools, recipe_of, rerun_plan_of
from harnesslab.queries.reruns.paths import never_live, parted_by_retry, same_as, strictest, unmoved
from harnesslab.queries.reruns.previews import refusal
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.requests.reruns import RegressionMeasurementRequest
from harnesslab.store.models import AuditEntry, RegressionCase, Rerun, Rollout
from harnesslab.store.text import storable

QUEUE = "gpu"
KIND = "rollout"
RETRIED = "infrastructure failed a request, which was tried again, so that they part there"
WOKEN = 16
"""Attempts of a rerun that workers are woken for at once: enough for every worker that may be free."""


def request(
    rollout_id: int, plan: RerunPlan, *, user: User | None, key: str = "", regression: RegressionCase | None = None
) -> Rerun:
    """Ask for a rerun: one job an attempt. The same key and plan give the rerun that is already there.

    Raises `InvalidValue` or `Conflict` with why the plan can't be run.
    """
    key, asked = storable(key), plan
    if (known := _known(key, rollout_id, asked, regression)) is not None:
        return known
    plan = _resolved(rollout_id, plan)
    level = strictest(get_rollout(rollout_id))
    try:
        with transaction.atomic():
            rerun = Rerun.objects.create(
                parent_id=rollout_id,
                plan=msgspec.to_builtins(plan),
                level=level,
                key=key or None,
                created_by=user,
                regression=regression,
            )
            if user is not None:
                AuditEntry.objects.create(user=user, action="rerun", subject=f"rollout {rollout_id}", detail=rerun.plan)
            recipe = recipe_of(rerun.parent)
            for attempt in range(plan.attempts):
                _enqueue(rerun, recipe, plan, attempt, user)
    except IntegrityError:
        if (known := _known(key, rollout_id, asked, regression)) is None:
            raise
        return known
    return rerun


def _known(key: str, rollout_id: int, plan: RerunPlan, regression: RegressionCase | None) -> Rerun | None:
    """Return the rerun that a key was used for; raises `Conflict` where it was another one than is asked for now."""
    known = Rerun.objects.filter(key=key).first() if key else None
    if known is None:
        return None
    if known.parent_id != rollout_id or known.regression_id != (regression.pk if regression is not None else None):
        raise Conflict(f"the key was used for a rerun of rollout {known.parent_id}", where="idempotency key")
    then = rerun_plan_of(known)
    if msgspec.structs.replace(plan, revision="") != msgspec.structs.replace(then, revision=""):
        raise Conflict(f"the key was used for rerun {known.pk}, which has another plan", where="idempotency key")
    return known


def _resolved(rollout_id: int, plan: RerunPlan) -> RerunPlan:
    """Check a plan against its recording and name its harness revision by commit."""
    rollout = get_rollout(rollout_id)
    recipe = recipe_of(rollout)
    trace = StoredTraceReader(rollout).trace()
    shown = controls(trace, recipe.tools, kind=recipe.harness.kind.value)
    unsafe = unsafe_fork(trace, plan.from_step) if plan.from_step else None
    why = refusal(rollout, recipe, plan, shown, unsafe)
    if why:
        raise Conflict(why, where=f"rollout {rollout_id}")
    engine_named(plan.engine or recipe.engine)
    if plan.self_test and flows_on(trace) is None:
        raise Conflict("no result of a tool flows on into a later request, so that nothing can be altered")
    return _by_commit(recipe, plan)


def _by_commit(recipe: Recipe, plan: RerunPlan) -> RerunPlan:
    """Name a plan's harness revision by its commit; nothing where that is the recorded one."""
    if not plan.revision or not recipe.harness.repository:
        return plan
    commit = commit_of(recipe.harness.repository, plan.revision)
    return msgspec.structs.replace(plan, revision="" if commit == recipe.harness.revision else commit)


def _enqueue(rerun: Rerun, recipe: Recipe, plan: RerunPlan, attempt: int, user: User | None) -> None:
    root_seed = "" if plan.seed == SAME else str(secrets.randbits(63)) if plan.seed == DRAWN else plan.seed
    jobs.enqueue(
        KIND,
        {"rerun": rerun.pk, "attempt": attempt, "root_seed": root_seed},
        idempotency_key=f"rerun {rerun.pk} attempt {attempt}",
        user=user,
        total=recipe.case.budgets.steps,
        queue_name=QUEUE,
        group=f"rerun {rerun.pk}",
        engine=storable(plan.engine or recipe.engine, 200) if asks_engine(recipe, plan) else "",
        silently=attempt >= WOKEN,
    )


def cancel(rerun_id: int) -> int:
    """Ask every attempt that has not ended to stop; returns how many were asked."""
    return jobs.cancel_group(f"rerun {get_rerun(rerun_id).pk}")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What an attempt showed, as its rollout's facts keep it."""

    same: bool | None
    bad: bool | None
    unsaid: str = ""
    """Why it can't be said whether it went as its parent, where that is not plain from its outcome."""


def conclude(rollout: Rollout, *, diverged: bool) -> Conclusion:
    """Say whether an attempt went as its parent, and whether it met its regression case's predicate."""
    if rollout.rerun_id is None:
        return Conclusion(None, None)
    rerun = get_rerun(rollout.rerun_id)
    contract = Contract(Level(rerun.level))
    keep_paths(readers_of(rerun.parent_id, rollout.pk), contract)
    bad, plan = _bad(rerun.regression, rollout), rerun_plan_of(rerun)
    if not plan.self_test and (why := never_live(plan, rollout, diverged=diverged, own_tools=own_tools(rerun.parent))):
        return Conclusion(None, bad, why)
    same = same_as(rerun.parent, rollout, contract, diverged=diverged)
    if same is False and not diverged:
        if plan.self_test:
            same = unmoved(rerun.parent, rollout, contract)
        elif parted_by_retry(rerun.parent, rollout, contract):
            return Conclusion(None, bad, RETRIED)
    return Conclusion(same, bad)


def _bad(case: RegressionCase | None, rollout: Rollout) -> bool | None:
    """Say whether a predicate was met; None where an attempt was cut short before it could be told."""
    if case is None:
        return None
    trace, predicate = StoredTraceReader(rollout).trace(), Predicate.from_json(case.predicate)
    met = predicate.met(trace, case.from_step)
    passed = any(event.step >= case.from_step + predicate.steps for event in trace.events)
    return None if met is False and rollout.outcome in UNSCORABLE and not passed else met


@transaction.atomic
def make_regression(
    rollout_id: int, name: str, from_step: int, predicate: Predicate, user: User | None
) -> RegressionCase:
    """Freeze a rollout's steps before one, with a predicate on what must not be decided there again.

    Raises `InvalidValue` for a predicate that the recording itself doesn't meet, `Conflict` for a taken name.
    """
    rollout = get_rollout(rollout_id)
    recipe_of(rollout)
    if from_step < 0:
        raise InvalidValue(f"no step: {from_step}", where="from step", hint="steps count from 0")
    trace = StoredTraceReader(rollout).trace()
    unsafe = unsafe_fork(trace, from_step)
    if unsafe is not None:
        raise Conflict(f"step {from_step + 1} can't be reached again: {unsafe.why}", hint=f"step {unsafe.nearest + 1}")
    met = predicate.met(trace, from_step)
    if not met:
        said = "has no such step" if met is None else f"does not meet it: {predicate.sentence}"
        raise InvalidValue(f"the recording {said}", where="predicate")
    shown = storable(name.strip(), 200)
    if RegressionCase.objects.filter(project=rollout.project, name=shown).exists():
        raise Conflict(f"the project has a regression case {shown!r}", hint="choose another name")
    return RegressionCase.objects.create(
        project=rollout.project,
        name=shown,
        parent=rollout,
        from_step=from_step,
        predicate=predicate.to_json(),
        created_by=user,
    )


def measure_regression(
    case: RegressionCase, measurement: RegressionMeasurementRequest, *, user: User | None, key: str = ""
) -> Rerun:
    """Run a regression case live from its step, under a revision of the harness."""
    plan = measurement.to_plan(case.from_step)
    return request(case.parent_id, plan, user=user, key=key, regression=case)
