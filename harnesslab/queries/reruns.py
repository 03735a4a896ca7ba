"""Reruns as read models, and what a worker needs to make one attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.comparators import first_difference
from harnesslab.core.contract import LADDER, TITLES, Contract, Level
from harnesslab.core.errors import Conflict, InvalidValue, NotComparable, NotFound
from harnesslab.core.predicates import Predicate
from harnesslab.core.recipe import DRAWN, SAME, HarnessKind, Recipe
from harnesslab.core.rerun import Control, Cost, Mode, Plan, Unsafe, controls, cost, unsafe_fork
from harnesslab.core.rollout import UNCOUNTED, Outcome
from harnesslab.core.statistics import Rate, case_rate, wilson
from harnesslab.queries.jobs import JobRow, jobs_by_attempt
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts import RolloutRow, get_rollout, row_of
from harnesslab.queries.tapes import StoredTape
from harnesslab.store.models import Rerun, Rollout
from harnesslab.store.text import as_object, thawed


class AttemptRow(ReadModel):
    """One attempt: its job, the rollout that counts, and whether it went as the parent did."""

    attempt: int
    job: JobRow | None
    rollout: RolloutRow | None
    same: bool | None
    """Equal to the parent at the rerun's level; None where it can't be said."""
    status: str
    """One clause: what came of it."""
    bad: bool | None = None
    """Of a regression case: whether the predicate was met."""


class RerunView(ReadModel):
    """A rerun with its attempts and its findings."""

    id: int
    parent: RolloutRow
    mode: str
    plan: dict[str, object]
    level: str
    level_title: str
    attempts: list[AttemptRow]
    ended: bool
    same: Rate | None
    """How many went as the parent did."""
    solved: Rate
    bad: Rate | None
    population: str
    """Which population the rate is of: fixed seed or drawn seeds."""
    sentence: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Preview:
    """What the form shows before it is sent."""

    controls: Sequence[Control]
    cost: Cost | None
    refused: str
    """Why the plan can't be run; empty where it can."""
    unsafe: Unsafe | None
    steps: int
    external: Sequence[str]


def recipe_of(rollout: Rollout) -> Recipe:
    """Return what it takes to run a rollout again; raises `Conflict` with the reason where nobody can."""
    document = thawed(rollout.recipe) if rollout.recipe else None
    if not document:
        why = rollout.missing or "no harness is bound to it that a worker can run"
        raise Conflict(f"it can't be executed again: {why}", where=f"rollout {rollout.pk}")
    return Recipe.from_json(document)


def plan_of(rerun: Rerun) -> Plan:
    """Return a rerun's plan."""
    return msgspec.convert(rerun.plan, type=Plan)


def get_rerun(rerun_id: int) -> Rerun:
    """Return a rerun's row; raises `NotFound`."""
    rerun = Rerun.objects.select_related("parent__case__panel", "parent__project", "regression").filter(pk=rerun_id)
    found = rerun.first()
    if found is None:
        raise NotFound(f"there is no rerun {rerun_id}")
    return found


def changed(recipe: Recipe, plan: Plan, root_seed: str) -> Recipe:
    """Return a recipe with what a plan changes in it."""
    harness = msgspec.structs.replace(recipe.harness, revision=plan.revision or recipe.harness.revision)
    seed = root_seed or recipe.root_seed
    return msgspec.structs.replace(recipe, harness=harness, engine=plan.engine or recipe.engine, root_seed=seed)


def preview(rollout_id: int, plan: Plan) -> Preview:
    """Say what a plan would do and cost, and why it can't be run where it can't; raises `NotFound`."""
    rollout = get_rollout(rollout_id)
    trace = StoredTape(rollout).trace()
    try:
        recipe = recipe_of(rollout)
    except Conflict as error:
        shown = controls(trace, {}, kind="none")
        return Preview(shown, None, error.sentence, None, rollout.steps, ())
    shown = controls(trace, recipe.tools, kind=recipe.harness.kind.value)
    external = [item.boundary for item in shown if "external" in item.why]
    unsafe = unsafe_fork(trace, plan.from_step) if plan.from_step else None
    refused = refusal(rollout, recipe, plan, shown, unsafe)
    return Preview(shown, cost(trace, plan).times(plan.attempts), refused, unsafe, rollout.steps, external)


def refusal(rollout: Rollout, recipe: Recipe, plan: Plan, shown: Sequence[Control], unsafe: Unsafe | None) -> str:
    """Say why a plan can't be run, or nothing."""
    try:
        plan.checked()
    except InvalidValue as error:
        return error.sentence
    if rollout.head is None:
        return "it still runs"
    if unsafe is not None:
        where = f"it can't be forked at step {(plan.from_step or 0) + 1}: {unsafe.why}"
        return f"{where}; the nearest safe one is step {unsafe.nearest + 1}"
    if plan.from_step is not None and plan.from_step >= max(rollout.steps, 1):
        return f"it has {rollout.steps} steps, so that it can't be forked at step {plan.from_step + 1}"
    if recipe.harness.kind is HarnessKind.COMMAND and plan.mode is not Mode.LIVE:
        tools = "tools of a command harness run anew whenever it runs"
        return "" if plan.mode is Mode.HYBRID else f"a recorded rerun needs every boundary served: {tools}"
    return _unswitchable(plan, shown)


