"""The life of a job: claimed once, kept alive, brought back, cancelled, never doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.core.errors import Conflict, InvalidValue, NotFound
from harnesslab.store.models import Engine, Job, JobState
from workers import sweeper
from workers.tasks import jobs as task
from workers.tasks.jobs import KINDS

pytestmark = pytest.mark.django_db

Kind = Callable[[Callable[..., Any]], None]


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The woken_ids that were woken, which here reach no worker."""
    woken_ids: list[tuple[int, str]] = []
    monkeypatch.setattr("harnesslab.queue.wake", lambda job_id, name: woken_ids.append((job_id, name)))
    return woken_ids


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Register what jobs of the kind `trial` do."""

    def register(work: Callable[..., Any]) -> None:
        known = {"trial": lambda attempt: work(attempt.payload, attempt.progress)}
        monkeypatch.setattr(task, "KINDS", known)

    return register


def make(**fields: Any) -> Job:
    """Make a job of the kind `trial` without a wake-up."""
    return Job.objects.create(kind="trial", payload={}, **fields)


def expire(job: Job) -> None:
    """Let a job's lease have run out."""
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_job_is_claimed_once() -> None:
    job = make()
    claimed = jobs.claim(job.pk)
    assert claimed is not None
    assert claimed[0].attempt == 1
    assert jobs.claim(job.pk) is None


@pytest.mark.django_db(transaction=True)
def test_two_claimants_at_once_get_one_job() -> None:
    job = make()
    start, taken = threading.Barrier(2), []

    def claimant() -> None:
        try:
            start.wait()
            taken.append(jobs.claim(job.pk))
        finally:
            connection.close()

    threads = [threading.Thread(target=claimant) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(claim is not None for claim in taken) == 1
    job.refresh_from_db()
    assert job.attempt == 1


@pytest.mark.django_db(transaction=True)
def test_two_enqueues_with_one_key_make_one_job(woken: list[tuple[int, str]]) -> None:
    first = jobs.enqueue("trial", {}, idempotency_key="button-1")
    second = jobs.enqueue("trial", {}, idempotency_key="button-1")
    assert first.pk == second.pk
    assert Job.objects.count() == 1
    assert woken == [(first.pk, "cpu")]


@pytest.mark.django_db(transaction=True)
def test_two_enqueues_without_a_key_make_two_jobs() -> None:
    assert jobs.enqueue("trial", {}).pk != jobs.enqueue("trial", {}).pk


def test_a_heartbeat_extends_the_lease_and_notes_progress() -> None:
    job, lease = jobs.claim(make().pk) or pytest.fail("not claimed")
    expire(job)
    assert jobs.heartbeat(job.pk, lease, 3, "three")
    job.refresh_from_db()
    assert (job.done, job.message) == (3, "three")
    assert job.lease_until is not None
    assert job.lease_until > timezone.now()
    assert jobs.sweep() == 0


def test_a_heartbeat_with_a_lost_lease_says_stop() -> None:
    job, lease = jobs.claim(make().pk) or pytest.fail("not claimed")
    expire(job)
    assert jobs.sweep() == 1
    assert not jobs.heartbeat(job.pk, lease)
    assert not jobs.finish(job.pk, lease, {"late": True})
    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.QUEUED, {})


def test_an_expired_job_is_queued_again_and_rung_for(woken: list[tuple[int, str]]) -> None:
    job, _ = jobs.claim(make().pk) or pytest.fail("not claimed")
    expire(job)
    assert jobs.sweep() == 1
    job.refresh_from_db()
    assert job.state == JobState.QUEUED
    assert woken == [(job.pk, "cpu")]


def test_the_last_attempt_that_is_lost_fails() -> None:
    job, _ = jobs.claim(make(attempt=2).pk) or pytest.fail("not claimed")
    expire(job)
    jobs.sweep()
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "no attempt is left" in job.message


def test_a_cancelled_job_that_is_lost_is_cancelled_even_at_its_last_attempt() -> None:
    job, _ = jobs.claim(make(attempt=2).pk) or pytest.fail("not claimed")
    jobs.cancel(job.pk)
    expire(job)
    jobs.sweep()
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_one_sweep_rings_once_a_queue(woken: list[tuple[int, str]]) -> None:
    first = make()
    make()
    other = make(queue="gpu")
    jobs.sweep()
    assert sorted(woken) == sorted([(first.pk, "cpu"), (other.pk, "gpu")])


