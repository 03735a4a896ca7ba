"""Jobs as read models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import CharField, Count, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.utils import timezone

from harnesslab.core.errors import NotFound
from harnesslab.core.natural import natural
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Iteration, Job, JobState, Rollout
from harnesslab.store.models.jobs import ENDED, JobQuerySet

MOST_WAITING = 500
"""Waiting jobs that are shown."""


class JobRow(ReadModel):
    """One job; `done` of `total` in the unit of its kind."""

    id: int
    kind: str
    group: str
    state: str
    message: str
    done: int
    total: int | None
    attempt: int
    ended: bool
    cancel_requested: bool
    result: dict[str, object]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    elapsed: float | None = None
    """Seconds from its start to its end, or until now while it runs."""
    rerun: int | None = None
    """The rerun that it is an attempt of."""
    engine: int | None = None
    """The engine that it probes."""
    rollout: int | None = None
    """The rollout that it made, or makes."""
    case: str = ""
    """The case that it runs or certifies."""
    experiment: int | None = None
    """The experiment that it is part of."""
    training: int | None = None
    """The training that it asks a change for."""

    @property
    def percent(self) -> int | None:
        """Progress in percent, where the total is known."""
        return min(100, round(100 * self.done / self.total)) if self.total else None


class KindCount(ReadModel):
    """How many jobs of a kind there are."""

    kind: str
    running: int
    waiting: int
    ended: int


class QueuePage(ReadModel):
    """The queue: what runs, what waits with its place in its queue, what has ended."""

    running: list[JobRow]
    waiting: list[tuple[int, JobRow]]
    ended: list[JobRow]
    kinds: list[KindCount]

    @property
    def sentence(self) -> str:
        """Say how it stands."""
        running, waiting = (sum(getattr(kind, name) for kind in self.kinds) for name in ("running", "waiting"))
        if running or waiting:
            runs, waits = "job runs" if running == 1 else "jobs run", "waits" if waiting == 1 else "wait"
            return f"{running} {runs}, {waiting} {waits}."
        return "Nothing runs and nothing waits." if self.kinds else "Nothing has been queued yet."


def job_row(job_id: int) -> JobRow:
    """Return a job; raises `NotFound`."""
    job = _named(Job.objects.filter(pk=job_id)).first()
    if job is None:
        raise NotFound(f"there is no job {job_id}")
    return _row(job, _rollouts([job.pk]), _trainings([job]))


def jobs_of_groups(groups: Sequence[str]) -> dict[str, dict[int, JobRow]]:
    """Return the jobs of some groups, by the attempt that each makes."""
    found: dict[str, dict[int, JobRow]] = {}
    for job in Job.objects.filter(group__in=groups).order_by("id"):
        found.setdefault(job.group, {})[int(job.payload.get("attempt", 0))] = _row(job)
    return found


def queue_page(kind: str = "", ended: int = 100) -> QueuePage:
    """Return what runs, what waits in the order it was queued, and what has ended, the newest first."""
    rows = Job.objects.filter(kind=kind) if kind else Job.objects.all()
    by_state = Job.objects.values_list("kind", "state").annotate(n=Count("pk")).order_by("kind")
    counts: dict[str, dict[str, int]] = {}
    for name, state, count in by_state:
        counts.setdefault(name, {})[state] = count
    rows = _named(rows)
    running = list(rows.filter(state=JobState.RUNNING).order_by("id"))
    waiting = list(rows.filter(state=JobState.QUEUED).order_by("id")[:MOST_WAITING])
    over = list(rows.filter(state__in=ENDED).order_by("-id")[:ended])
    trainings = _trainings([*running, *waiting, *over])
    made = _rollouts([job.pk for job in running])
    places: Counter[str] = Counter()
    positions = {}
    for pk, queue in Job.objects.filter(state=JobState.QUEUED).order_by("id").values_list("pk", "queue"):
        places[queue] += 1
        positions[pk] = places[queue]
    return QueuePage(
        running=[_row(job, made, trainings) for job in running],
        waiting=[(positions.get(job.pk, 0), _row(job, None, trainings)) for job in waiting],
        ended=[_row(job, None, trainings) for job in over],
        kinds=[
            KindCount(
                kind=name,
                running=states.get(JobState.RUNNING, 0),
                waiting=states.get(JobState.QUEUED, 0),
                ended=sum(states.get(state, 0) for state in ENDED),
            )
            for name, states in counts.items()
        ],
    )


def _rollouts(jobs: Sequence[int]) -> dict[int, int]:
    """Return the newest rollout of each job."""
    return dict(Rollout.objects.filter(job__in=jobs).order_by("pk").values_list("job_id", "pk")) if jobs else {}


def _named(jobs: JobQuerySet) -> JobQuerySet:
    """Read of each job's payload its case alone: a recipe holds all files of its case."""
    named = Coalesce(KT("payload__recipe__case__name"), KT("payload__case"), Value(""), output_field=CharField())
    return jobs.annotate(case=named).defer("payload")


def _trainings(jobs: Sequence[Job]) -> dict[int, int]:
    """Return, by iteration, the trainings that jobs ask changes for."""
    iterations = [owner for job in jobs if (owner := _owner(job, "propose")) is not None]
    return dict(Iteration.objects.filter(pk__in=iterations).values_list("pk", "training_id")) if iterations else {}


def _owner(job: Job, *words: str) -> int | None:
    """Return what a job's group belongs to, where it is such a group."""
    word, _, number = job.group.partition(" ")
    return natural(number) if word in words else None


def _row(job: Job, made: Mapping[int, int] | None = None, trainings: Mapping[int, int] | None = None) -> JobRow:
    rollout = (made or {}).get(job.pk) or job.result.get("rollout")
    until = job.ended_at or timezone.now()
    return JobRow(
        id=job.pk,
        kind=job.kind,
        group=job.group,
        state=job.state,
        message=job.message,
        done=job.done,
        total=job.total,
        attempt=job.attempt,
        ended=job.state in ENDED,
        cancel_requested=job.cancel_requested,
        result=job.result,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        elapsed=(until - job.started_at).total_seconds() if job.started_at is not None else None,
        rerun=_owner(job, "rerun"),
        engine=_owner(job, "engine"),
        rollout=rollout if isinstance(rollout, int) else None,
        case=getattr(job, "case", ""),
        experiment=_owner(job, "experiment", "certify"),
        training=(trainings or {}).get(_owner(job, "propose") or 0),
    )
