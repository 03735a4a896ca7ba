"""Imports as processes: two at a time, on a new home, killed halfway, and on a disk that is full."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import Program, environ, wait_until

pytestmark = pytest.mark.serial
COMMAND = [sys.executable, "-m", "harnesslab.cli.main", "import", "--json"]


def own_lines(rollouts: int, pad: int = 2000) -> str:
    lines: list[dict[str, object]] = []
    for trial in range(rollouts):
        lines.append({"rollout": {"schema": "harnesslab.trace/1", "case": "c", "trial": trial, "outcome": "solved"}})
        said = {"role": "user", "content": f"{trial} " * pad}
        lines.append({"kind": "model_call", "messages": [said], "text": f"done {trial}"})
    return "\n".join(map(json.dumps, lines)) + "\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "a home"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "runs.jsonl"
    place.write_text(own_lines(200))
    return place


def stored(home: Path) -> int:
    try:
        with sqlite3.connect(f"file:{home}/harnesslab.sqlite3?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM store_rollout").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def run(home: Path, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, str(file)], env=environ(home), capture_output=True, text=True, timeout=60, check=False
    )


def test_two_imports_of_one_file_on_a_new_home_double_nothing(home: Path, file: Path) -> None:
    began = [
        subprocess.Popen([*COMMAND, str(file)], env=environ(home), stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    results = [json.loads(process.communicate(timeout=60)[0]) for process in began]
    assert [process.returncode for process in began] == [0, 0]
    assert sorted(result["status"] for result in results) == ["duplicate", "imported"]
    assert results[0]["rollouts"] == results[1]["rollouts"]
    assert stored(home) == 200


def test_an_import_that_is_killed_goes_on_and_doubles_nothing(home: Path, file: Path, tmp_path: Path) -> None:
    run(home, tmp_path / "none.jsonl")  # the tables
    first = Program([*COMMAND, str(file)], environ(home), tmp_path / "log")
    wait_until(lambda: stored(home) > 5, what="some rollouts")
    first.send(signal.SIGKILL)
    first.process.wait()
    assert 5 < stored(home) < 200
    result = json.loads(run(home, file).stdout)
    assert (result["status"], len(result["rollouts"])) == ("imported", 200)
    assert stored(home) == 200
    assert json.loads(run(home, file).stdout)["status"] == "duplicate"


def test_a_home_that_can_not_be_written_is_said_in_one_line(file: Path) -> None:
    done = run(Path("/proc/nowhere"), file)
    assert done.returncode == 1
    assert done.stderr.startswith("error: /proc/nowhere: can't be written")
    assert len(done.stderr.splitlines()) == 1


def test_the_home_and_its_secrets_are_their_owner_s_alone(home: Path, file: Path) -> None:
    run(home, file)
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "secret-key").stat().st_mode & 0o777 == 0o600


def test_a_database_that_is_away_is_said_in_one_line(home: Path, file: Path) -> None:
    env = environ(home, DATABASE_URL="postgresql://someone:hidden@127.0.0.1:1/lab")
    done = subprocess.run([*COMMAND, str(file)], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the database: ")
    assert "hidden" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_full_disk_is_said_in_one_line_and_leaves_whole_rollouts(home: Path, file: Path) -> None:
    """The system's limit of a file's size stands for the disk."""
    run(home, file.with_name("none.jsonl"))
    limit = f"""import resource, runpy, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({2**20}, {2**20}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.argv = ["harnesslab", "import", {str(file)!r}]
runpy.run_module("harnesslab.cli.main", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", limit], env=environ(home), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "error: the database: " in done.stderr.splitlines()[-1]
    before = stored(home)
    assert before < 200
    assert len(json.loads(run(home, file).stdout)["rollouts"]) == 200
    assert stored(home) == 200


def test_a_pipe_is_refused_at_once(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run(home, tmp_path / "pipe")
    assert json.loads(done.stdout)["status"] == "refused"
    assert done.returncode == 1
