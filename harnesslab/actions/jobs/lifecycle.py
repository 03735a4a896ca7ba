"""The life of a job: every change of state is one compare-and-set, so that no job runs twice at a time.

Neither broker brings back the message of a killed worker, so the lease and the sweeper are the only recovery:
a running job whose lease ran out is queued again, and after `max_attempts` it has failed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from itertools import islice

from django.db import IntegrityError, transaction
from django.db.models import Count, F
from django.utils import timezone

from harnesslab import queue
from harnesslab.accounts.models import User
from harnesslab.core.errors import Conflict, NotFound
from harnesslab.store.models import Engine, Job, JobState
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import storable

LEASE = timedelta(seconds=30)
BATCH = 200
"""Jobs that one statement queues."""


def enqueue(
    kind: str,
    payload: dict[str, object],
    *,
    idempotency_key: str = "",
    user: User | None = None,
    total: int | None = None,
    queue_name: str = "cpu",
    group: str = "",
    engine: str = "",
    silently: bool = False,
) -> Job:
    """Queue a job and wake a worker on commit; the same idempotency key gives the job that is already there.

    One of many is queued `silently`: a worker that ends a job wakes one for the next. See `enqueue_all` too.
    """
    if idempotency_key:
        known = Job.objects.filter(idempotency_key=idempotency_key).first()
        if known is not None:
            return known
    try:
        # a savepoint where the caller has a transaction: PostgreSQL would give up all of it for a key that is taken
        with transaction.atomic():
            job = Job.objects.create(
                kind=kind,
                queue=queue_name,
                group=group,
                engine=engine,
                payload=payload,
                idempotency_key=idempotency_key or None,
                created_by=user,
                total=total,
            )
            if not silently:
                transaction.on_commit(lambda: queue.wake(job.pk, queue_name))
    except IntegrityError:
        return Job.objects.get(idempotency_key=idempotency_key)
    return job


def enqueue_all(waiting: Iterable[Job], *, wake_ups: int) -> None:
    """Queue many new jobs in few statements and wake workers for the first; raises `IntegrityError` for a known key."""
    rows = iter(waiting)
    with transaction.atomic():
        while batch := list(islice(rows, BATCH)):
            made = Job.objects.bulk_create(batch)
            for job in made[:wake_ups]:
                transaction.on_commit(partial(queue.wake, job.pk, job.queue))
            wake_ups = max(0, wake_ups - len(made))


def begin(kind: str, payload: dict[str, object], user: User | None = None) -> tuple[Job, str]:
    """Make a job that runs already, in a process that no worker stands behind; return it with the lease to show.

    Where that process is killed, the sweeper ends the job: it has one attempt.
    """
    lease = secrets.token_hex(16)
    now = timezone.now()
    running = Job.objects.create(
        kind=kind,
        payload=payload,
        state=JobState.RUNNING,
        lease=lease,
        lease_until=now + LEASE,
        started_at=now,
        attempt=1,
        max_attempts=1,
        created_by=user,
    )
    return running, lease


def claim(job_id: int) -> tuple[Job, str] | None:
    """Take a queued job and return it with the lease to show.

    None where another worker has it, or where as many run on its engine as the ceiling allows.
    """
    lease = secrets.token_hex(16)
    now = timezone.now()
    with transaction.atomic():
        if not _has_room(job_id):
            return None
        taken = Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(
            state=JobState.RUNNING,
            lease=lease,
            lease_until=now + LEASE,
            attempt=F("attempt") + 1,
            started_at=now,
        )
    return (Job.objects.get(pk=job_id), lease) if taken else None


def _has_room(job_id: int) -> bool:
    """Say whether fewer jobs run on a job's engine than its ceiling; the engine's row is the lock until it is taken."""
    name = Job.objects.filter(pk=job_id).exclude(engine="").values_list("engine", flat=True).first()
    if name is None:
        return True
    ceiling = (
        Engine.objects.select_for_update().filter(name=name, retired=False).values_list("ceiling", flat=True).first()
    )
    return ceiling is None or Job.objects.filter(engine=name, state=JobState.RUNNING).count() < ceiling


def pass_on(job_id: int) -> None:
    """Wake a worker for another job of a queue, where this one still waits for room on its engine."""
    name = Job.objects.filter(pk=job_id, state=JobState.QUEUED).values_list("queue", flat=True).first()
    if name is not None:
        wake_next(name)


def heartbeat(job_id: int, lease: str, done: int | None = None, message: str | None = None) -> bool:
    """Extend a lease and note progress; False tells the worker to stop: cancelled, or no longer its job."""
    changes: dict[str, object] = {"lease_until": timezone.now() + LEASE}
    if done is not None:
        changes["done"] = done
    if message is not None:
        changes["message"] = storable(message)
    held = Job.objects.filter(pk=job_id, lease=lease, state=JobState.RUNNING)
    return bool(held.filter(cancel_requested=False).update(**changes))


def finish(job_id: int, lease: str, result: dict[str, object], message: str = "") -> bool:
    """End a job well; False where the lease was lost."""
    return _end(job_id, lease, JobState.DONE, message, result)


def fail(job_id: int, lease: str, message: str) -> bool:
    """End a job with what went wrong; False where the lease was lost."""
    return _end(job_id, lease, JobState.FAILED, message, {})


def stop(job_id: int, lease: str) -> bool:
    """End a job that was asked to stop; one that is wanted again by then is queued again."""
    wanted = Job.objects.filter(pk=job_id, lease=lease, cancel_requested=False)
    if wanted.exists() and give_back(job_id, lease):
        return False
    return _end(job_id, lease, JobState.CANCELLED, "cancelled", {})


def give_back(job_id: int, lease: str) -> bool:
    """Queue a job again whose worker is shutting down; the attempt doesn't count."""
    held = Job.objects.filter(pk=job_id, lease=lease, state=JobState.RUNNING)
    given = held.update(
        state=JobState.QUEUED,
        lease="",
        lease_until=None,
        attempt=F("attempt") - 1,
        message="the worker was stopped; queued again",
    )
    return bool(given)


