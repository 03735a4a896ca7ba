"""A running experiment as it stands: where each case and trial is, how many have ended, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, Min
from django.db.models.fields.json import KT
from django.utils import timezone

from harnesslab.core.measuring.experiments import State
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.measurements import get_measured
from harnesslab.queries.jobs.groups import rollouts_group
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Engine, Experiment, Job, JobState, Rollout
from harnesslab.store.models.jobs import ENDED

SHOWN = 400
"""Rollouts that are shown; of more, those that run are, and the first of the others."""
PATIENCE = timedelta(seconds=30)
"""After so long without a worker that took anything, it is said."""
_COLUMNS = ("pk", "state", "message", "done", "total", "cancel_requested", "started_at", "ended_at", "case", "trial")


class ProgressRow(ReadModel):
    """One case and trial of a running experiment."""

    job: int
    case: str
    trial: int
    state: str
    message: str
    done: int
    total: int | None
    kind: str = "rollout"
    cancel_requested: bool
    rollout: int | None
    outcome: str
    """Empty until its rollout has ended."""
    seconds: float | None
    """Since it began, or that it took."""

    @property
    def ended(self) -> bool:
        """Whether its job has ended."""
        return self.state in ENDED

    @property
    def percent(self) -> int | None:
        """Progress in percent of the steps that it may take."""
        return min(100, round(100 * self.done / self.total)) if self.total else None


class Progress(ReadModel):
    """How far an experiment is."""

    id: int
    name: str
    project: str
    state: str
    trials: int
    total: int
    ended: int
    solved: int
    lost: int
    """Rollouts that infrastructure failed for good: nothing is known of them."""
    down: str
    """The engine that no longer answers, with what it last said; empty where it does, or nothing was lost."""
    running: int
    waiting: int
    rows: list[ProgressRow]
    elapsed: float | None
    left: float | None
    """Seconds it may still take, going by what has ended; None where nothing has."""
    unattended: bool
    """Whether everything has waited for a while and no worker took any of it."""
    over: bool
    training: int | None

    @property
    def sentence(self) -> str:
        """Say how it stands."""
        if not self.total:
            return f"{self.name} was not measured here."
        head = f"{self.ended} of {self.total} rollouts"
        solved = f", {self.solved} of them solved"
        if self.lost:
            why = f": {self.down}" if self.down else ""
            solved += f"; infrastructure lost {self.lost}{why}"
        if self.state == State.CANCELLED:
            return f"Cancelled: {head} had ended{solved}."
        if self.over:
            return f"Measured: all {self.total} rollouts have ended{solved}."
        have = "has" if self.ended == 1 else "have"
        runs = f"{self.running} {'runs' if self.running == 1 else 'run'}"
        waits = f"{self.waiting} {'waits' if self.waiting == 1 else 'wait'}"
        return f"{head} {have} ended{solved if self.ended else ''}; {runs}, {waits}."


def progress_of(experiment_id: int) -> Progress:
    """Return how far an experiment is, in the same queries however large; raises `NotFound`."""
    row = get_measured(experiment_id)
    group = rollouts_group(experiment_id)
    jobs = Job.objects.filter(group=group)
    counts = dict(jobs.order_by().values_list("state").annotate(n=Count("pk")))
    outcomes = _outcomes(experiment_id)
    ended = sum(counts.get(state, 0) for state in ENDED)
    rows = _rows(group, outcomes)
    running, lost = counts.get(JobState.RUNNING, 0), counts.get(JobState.FAILED, 0)
    waiting = counts.get(JobState.QUEUED, 0)
    over = row.state != State.RUNNING
    total = ended + running + waiting
    return Progress(
        id=row.pk,
        name=row.name,
        project=row.project.name,
        state=row.state,
        trials=row.trials,
        total=total,
        ended=ended,
        solved=sum(outcome == Outcome.SOLVED for _, outcome in outcomes.values()),
        lost=lost,
        down=_down(group) if lost else "",
        running=running,
        waiting=waiting,
        rows=rows,
        elapsed=_elapsed(row),
        left=None if over else _left(group, total - ended, running),
        unattended=not over and bool(waiting) and not running and not ended and _waits_long(group),
        over=over,
        training=row.training_id,
    )


def _down(group: str) -> str:
    """Name the engine of a group's failed rollouts where it did not answer when it was last asked."""
    named = Job.objects.filter(group=group, state=JobState.FAILED).values("engine")
    engine = Engine.objects.filter(name__in=named, up=False).first()
    return f"the engine {engine.name} is down: {engine.sentence}" if engine is not None else ""


def _elapsed(row: Experiment) -> float | None:
    if row.started_at is None:
        return None
    return ((row.ended_at or timezone.now()) - row.started_at).total_seconds()


def _outcomes(experiment_id: int) -> dict[int, tuple[int, str]]:
    """Return the newest rollout of each job with its outcome; a running one counts where it is all there is."""
    rows = Rollout.objects.filter(experiment=experiment_id, mode="").exclude(job=None).order_by("pk")
    return {job: (pk, outcome) for job, pk, outcome in rows.values_list("job_id", "pk", "outcome")}


def _rows(group: str, outcomes: Mapping[int, tuple[int, str]]) -> list[ProgressRow]:
    named = {"case": KT("payload__recipe__case__name"), "trial": KT("payload__trial")}
    jobs = Job.objects.filter(group=group).annotate(**named).order_by("pk")
    first = list(jobs.values_list(*_COLUMNS)[:SHOWN])
    there = {row[0] for row in first}
    if len(first) == SHOWN:
        more = jobs.filter(state=JobState.RUNNING).values_list(*_COLUMNS)[:SHOWN]
        first = [row for row in more if row[0] not in there] + first
    return [_row(values, outcomes) for values in first]


def _row(values: Sequence[Any], outcomes: Mapping[int, tuple[int, str]]) -> ProgressRow:
    pk, state, message, done, total, cancel_requested, began, until, case, trial = values
    rollout, outcome = outcomes.get(pk, (None, ""))
    return ProgressRow(
        job=pk,
        case=case or "",
        trial=int(trial or 0),
        state=state,
        message=message,
        done=done,
        total=total,
        cancel_requested=cancel_requested,
        rollout=rollout,
        outcome="" if outcome == Outcome.RUNNING else outcome,
        seconds=None if began is None else ((until or timezone.now()) - began).total_seconds(),
    )


def _left(group: str, remaining: int, running: int) -> float | None:
    """Estimate what is left: the mean of what has ended, as many at a time as run now."""
    done = Job.objects.filter(group=group, state=JobState.DONE).exclude(started_at=None).exclude(ended_at=None)
    times = list(done.order_by("-pk").values_list("started_at", "ended_at")[:100])
    if not times:
        return None
    mean = sum((ended - began).total_seconds() for began, ended in times if began and ended) / len(times)
    return mean * remaining / max(running, 1)


def _waits_long(group: str) -> bool:
    queued = Job.objects.filter(group=group).aggregate(at=Min("created_at"))["at"]
    return queued is not None and timezone.now() - queued > PATIENCE
