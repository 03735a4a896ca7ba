"""What earlier versions counted comes to what is counted now: only what should change, once, kills notwithstanding."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.measuring.trace_statistics import VERSION
from tests.rig import environ
from tests.upgrade.versions import VERSIONS, name_of, unpack

pytestmark = [pytest.mark.serial, pytest.mark.timeout(200)]
COUNTED = {"steps", "input_tokens", "output_tokens", "cached_tokens", "seconds", "anatomy", "counted_by"}
KILLED = """
import os, signal, django
django.setup()
from harnesslab.actions.rollouts import recount
real, left = recount.counted_anew, [20]
def counted(row):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return real(row)
recount.counted_anew = counted
for _ in recount.recount_all():
    pass
"""
OPENED = """
import json, django
django.setup()
from harnesslab.core.trace.answers import served
from harnesslab.core.trace.events import ModelCall
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout
calls = lambda row: [event for event in StoredTraceReader(row).events() if isinstance(event, ModelCall)]
print(json.dumps({row.pk: sum(served(event) for event in calls(row)) for row in Rollout.objects.all()}))
"""


def python(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environ(home, DATABASE_URL=""), capture_output=True, text=True, check=False)


def recount(home: Path) -> list[str]:
    done = python(home, "-m", "harnesslab.cli.main", "recount", "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def rows_of(home: Path) -> dict[int, dict[str, Any]]:
    with sqlite3.connect(home / "harnesslab.sqlite3") as database:
        database.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in database.execute("SELECT * FROM store_rollout ORDER BY id")}


@pytest.fixture(params=VERSIONS, ids=name_of)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param / "home.tar.zst", tmp_path)


def test_only_what_should_change_does_and_once(home: Path) -> None:
    assert python(home, "-m", "harnesslab.cli.main", "prepare").returncode == 0  # which changes labels, and no count
    before = rows_of(home)
    said = recount(home)
    after = rows_of(home)
    assert said[-1].startswith(f"{len(before)} counted by version {VERSION}, {len(said) - 1} with other numbers")
    assert {row["counted_by"] for row in after.values()} == {VERSION}
    served = {int(pk): count for pk, count in json.loads(python(home, "-c", OPENED).stdout).items()}
    assert sum(count > 0 for count in served.values()) >= 3
    for pk, row in after.items():
        old = before[pk]
        assert {name for name in old if old[name] != row[name]} <= COUNTED
        assert (old["steps"], old["seconds"]) == (row["steps"], row["seconds"])
        tokens = [(old[name], row[name]) for name in ("input_tokens", "output_tokens", "cached_tokens")]
        if not served[pk]:
            assert all(one == two for one, two in tokens)
        assert all(two is None or (one or 0) >= two for one, two in tokens)
    assert any(after[pk]["output_tokens"] != before[pk]["output_tokens"] for pk in after)
    assert recount(home) == [f"0 counted by version {VERSION}, 0 with other numbers"]
    assert rows_of(home) == after


def test_a_recount_that_was_killed_goes_on_with_what_is_left(home: Path) -> None:
    assert python(home, "-m", "harnesslab.cli.main", "recount").returncode == 0  # the tables are brought up to date
    killed = python(home, "-c", KILLED)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    counted = sum(row["counted_by"] == VERSION for row in rows_of(home).values())
    assert counted == 20
    assert recount(home)[-1].startswith(f"{len(rows_of(home)) - 20} counted by version {VERSION}")
    assert {row["counted_by"] for row in rows_of(home).values()} == {VERSION}
