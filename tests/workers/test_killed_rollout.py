"""`kill -9` in mid-rollout, of worker, broker, database connections or engine, loses and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from harnesslab.actions.engines import registration as engines
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.reruns import job_specs as orders
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import ModelCall
from harnesslab.queries.reruns.listing import rerun_view
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.requests.engines import EngineRequest
from harnesslab.runtime.engines.hosting import hosted
from harnesslab.store.models import Job, JobState, LooseEvent, Rollout
from tests.rig import wait_until
from tests.runtime.driver.rig import LOOP, case, model
from tests.workers.conftest import Start
from tests.workers.ordering import order, recipe, register

pytestmark = [pytest.mark.serial, pytest.mark.django_db(transaction=True)]


def ends(job: Job, seconds: float = 60) -> Job:
    """Wait for the end of a job."""

    def ended() -> bool:
        job.refresh_from_db()
        return job.state not in (JobState.QUEUED, JobState.RUNNING)

    wait_until(ended, seconds, "the job to end")
    return job


def expire(job: Job) -> None:
    """Let the lease of a lost worker have run out, and sweep."""
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.sweep()


def in_mid_step(count: int = 1) -> None:
    """Wait until a rollout has stored so many steps and is at work at the next."""
    wait_until(lambda: Rollout.objects.filter(head=None, steps__gte=count).exists(), 60, "a step to be stored")


def children_of(pid: int) -> set[int]:
    """Return the sandboxes' processes of a worker."""
    from tests.rig import descendants

    return descendants(pid)


def test_a_worker_killed_in_mid_step_leaves_a_sealed_prefix_and_another_makes_the_rollout_again(
    start: Start, tmp_path: Path
) -> None:
    from tests.rig import alive

    with model("echo one", "sleep 30", "echo one", "submit") as served:
        register(served.address)
        first = start()
        job = order(recipe(tmp_path, case(command=40.0)))
        in_mid_step(2)
        below = children_of(first.process.pid)
        first.kill()
        wait_until(lambda: not alive(below), 15, "the sandboxes of the killed worker to end")
        left = Rollout.objects.get()
        prefix = StoredTraceReader(get_rollout(left.pk)).trace()
        assert next(event.text for event in prefix.events if isinstance(event, ModelCall)) == "echo one"
        expire(job)
        start()
        ends(job)
    assert (job.state, job.attempt) == (JobState.DONE, 2), job.message
    rollouts = [get_rollout(pk) for pk in Rollout.objects.order_by("pk").values_list("pk", flat=True)]
    assert [rollout.outcome for rollout in rollouts] == ["interrupted", "unknown"]
    assert rollouts[0].pk == left.pk
    for rollout in rollouts:
        reader = StoredTraceReader(rollout)
        seals.verify(reader.trace(), reader.seals())
    assert not LooseEvent.objects.exists()


def test_a_killed_attempt_of_a_rerun_is_no_sample_of_its_own(start: Start, tmp_path: Path) -> None:
    with model("echo one", "submit", "sleep 30", "echo one", "submit") as served:
        register(served.address)
        first = start()
        parent = ends(order(recipe(tmp_path, case(command=40.0))))
        rerun = reruns.request(parent.result["rollout"], RerunPlan(mode=Mode.LIVE), user=None)
        in_mid_step()
        first.kill()
        job = Job.objects.get(group=f"rerun {rerun.pk}")
        expire(job)
        start()
        ends(job)
    view = rerun_view(rerun.pk)
    assert view.same is not None
    assert (view.same.k, view.same.n) == (1, 1), view.attempts
    assert Rollout.objects.filter(rerun=rerun).count() == 2


def test_a_job_cancelled_while_it_runs_ends_soon_and_its_rollout_says_so(start: Start, tmp_path: Path) -> None:
    with model("sleep 60") as served:
        register(served.address)
        start()
        job = order(recipe(tmp_path, case(command=90.0, wall=90.0)))
        in_mid_step()
        jobs.cancel(job.pk)
        ends(job, 20)
    assert job.state == JobState.CANCELLED
    assert get_rollout(Rollout.objects.get().pk).outcome == "interrupted"


def test_a_worker_told_to_stop_gives_its_rollout_back(start: Start, tmp_path: Path) -> None:
    with model("sleep 60", "submit") as served:
        register(served.address)
        first = start()
        job = order(recipe(tmp_path, case(command=90.0, wall=90.0)))
        in_mid_step()
        first.close()
        job.refresh_from_db()
        assert (job.state, job.attempt) == (JobState.QUEUED, 0), job.message
        jobs.sweep()
        start()
        ends(job)
    assert (job.state, job.attempt) == (JobState.DONE, 1)
    assert list(Rollout.objects.order_by("pk").values_list("outcome", flat=True)) == ["interrupted", "unknown"]


