"""Large uploads: kept for one job, whatever they are called and however often they are sent."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection

from harnesslab.accounts.models import User
from harnesslab.actions.imports import uploads
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.store.models import Job, Rollout
from tests.actions.imports.test_imports import lines
from workers.tasks.jobs import run_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def small_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, home=tmp_path))
    monkeypatch.setattr(uploads, "INLINE_BYTES", 100)
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)


def spooled() -> list[Path]:
    folder = Path(settings.CONFIG.home) / "spool"
    return list(folder.iterdir()) if folder.exists() else []


def sent(user: User, name: str = "runs.jsonl", project: str = "") -> dict[str, Any]:
    (result,) = uploads.receive([SimpleUploadedFile(name, lines(5).encode())], project, user)
    return result


def test_the_same_upload_sent_twice_at_once_is_one_job(operator: User) -> None:
    together = threading.Barrier(4)

    def one(_: int) -> object:
        together.wait()
        try:
            return sent(operator)["job"]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(one, range(4)))) == 1
    assert Job.objects.count() == len(spooled()) == 1


def test_an_upload_after_the_job_has_ended_is_another_job(operator: User) -> None:
    first = sent(operator)["job"]
    run_job(first)
    assert Rollout.objects.count() == 5
    assert spooled() == []
    second = sent(operator)["job"]
    assert second != first
    run_job(second)
    assert Job.objects.get(pk=second).result["results"][0]["status"] == "duplicate"


def test_another_project_is_another_job(operator: User) -> None:
    assert sent(operator)["job"] != sent(operator, project="other")["job"]


@pytest.mark.parametrize("name", ["../../evil.jsonl", "/etc/passwd", "😀" * 250 + ".jsonl", "a\r\nb", "con\x00"])
def test_no_name_leaves_its_folder(operator: User, name: str) -> None:
    sent(operator, name)
    (folder,) = spooled()
    assert [place.name for place in folder.iterdir()] == ["upload"]
    job = Job.objects.get()
    run_job(job.pk)
    job.refresh_from_db()
    assert (job.state, Rollout.objects.count()) == ("done", 5)


def test_what_a_cancelled_job_left_is_removed_after_a_while(operator: User) -> None:
    jobs.cancel(sent(operator)["job"])
    assert uploads.discard_abandoned() == 0
    (folder,) = spooled()
    os.utime(folder, (0, 0))
    assert uploads.discard_abandoned() == 1
    sent(operator)
    (folder,) = spooled()
    os.utime(folder, (0, 0))
    assert uploads.discard_abandoned() == 0


def test_a_file_beyond_the_bound_is_refused_at_once(operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILE", 200)
    assert sent(operator)["status"] == "refused"
    assert not Job.objects.exists()