def _unswitchable(plan: Plan, shown: Sequence[Control]) -> str:
    """Say which switch the recording doesn't allow, or nothing; one for all tools leaves external ones served."""
    for boundary, switch in plan.switches.items():
        offered = [item for item in shown if boundary in (item.boundary, item.boundary.partition(":")[0])]
        if not offered and ":" in boundary:
            return f"this recording has no {boundary}"
        if offered and not any(switch in item.switches for item in offered):
            return f"{boundary} can't be {switch.value} for this recording: {offered[0].why}"
    return ""


def rerun_view(rerun_id: int) -> RerunView:
    """Return a rerun with its attempts and findings; raises `NotFound`."""
    rerun = get_rerun(rerun_id)
    plan, contract = plan_of(rerun), Contract(Level(rerun.level))
    counted = _counted(rerun)
    jobs = jobs_by_attempt(f"rerun {rerun.pk}")
    rows = [_attempt(number, jobs.get(number), counted.get(number)) for number in range(plan.attempts)]
    outcomes = [Outcome(row.rollout.outcome) for row in rows if row.rollout is not None]
    same = _rate([row.same for row in rows], outcomes)
    bad = _rate([row.bad for row in rows], outcomes) if rerun.regression is not None else None
    population = {SAME: "fixed seed", DRAWN: "drawn seeds"}.get(plan.seed, "fixed seed")
    return RerunView(
        id=rerun.pk,
        parent=row_of(rerun.parent),
        mode=plan.mode.value,
        plan=msgspec.to_builtins(plan),
        level=rerun.level,
        level_title=TITLES[contract.level],
        attempts=rows,
        ended=all(row.job is None or row.job.ended for row in rows),
        same=same,
        solved=case_rate(outcomes),
        bad=bad,
        population=population,
        sentence=finding(plan, contract.level, same, bad, population, rerun),
        created_at=rerun.created_at,
    )


def finding(plan: Plan, level: Level, same: Rate | None, bad: Rate | None, population: str, rerun: Rerun) -> str:
    """Say what a rerun found, with its rate, mode, level and population."""
    tail = f"{plan.mode.value}, level {TITLES[level]}, {population}"
    if plan.self_test and same is not None and same.n:
        return f"Self-test {'failed: it did not diverge' if same.k else 'passed: it diverged, as it must'}; {tail}."
    rate = bad if bad is not None else same
    if rate is None or not rate.n:
        return f"No attempt has ended that counts; {tail}."
    interval = f"95 % CI {100 * rate.low:.0f}–{100 * rate.high:.0f} %"
    if bad is not None and rerun.regression is not None:
        what = Predicate.from_json(rerun.regression.predicate).sentence
        return f"{rate.k}/{rate.n} ({interval}): {what}; {tail}."
    if plan.mode is Mode.RECORDED:
        complete = "The record is complete: served from it alone, the harness went the same way"
        return f"{complete if rate.k else 'The harness left the record'}; {tail}."
    every = "Went as the parent every time" if rate.n > 1 else "Went as the parent"
    word = {0: "Never went as the parent", rate.n: every}.get(rate.k, "Intermittent")
    return f"{word}, {rate.k}/{rate.n} ({interval}), {tail}."


def _rate(said: Sequence[bool | None], outcomes: Sequence[Outcome]) -> Rate | None:
    stated = [value for value in said if value is not None]
    excluded: dict[str, int] = {}
    for outcome in outcomes:
        if outcome in UNCOUNTED:
            excluded[outcome.value] = excluded.get(outcome.value, 0) + 1
    k = sum(stated)
    low, high = wilson(k, len(stated))
    return Rate(k, len(stated), low, high, excluded)


def _counted(rerun: Rerun) -> dict[int, Rollout]:
    """Return the rollout of each attempt that counts: the last one, since a lost or failed one was made again."""
    rows = Rollout.objects.listed().defer("search").filter(rerun=rerun).order_by("pk")
    return {row.attempt: row for row in rows}


def _attempt(number: int, job: JobRow | None, rollout: Rollout | None) -> AttemptRow:
    facts: dict[str, JSON] = as_object(thawed(rollout.facts)) if rollout is not None else {}
    same, bad = facts.get("same"), facts.get("bad")
    return AttemptRow(
        attempt=number,
        job=job,
        rollout=row_of(rollout) if rollout is not None else None,
        same=same if isinstance(same, bool) else None,
        status=_status(job, rollout, facts),
        bad=bad if isinstance(bad, bool) else None,
    )


def _status(job: JobRow | None, rollout: Rollout | None, facts: dict[str, JSON]) -> str:
    if rollout is None:
        return job.message or job.state if job is not None else "not queued"
    if rollout.head is None:
        return job.message if job is not None and job.message else "running"
    why = facts.get("why")
    if facts.get("diverged") or (rollout.outcome in UNCOUNTED and why):
        return str(why)
    same = facts.get("same")
    return "not comparable" if same is None else "as the parent" if same else "parts from the parent"


def same_as(parent: Rollout, rollout: Rollout, contract: Contract, *, diverged: bool) -> bool | None:
    """Say whether an attempt went as its parent; cut short from outside is no answer, but leaving the record is one."""
    if diverged:
        return False
    if rollout.outcome in UNCOUNTED and rollout.outcome != parent.outcome:
        return None
    try:
        paths = StoredTape(parent).path(contract), StoredTape(rollout).path(contract)
    except NotComparable:
        return None
    return first_difference(*paths) is None


def strictest(rollout: Rollout) -> Level:
    """Return the strictest level below log-probabilities that a rollout supports."""
    tape = StoredTape(rollout)
    for level in LADDER[1:]:
        try:
            tape.path(Contract(level))
        except NotComparable:
            continue
        return level
    return Level.BEHAVIOUR
