"""Reruns as read models, and what a worker needs to make one attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from django.db.models import QuerySet
from django.utils import timezone

from harnesslab.core.canonical import JSON
from harnesslab.core.contracts.contract import TITLES, Contract, Level
from harnesslab.core.errors import Conflict, InvalidValue, NotFound
from harnesslab.core.measuring.statistics import Rate, case_rate, wilson
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.recipe import DRAWN, SAME, HarnessKind, Recipe
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import UNCOUNTED, CrashOrigin, Outcome
from harnesslab.queries.jobs.listing import JobRow, jobs_of_groups
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.reruns.findings import agreeing, finding, proof, so_far
from harnesslab.queries.reruns.groups import path_heads
from harnesslab.queries.rollouts.listing import RolloutRow, row_of
from harnesslab.store.models import JobState, Rerun, Rollout
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
    elapsed: float | None = None
    """Seconds since a running attempt began."""
    left: float | None = None
    """Seconds a running attempt may still take, where the parent's are known and everything is executed anew."""


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
    """Of the attempts whose verdict was not served from the record."""
    groups: list[int]
    """Sizes of the groups of attempts that went one way, among themselves, the largest first."""
    proof: str
    """`counts` in words."""
    counts: dict[str, int]
    """What its attempts themselves sent, got, ran and were served, all together: how a live one is proven live."""
    bad: Rate | None
    population: str
    """Which population the rate is of: fixed seed or drawn seeds."""
    sentence: str
    created_at: datetime
    regression: int | None = None
    """The regression case that it measures."""


def recipe_of(rollout: Rollout) -> Recipe:
    """Return what it takes to run a rollout again; raises `Conflict` with the reason where nobody can."""
    document = thawed(rollout.recipe) if rollout.recipe else None
    if not document:
        why = rollout.missing or "no harness is bound to it that a worker can run"
        raise Conflict(f"it can't be executed again: {why}", where=f"rollout {rollout.pk}")
    return Recipe.from_json(document)


def own_tools(rollout: Rollout) -> bool:
    """Say whether a rollout's agent runs its tools by itself, so that they run anew in every rerun."""
    return bool(rollout.recipe) and recipe_of(rollout).harness.kind is HarnessKind.COMMAND


def rerun_plan_of(rerun: Rerun) -> RerunPlan:
    """Return a rerun's plan."""
    return plan_from(rerun.plan)


def plan_from(document: object) -> RerunPlan:
    """Read a plan from JSON; raises `InvalidValue` naming what is wrong."""
    try:
        return msgspec.convert(document, type=RerunPlan)
    except msgspec.ValidationError as error:
        raise InvalidValue(str(error), where="plan") from None


def get_rerun(rerun_id: int) -> Rerun:
    """Return a rerun's row; raises `NotFound`."""
    found = _with_parents().filter(pk=rerun_id).first()
    if found is None:
        raise NotFound(f"there is no rerun {rerun_id}")
    return found


def _with_parents() -> QuerySet[Rerun]:
    parents = ("parent__case__panel", "parent__project", "parent__experiment", "regression")
    return Rerun.objects.select_related(*parents).defer("parent__search")


def changed(recipe: Recipe, plan: RerunPlan, root_seed: str) -> Recipe:
    """Return a recipe with what a plan changes in it; a fork rebuilds its environment under the recorded seed."""
    harness = msgspec.structs.replace(recipe.harness, revision=plan.revision or recipe.harness.revision)
    environment = "" if root_seed else recipe.environment_root
    if plan.from_step is not None:
        environment = recipe.environment_root or recipe.root_seed
    return msgspec.structs.replace(
        recipe,
        harness=harness,
        engine=plan.engine or recipe.engine,
        root_seed=root_seed or recipe.root_seed,
        environment_root=environment,
    )


def rerun_view(rerun_id: int) -> RerunView:
    """Return a rerun with its attempts and findings; raises `NotFound`."""
    return rerun_views([get_rerun(rerun_id)])[0]


def reruns_of(rollout_id: int) -> list[RerunView]:
    """Return the reruns of a rollout, newest first; at most 50."""
    return rerun_views(_with_parents().filter(parent_id=rollout_id).order_by("-id")[:50])


def recent_reruns(ids: Sequence[int] = (), limit: int = 50) -> list[RerunView]:
    """Return reruns, newest first; with `ids`, those alone."""
    rows = _with_parents().order_by("-id")
    return rerun_views((rows.filter(pk__in=ids) if ids else rows)[:limit])