def wake_next(queue_name: str) -> None:
    """Wake a worker for the job that has waited longest in a queue, if one waits that can run; a freed worker calls it.

    One whose engine is full waits on, and holds up no job of another engine.
    """
    waiting = Job.objects.all().waiting(queue_name).exclude(engine__in=_full())
    first = waiting.values_list("pk", flat=True).first()
    if first is not None:
        queue.wake(first, queue_name)


def _full() -> list[str]:
    """Return the names of the engines on which as many jobs run as their ceilings allow."""
    on_engines = Job.objects.filter(state=JobState.RUNNING).exclude(engine="")
    running = dict(on_engines.values_list("engine").annotate(jobs=Count("pk")))
    ceilings = Engine.objects.filter(name__in=running, retired=False).values_list("name", "ceiling")
    return [name for name, ceiling in ceilings if running[name] >= ceiling]


def has_ended(job_id: int) -> bool:
    """Say whether a job is over for good."""
    return Job.objects.filter(pk=job_id, state__in=ENDED).exists()


def cancel(job_id: int) -> None:
    """Ask a job to stop: a queued one ends at once, a running one at its next heartbeat."""
    now = timezone.now()
    queued = Job.objects.filter(pk=job_id, state=JobState.QUEUED)
    if queued.update(state=JobState.CANCELLED, ended_at=now, message="cancelled before it began"):
        return
    if Job.objects.filter(pk=job_id, state=JobState.RUNNING).update(cancel_requested=True):
        return
    if not Job.objects.filter(pk=job_id).exists():
        raise NotFound(f"there is no job {job_id}")
    raise Conflict("the job has already ended", where=f"job {job_id}")


def cancel_group(group: str) -> int:
    """Ask every job of a group that has not ended to stop; returns how many were asked."""
    jobs = Job.objects.filter(group=group)
    asked = 0
    while True:  # again for those that were claimed or given back in between
        ended = {"state": JobState.CANCELLED, "ended_at": timezone.now(), "message": "cancelled before it began"}
        found = jobs.filter(state=JobState.QUEUED).update(**ended)
        found += jobs.filter(state=JobState.RUNNING, cancel_requested=False).update(cancel_requested=True)
        if not found:
            return asked
        asked += found


def requeue_group(group: str) -> int:
    """Queue the cancelled and failed jobs of a group again; returns how many.

    One that was asked to stop and still runs is let go on.
    """
    Job.objects.filter(group=group, state=JobState.RUNNING, cancel_requested=True).update(cancel_requested=False)
    back = Job.objects.filter(group=group, state__in=(JobState.CANCELLED, JobState.FAILED))
    queues = set(back.values_list("queue", flat=True))
    count = back.update(
        state=JobState.QUEUED, attempt=0, cancel_requested=False, ended_at=None, message="queued again", result={}
    )
    for name in queues:
        transaction.on_commit(partial(wake_next, name))
    return count


def sweep() -> int:
    """Requeue, fail or end jobs whose worker is gone, and wake workers again; returns how many were expired.

    One wake-up a queue and sweep is enough, since a worker that ends a job wakes one for the next one; waking for every
    waiting job would pile up messages behind a long one.
    """
    now = timezone.now()
    # Each statement below asks anew and takes its rows out, so that what is left at last has an attempt left; a beat
    # that comes in between takes its row out too.
    expired = Job.objects.all().expired(now)
    lost = "the worker was lost"
    cancelled = expired.filter(cancel_requested=True).update(
        state=JobState.CANCELLED, ended_at=now, message=f"cancelled; {lost}", lease=""
    )
    failed = expired.filter(attempt__gte=F("max_attempts")).update(
        state=JobState.FAILED, ended_at=now, message=f"{lost}, and no attempt is left", lease=""
    )
    requeued = expired.update(state=JobState.QUEUED, lease="", lease_until=None, message=f"{lost}; queued again")
    for name in Job.objects.filter(state=JobState.QUEUED).order_by("queue").values_list("queue", flat=True).distinct():
        wake_next(name)
    return failed + cancelled + requeued


def _end(job_id: int, lease: str, state: JobState, message: str, result: dict[str, object]) -> bool:
    return bool(
        Job.objects.filter(pk=job_id, lease=lease, state=JobState.RUNNING).update(
            state=state, ended_at=timezone.now(), message=storable(message), result=result, lease="", lease_until=None
        )
    )
