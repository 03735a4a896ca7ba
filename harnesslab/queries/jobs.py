"""Jobs as read models."""

from __future__ import annotations

from datetime import datetime

from harnesslab.core.errors import NotFound
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Job
from harnesslab.store.models.jobs import ENDED


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

    @property
    def percent(self) -> int | None:
        """Progress in percent, where the total is known."""
        return min(100, round(100 * self.done / self.total)) if self.total else None


def job_row(job_id: int) -> JobRow:
    """Return a job; raises `NotFound`."""
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"there is no job {job_id}")
    return _row(job)


def recent_jobs(limit: int = 100) -> list[JobRow]:
    """Return jobs, newest first."""
    return [_row(job) for job in Job.objects.order_by("-id")[:limit]]


def jobs_by_attempt(group: str) -> dict[int, JobRow]:
    """Return the jobs of a group by the attempt that each makes."""
    return {int(job.payload.get("attempt", 0)): _row(job) for job in Job.objects.filter(group=group).order_by("id")}


def _row(job: Job) -> JobRow:
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
    )
