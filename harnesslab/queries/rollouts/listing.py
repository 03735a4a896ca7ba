"""Rollouts as read models: rows of the list, groups by case, and one rollout's header."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Case, Count, F, QuerySet, When

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.measuring.statistics import Rate, case_rate
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import CrashOrigin, Outcome
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.filters import RolloutFilter, cursor, ordered
from harnesslab.store.models import Rollout
from harnesslab.store.text import thawed

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = 100
GROUPS = 25
SHOWN = 12
"""Rollouts of a case that its group shows; the rate and the paths are of all its own trials."""
_TRIALS_FIRST = (
    Case(When(mode="", then=0), default=1),  # a rollout of a rerun that is gone still is no trial of its own
    F("rerun_id").asc(nulls_first=True),
    "experiment_id",
    "trial",
    "attempt",
    "pk",
)


class RolloutRow(ReadModel):
    """One rollout as lists show it; steps and trials count from 0."""

    id: int
    project: str
    panel: str
    case: str
    experiment: str
    trial: int
    outcome: str
    crash_origin: str = ""
    """Of a crash: harness, workspace, environment or unknown."""
    reward: float | None
    origin: str
    mode: str
    """Mode of the rerun that made it; empty for anything else."""
    rerun: int | None
    """The rerun that made it."""
    attempt: int
    grade: str
    missing: str
    model: str
    engine: str
    harness: str
    revision: str
    tags: list[str]
    steps: int
    events: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    """Tokens spent: served answers cost none; null where no call states any."""
    seconds: float | None
    counted_by: int
    """Version of the counter that these counts are of."""
    manifest: str
    seal: str
    path: str
    started_at: datetime | None
    created_at: datetime

    @property
    def behind(self) -> bool:
        """Whether an older version of the counter counted it."""
        return self.counted_by < VERSION


class RolloutPage(ReadModel):
    """A page of the list."""

    rows: list[RolloutRow]
    count: int
    next: str
    """Cursor of the next page; empty at the end."""


class CaseGroup(ReadModel):
    """The trials of one case under the filters. Rate and paths are of its own trials: those of reruns are conditioned
    on one of them, and are counted beside."""

    project: str
    panel: str
    case: str
    rate: Rate
    paths: int
    """How many distinct paths the trials took."""
    count: int
    reruns: int
    """How many rollouts that reruns made are beside its own trials."""
    trials: list[RolloutRow]
    """The first of all of them, its own trials before those of reruns."""


class GroupPage(ReadModel):
    """A page of the list grouped by case."""

    groups: list[CaseGroup]
    count: int
    next: str


class _Trial(NamedTuple):
    """What a group counts of a trial."""

    pk: int
    outcome: Outcome
    crash_origin: CrashOrigin | None
    path: bytes
    rerun: bool


def row_of(rollout: Rollout) -> RolloutRow:
    """Make the read model of a row that was fetched with `listed()`."""
    return RolloutRow(
        id=rollout.pk,
        project=rollout.project.name,
        panel=rollout.case.panel.name,
        case=rollout.case.name,
        experiment=rollout.experiment.name if rollout.experiment is not None else "",
        trial=rollout.trial,
        outcome=rollout.outcome,
        crash_origin=rollout.crash_origin,
        reward=rollout.reward,
        origin=rollout.origin,
        mode=rollout.mode,
        rerun=rollout.rerun_id,
        attempt=rollout.attempt,
        grade=rollout.grade,
        missing=rollout.missing,
        model=rollout.model,
        engine=rollout.engine,
        harness=rollout.harness,
        revision=rollout.revision,
        tags=rollout.tags,
        steps=rollout.steps,
        events=rollout.events,
        input_tokens=rollout.input_tokens,
        output_tokens=rollout.output_tokens,
        cached_tokens=rollout.cached_tokens,
        seconds=rollout.seconds,
        counted_by=rollout.counted_by,
        manifest=rollout.manifest_id,
        seal=bytes(rollout.head or b"").hex(),
        path=bytes(rollout.path or b"").hex(),
        started_at=rollout.started_at,
        created_at=rollout.created_at,
    )


def get_rollout(rollout_id: int) -> Rollout:
    """Return a rollout's row; raises `NotFound`."""
    rollout = Rollout.objects.listed().defer("search").filter(pk=rollout_id).first()
    if rollout is None:
        raise NotFound(f"there is no rollout {rollout_id}", hint="it may have been deleted")
    return rollout


