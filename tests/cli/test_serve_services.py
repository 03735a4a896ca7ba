"""`harnesslab serve` on a real PostgreSQL and a real Redis; the stage with services runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.rig import Lab, native_lines

pytestmark = pytest.mark.serial

ADDRESS = os.environ.get("DATABASE_URL", "")
DATABASE = "harnesslab_serve_trial"
QUEUE_ONE = """
import sys, time, django
django.setup()
from harnesslab.actions.jobs.lifecycle import enqueue
from harnesslab.store.models import Job, Rollout
job = enqueue("import", {"path": sys.argv[1], "name": "trial.jsonl", "project": ""})
deadline = time.monotonic() + 60
while job.state in ("queued", "running") and time.monotonic() < deadline:
    time.sleep(0.05)
    job.refresh_from_db()
print(job.state, job.attempt, Rollout.objects.count())
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Lab]:
    """A server on a database of this test alone."""
    with psycopg.connect(ADDRESS, autocommit=True) as owner:
        owner.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        owner.execute(f"CREATE DATABASE {DATABASE}")
        address = urlsplit(ADDRESS)._replace(path=f"/{DATABASE}").geturl()
        lab = Lab(tmp_path, DATABASE_URL=address, REDIS_URL=os.environ["REDIS_URL"])
        yield lab
        lab.program.close()
        owner.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


if ADDRESS.startswith("postgres"):  # without the services there is nothing to serve on

    def test_a_job_goes_through_postgresql_and_redis(served: Lab, tmp_path: Path) -> None:
        assert served.health() == {"status": "ok", "version": "0.1.0"}
        place = tmp_path / "spooled" / "trial.jsonl"
        place.parent.mkdir()
        place.write_text(native_lines(7))
        command = [sys.executable, "-c", QUEUE_ONE, str(place)]
        done = subprocess.run(command, env=served.env, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["done", "1", "7"]
        assert not (served.home / "harnesslab.sqlite3").exists()
        assert not (served.home / "broker").exists()
