"""Jobs as read models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import Count
from django.utils import timezone

from harnesslab.core.errors import NotFound
from harnesslab.core.natural import natural
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Job, JobState, Rollout
from harnesslab.store.models.jobs import ENDED

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
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"there is no job {job_id}")
    return _row(job, _rollouts([job.pk]))


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
    running = list(rows.filter(state=JobState.RUNNING).order_by("id"))
    waiting = list(rows.filter(state=JobState.QUEUED).order_by("id")[:MOST_WAITING])
    over = list(rows.filter(state__in=ENDED).order_by("-id")[:ended])
    made = _rollouts([job.pk for job in running])
    places: Counter[str] = Counter()
    positions = {}
    for pk, queue in Job.objects.filter(state=JobState.QUEUED).order_by("id").values_list("pk", "queue"):
        places[queue] += 1
        positions[pk] = places[queue]
    return QueuePage(
        running=[_row(job, made) for job in running],
        waiting=[(positions.get(job.pk, 0), _row(job)) for job in waiting],
        ended=[_row(job) for job in over],
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


def _row(job: Job, made: Mapping[int, int] | None = None) -> JobRow:
    word, _, number = job.group.partition(" ")
    owner = natural(number)
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
        rerun=owner if word == "rerun" else None,
        engine=owner if word == "engine" else None,
        rollout=rollout if isinstance(rollout, int) else None,
    )