def test_a_queued_job_is_cancelled_at_once() -> None:
    job = make()
    jobs.cancel(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert jobs.claim(job.pk) is None


def test_cancelling_what_has_ended_or_never_was() -> None:
    with pytest.raises(Conflict):
        jobs.cancel(make(state=JobState.DONE).pk)
    with pytest.raises(NotFound):
        jobs.cancel(2**31)


def ended(job: Job) -> Job:
    """Run one attempt and return the row."""
    task.run_job(job.pk)
    job.refresh_from_db()
    return job


def test_a_task_does_the_work_and_records_its_result(kind: Kind) -> None:
    kind(lambda payload, progress: {"ok": progress(1, "one")})
    job = ended(make())
    assert (job.state, job.result, job.message) == (JobState.DONE, {"ok": True}, "one")


def test_a_second_message_for_a_job_does_nothing(kind: Kind) -> None:
    calls: list[int] = []

    def work(payload: Any, progress: Any) -> dict[str, Any]:
        calls.append(1)
        return {}

    kind(work)
    job = ended(make())
    task.run_job(job.pk)
    assert calls == [1]


def test_a_task_rings_for_the_next_job_of_its_queue(kind: Kind, woken: list[tuple[int, str]]) -> None:
    kind(lambda payload, progress: {})
    job, following = make(), make()
    ended(job)
    assert woken == [(following.pk, "cpu")]


def test_an_unknown_kind_fails_with_a_sentence() -> None:
    job = Job.objects.create(kind="divination", payload={})
    ended(job)
    assert job.state == JobState.FAILED
    assert job.message == f"this version has no job of kind 'divination'; it knows {', '.join(sorted(KINDS))}"


def test_an_expected_error_fails_with_its_sentence(kind: Kind) -> None:
    def work(payload: Any, progress: Any) -> dict[str, Any]:
        raise InvalidValue("too long", where="line 3", hint="split it")

    kind(work)
    job = ended(make())
    assert (job.state, job.message) == (JobState.FAILED, "line 3: too long (split it)")


def test_an_unexpected_error_fails_with_type_and_message_and_is_logged(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    kind(lambda payload, progress: {"x": 1 // 0})
    job = ended(make())
    assert job.state == JobState.FAILED
    assert job.message.startswith("ZeroDivisionError: ")
    assert "Traceback" in caplog.text


def test_a_running_job_stops_at_its_next_progress_when_cancelled(kind: Kind) -> None:
    job = make()

    def work(payload: Any, progress: Callable[[int, str], bool]) -> dict[str, Any]:
        jobs.cancel(job.pk)
        return {"cancelled": not progress(1, "one")}

    kind(work)
    ended(job)
    assert job.state == JobState.CANCELLED


def test_a_worker_that_is_stopped_gives_its_job_back(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(payload: Any, progress: Callable[[int, str], bool]) -> dict[str, Any]:
        monkeypatch.setattr(task, "_shutting_down", True)
        return {"cancelled": not progress(1, "one")}

    kind(work)
    job = ended(make())
    assert (job.state, job.attempt) == (JobState.QUEUED, 0)


@pytest.mark.django_db(transaction=True)
def test_the_lease_thread_beats_while_the_work_is_silent(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.actions.jobs.leases.BEAT_S", 0.05)
    beaten = threading.Event()
    beat = jobs.heartbeat

    def noted(job_id: int, lease: str) -> bool:
        held = beat(job_id, lease)
        beaten.set()
        return held

    monkeypatch.setattr(jobs, "heartbeat", noted)
    kind(lambda payload, progress: {"beaten": beaten.wait(10)})
    assert ended(make()).result == {"beaten": True}


@pytest.fixture
def broken_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is away."""
    from django.db import OperationalError

    def away() -> int:
        raise OperationalError("the database is away")

    monkeypatch.setattr(sweeper, "sweep", away)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("broken_database")
def test_the_sweeper_outlives_a_database_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    sweeper.tick()
    assert "could not sweep" in caplog.text


def engine(name: str, ceiling: int) -> str:
    Engine.objects.create(name=name, kind="openai", address="http://127.0.0.1:9", model="m", ceiling=ceiling)
    return name


def test_no_more_jobs_run_on_an_engine_than_its_ceiling_allows() -> None:
    busy = engine("busy", 2)
    waiting = [make(engine=busy) for _ in range(3)]
    claimed = [jobs.claim(job.pk) for job in waiting]
    assert [each is not None for each in claimed] == [True, True, False]
    assert claimed[0] is not None
    jobs.finish(waiting[0].pk, claimed[0][1], {})
    assert jobs.claim(waiting[2].pk) is not None


def test_an_idle_engines_jobs_do_not_wait_behind_those_of_a_busy_one(woken: list[tuple[int, str]]) -> None:
    busy, idle = engine("busy", 1), engine("idle", 1)
    held, *_ = [make(engine=busy, queue="gpu") for _ in range(80)]
    other = make(engine=idle, queue="gpu")
    assert jobs.claim(held.pk) is not None
    jobs.wake_next("gpu")
    assert woken == [(other.pk, "gpu")]


def test_a_worker_that_is_woken_for_a_full_engine_passes_on(woken: list[tuple[int, str]]) -> None:
    busy, idle = engine("busy", 1), engine("idle", 1)
    first, second = make(engine=busy, queue="gpu"), make(engine=busy, queue="gpu")
    other = make(engine=idle, queue="gpu")
    assert jobs.claim(first.pk) is not None
    task.run_job(second.pk)
    assert (Job.objects.get(pk=second.pk).state, woken) == ("queued", [(other.pk, "gpu")])


def test_a_job_whose_engine_is_gone_is_taken_and_says_so_itself() -> None:
    assert jobs.claim(make(engine="gone").pk) is not None
