"""A worker killed in the middle of an import loses nothing and doubles nothing, over both brokers."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.store.models import Job, JobState, Rollout, SourceFile
from tests.rig import native_lines, wait_until
from tests.workers.conftest import Start

pytestmark = [pytest.mark.serial, pytest.mark.django_db(transaction=True)]

ROLLOUTS = 400


def big_import(folder: Path) -> Job:
    """Queue an import that takes a while."""
    place = folder / "spooled" / "big.jsonl"
    place.parent.mkdir()
    place.write_text(native_lines(ROLLOUTS))
    return jobs.enqueue("import", {"path": str(place), "name": place.name, "project": ""})


def ends(job: Job, seconds: float = 60) -> Job:
    """Wait for the end of a job."""

    def ended() -> bool:
        job.refresh_from_db()
        return job.state not in (JobState.QUEUED, JobState.RUNNING)

    wait_until(ended, seconds, "the job to end")
    return job


def test_a_job_is_done_by_a_real_worker(start: Start, tmp_path: Path) -> None:
    start()
    job = ends(big_import(tmp_path))
    assert (job.state, job.attempt) == (JobState.DONE, 1)
    assert Rollout.objects.count() == ROLLOUTS


def test_a_killed_worker_loses_and_doubles_nothing(start: Start, tmp_path: Path) -> None:
    first = start()
    job = big_import(tmp_path)
    wait_until(lambda: Rollout.objects.count() >= 5, 60, "the import to have begun")
    first.kill()
    stored = Rollout.objects.count()
    assert 5 <= stored < ROLLOUTS
    job.refresh_from_db()
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)
    # the lease takes half a minute to run out; here it has
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert jobs.sweep() == 1
    start()
    ends(job)
    assert (job.state, job.attempt) == (JobState.DONE, 2), job.message
    assert Rollout.objects.count() == ROLLOUTS
    assert len(set(Rollout.objects.values_list("position", flat=True))) == ROLLOUTS
    assert SourceFile.objects.count() == 1


def test_a_stopped_worker_gives_its_job_back_at_once(start: Start, tmp_path: Path) -> None:
    first = start()
    job = big_import(tmp_path)
    wait_until(lambda: Rollout.objects.count() >= 5, 60, "the import to have begun")
    first.close()
    assert first.process.returncode == 0, first.printed
    job.refresh_from_db()
    assert (job.state, job.attempt) == (JobState.QUEUED, 0), job.message
    jobs.sweep()
    start()
    ends(job)
    assert (job.state, job.attempt) == (JobState.DONE, 1)
    assert Rollout.objects.count() == ROLLOUTS


def test_the_stage_with_services_has_redis() -> None:
    if os.environ.get("HARNESSLAB_TEST_SERVICES"):
        assert settings.CONFIG.redis_url
        assert connection.vendor == "postgresql"