def test_an_engine_killed_while_it_answers_is_an_attempt_and_the_rollout_goes_on(
    start: Start, worker_home: Path, tmp_path: Path
) -> None:
    code = LOOP.replace('text = episode.model(messages)["text"]', 'text = episode.model(messages)["text"] and "submit"')
    with hosted(worker_home) as host:
        engines.register(EngineRequest(name="scripted", kind="embedded", options={"context": 1024}))
        start()
        job = order(recipe(tmp_path, case("Count to a thousand.", output=400), code, repeats=3))

        def answering() -> int:
            children: Any = host.status()["children"]
            return int(children[0]["pid"]) if children else 0

        pid = wait_until(answering, 60, "the engine to run")
        wait_until(lambda: Rollout.objects.filter(head=None).exists(), 60, "the rollout to begin")
        wait_until(lambda: _busy(pid), 30, "the engine to be at work")
        os.kill(pid, signal.SIGKILL)
        ends(job, 90)
    assert job.state == JobState.DONE, job.message
    calls = [event for event in trace_of(job).events if isinstance(event, ModelCall)]
    assert [call.attempt for call in calls] == list(range(len(calls)))
    assert calls[0].error is not None
    assert calls[-1].error is None


def _busy(pid: int) -> bool:
    """Say whether a process has used a little processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12]) > 60


def trace_of(job: Job) -> Any:
    return StoredTraceReader(get_rollout(job.result["rollout"])).trace()


if os.environ.get("HARNESSLAB_TEST_SERVICES"):

    @pytest.fixture
    def own_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        """A Redis of this test alone, that can be killed and started again on its port."""
        import socket

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        running: list[subprocess.Popen[bytes]] = []

        def begin() -> subprocess.Popen[bytes]:
            command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
            running.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL))
            return running[-1]

        begin.address = f"redis://127.0.0.1:{port}/0"  # type: ignore[attr-defined]
        yield begin
        for process in running:
            process.kill()
            process.wait()

    def test_a_broker_killed_while_jobs_wait_loses_none(
        own_redis: Any, worker_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from harnesslab import queue
        from harnesslab.config import Config
        from tests.rig import worker
        from tests.workers.conftest import database_url

        broker = own_redis()
        changes = {"DATABASE_URL": database_url(), "REDIS_URL": own_redis.address}
        config = Config.read({"HARNESSLAB_HOME": str(worker_home), **changes})
        monkeypatch.setattr(queue, "app", queue.application(config))
        with model("sleep 3", "submit") as served:
            register(served.address)
            program = worker(worker_home, tmp_path / "worker.log", **changes)
            try:
                waiting = [order(recipe(tmp_path, case(command=20.0))) for _ in range(3)]
                in_mid_step()
                broker.kill()
                broker.wait()
                own_redis()

                def all_ended() -> bool:
                    jobs.sweep()
                    return not Job.objects.filter(state__in=(JobState.QUEUED, JobState.RUNNING)).exists()

                wait_until(all_ended, 90, "all jobs to end")
            finally:
                program.close()
        assert [Job.objects.get(pk=job.pk).state for job in waiting] == [JobState.DONE] * 3
        assert Rollout.objects.filter(outcome="unknown").count() == 3

    def test_a_database_that_drops_every_connection_loses_and_doubles_nothing(start: Start, tmp_path: Path) -> None:
        with model("echo one", "sleep 2", "submit") as served:
            register(served.address)
            start()
            job = order(recipe(tmp_path, case(command=20.0)))
            in_mid_step(2)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )

            def ended() -> bool:
                expire_lost()
                job.refresh_from_db()
                return job.state not in (JobState.QUEUED, JobState.RUNNING)

            wait_until(ended, 90, "the job to end")
        assert job.state == JobState.DONE, job.message
        assert not Rollout.objects.filter(head=None).exists()
        assert Rollout.objects.filter(outcome="unknown").count() == 1

    def expire_lost() -> None:
        """Sweep; a lease that was not renewed for three beats counts as run out, so that no test waits for it."""
        long_ago = timezone.now() + jobs.LEASE - timedelta(seconds=4)
        Job.objects.filter(state=JobState.RUNNING, lease_until__lt=long_ago).update(
            lease_until=timezone.now() - timedelta(seconds=1)
        )
        jobs.sweep()
        orders.interrupt_abandoned()