def facts_of(rollout: Rollout) -> JSON:
    """Return what the source states of a rollout as a whole."""
    return thawed(rollout.facts)


def rollout_page(chosen: RolloutFilter, after: str = "", size: int = PAGE) -> RolloutPage:
    """Return a page of rollouts under filters."""
    filtered = chosen.apply(Rollout.objects.all())
    rows = list(_listed(ordered(filtered, chosen.sort, after))[: size + 1])
    more = cursor(rows[size - 1], chosen.sort) if len(rows) > size else ""
    return RolloutPage(rows=[row_of(row) for row in rows[:size]], count=filtered.count(), next=more)


def group_page(chosen: RolloutFilter, after: str = "", size: int = GROUPS) -> GroupPage:
    """Return a page of cases with their trials under filters, newest case first.

    `after` is the previous page's `next`; raises `InvalidValue` for anything else.
    """
    last = natural(after)
    if after and last is None:
        raise InvalidValue(f"{after[:80]!r} is no position in the list", where="after")
    filtered = chosen.apply(Rollout.objects.all())
    cases = filtered.values("case_id").annotate(n=Count("pk")).order_by("-case_id")
    count = cases.count()
    page = cases if last is None else cases.filter(case_id__lt=last)
    ids = [entry["case_id"] for entry in page[: size + 1]]
    more = str(ids[size - 1]) if len(ids) > size else ""
    return GroupPage(groups=_groups(filtered, ids[:size]), count=count, next=more)


def _groups(filtered: QuerySet[Rollout], cases: Sequence[int]) -> list[CaseGroup]:
    """Return the groups of some cases: counted over all their trials, of which the first are shown."""
    light = filtered.filter(case_id__in=cases).order_by(*_TRIALS_FIRST)
    trials: dict[int, list[_Trial]] = defaultdict(list)
    columns = ("pk", "case_id", "outcome", "crash_origin", "path", "mode")
    for pk, case, outcome, crash, path, mode in light.values_list(*columns):
        origin = CrashOrigin(crash) if crash else None
        again = mode != ""  # its rerun may be gone
        trials[case].append(_Trial(pk, Outcome(outcome), origin, bytes(path or b""), again))
    shown = [trial.pk for case in cases for trial in trials[case][:SHOWN]]
    rows = {row.pk: row for row in _listed(Rollout.objects.filter(pk__in=shown))}
    return [_group([rows[trial.pk] for trial in trials[case][:SHOWN]], trials[case]) for case in cases]


def siblings(rollout: Rollout) -> list[RolloutRow]:
    """Return all trials of a rollout's case, itself included, in trial order, reruns last; at most 200."""
    rows = Rollout.objects.filter(case_id=rollout.case_id).order_by(*_TRIALS_FIRST)
    return [row_of(row) for row in _listed(rows)[:200]]


def _listed(rows: QuerySet[Rollout]) -> QuerySet[Rollout]:
    return rows.select_related("case__panel", "project", "experiment").defer(
        "search", "facts", "budgets", "recipe", "experiment__facts"
    )


def _group(shown: Sequence[Rollout], trials: Sequence[_Trial]) -> CaseGroup:
    first = shown[0]
    own = [trial for trial in trials if not trial.rerun]
    return CaseGroup(
        project=first.project.name,
        panel=first.case.panel.name,
        case=first.case.name,
        rate=case_rate([(trial.outcome, trial.crash_origin) for trial in own]),
        paths=len({trial.path for trial in own if trial.path}),
        count=len(own),
        reruns=len(trials) - len(own),
        trials=[row_of(trial) for trial in shown],
    )