def rerun_views(reruns: Iterable[Rerun]) -> list[RerunView]:
    """Return reruns with their attempts and findings, in the same queries however many there are."""
    found = list(reruns)
    jobs = jobs_of_groups([f"rerun {rerun.pk}" for rerun in found])
    counted = _counted(found)
    heads = path_heads(
        {row.pk: Contract(Level(rerun.level)) for rerun in found for row in counted.get(rerun.pk, {}).values()}
    )
    return [_view(rerun, jobs.get(f"rerun {rerun.pk}", {}), counted.get(rerun.pk, {}), heads) for rerun in found]


def _view(
    rerun: Rerun, jobs: Mapping[int, JobRow], counted: Mapping[int, Rollout], heads: Mapping[int, bytes]
) -> RerunView:
    plan, contract = rerun_plan_of(rerun), Contract(Level(rerun.level))
    expected = rerun.parent.seconds if plan.mode is Mode.LIVE and plan.from_step is None else None
    rows = [_attempt(number, jobs.get(number), counted.get(number), expected) for number in range(plan.attempts)]
    ended = [row for row in counted.values() if row.head is not None]
    judged = [row for row in ended if not _verdict_served(plan, row)]
    same = _rate([(row.same, row) for row in rows])
    said = [heads[row.rollout.id] for row in rows if row.same is not None and row.rollout and row.rollout.id in heads]
    groups = sorted(Counter(said).values(), reverse=True)
    bad = _rate([(row.bad, row) for row in rows]) if rerun.regression is not None else None
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
        solved=case_rate(
            [(Outcome(row.outcome), CrashOrigin(row.crash_origin) if row.crash_origin else None) for row in judged],
            beside={"verdict served": len(ended) - len(judged)} if len(ended) > len(judged) else {},
        ),
        proof=proof(_counts(ended)),
        counts=_counts(ended),
        bad=bad,
        population=population,
        groups=groups,
        sentence=so_far(
            finding(rerun, plan, same, bad, population, own_tools=own_tools(rerun.parent)) + agreeing(same, groups),
            sum(row.job is not None and not row.job.ended for row in rows),
            len(rows),
        ),
        created_at=rerun.created_at,
        regression=rerun.regression_id,
    )


def _verdict_served(plan: RerunPlan, row: Rollout) -> bool:
    """Say whether an attempt's verdict came from the record, which makes it no sample."""
    statistics = TraceStatistics.from_json(thawed(row.anatomy)) if row.anatomy else None
    return plan.mode is Mode.RECORDED or (statistics is not None and statistics.verdict_served)


def _counts(attempts: Iterable[Rollout]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for row in attempts:
        for name, value in as_object(as_object(thawed(row.facts)).get("counts")).items():
            sums[name] += value if isinstance(value, int) else 0
    return dict(sums)


def _rate(said: Sequence[tuple[bool | None, AttemptRow]]) -> Rate | None:
    """Return the rate of what attempts showed; those that showed nothing are counted beside, by outcome."""
    stated = [value for value, _ in said if value is not None]
    excluded: dict[str, int] = {}
    for value, row in said:
        if value is None and row.rollout is not None:
            why = row.rollout.outcome if row.rollout.outcome in UNCOUNTED else "can't be said"
            excluded[why] = excluded.get(why, 0) + 1
    k = sum(stated)
    low, high = wilson(k, len(stated))
    return Rate(k, len(stated), low, high, excluded)


def _counted(reruns: Sequence[Rerun]) -> dict[int, dict[int, Rollout]]:
    """Return, by rerun, the rollout of each attempt that counts: the last one, since a lost one was made again."""
    rows = Rollout.objects.listed().defer("search", "recipe").filter(rerun__in=reruns).order_by("pk")
    found: dict[int, dict[int, Rollout]] = {}
    for row in rows:
        found.setdefault(row.rerun_id or 0, {})[row.attempt] = row
    return found


def _attempt(number: int, job: JobRow | None, rollout: Rollout | None, expected: float | None) -> AttemptRow:
    facts: dict[str, JSON] = as_object(thawed(rollout.facts)) if rollout is not None else {}
    same, bad = facts.get("same"), facts.get("bad")
    running = job is not None and job.state == JobState.RUNNING and job.started_at is not None
    elapsed = (timezone.now() - job.started_at).total_seconds() if running and job and job.started_at else None
    return AttemptRow(
        attempt=number,
        job=job,
        rollout=row_of(rollout) if rollout is not None else None,
        same=same if isinstance(same, bool) else None,
        status=_status(job, rollout, facts),
        bad=bad if isinstance(bad, bool) else None,
        elapsed=elapsed,
        left=None if elapsed is None or expected is None else max(0.0, expected - elapsed),
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
    return (
        str(facts.get("unsaid") or "not comparable")
        if same is None
        else "as the parent"
        if same
        else "parts from the parent"
    )
