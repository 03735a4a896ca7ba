"""`harnesslab serve` with real processes: start, restart, stop, and nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import Lab, alive, descendants, environ, wait_until

pytestmark = pytest.mark.serial


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Lab]:
    """A server of this test alone."""
    lab = Lab(tmp_path)
    yield lab
    lab.program.close()


def test_it_answers_and_ctrl_c_leaves_no_process(served: Lab) -> None:
    assert served.health() == {"status": "ok", "version": "0.1.0"}
    children = descendants(served.program.process.pid)
    assert len(children) >= 4  # web and its process, worker, sweeper, guard
    served.program.send(signal.SIGINT)
    assert served.program.process.wait(20) == 0, served.program.printed
    assert alive(children) == set()


def test_a_killed_supervisor_leaves_no_process(served: Lab) -> None:
    children = descendants(served.program.process.pid)
    served.program.kill()
    wait_until(lambda: not alive(children), 10, "all children to end")


def test_a_child_that_dies_is_started_again(served: Lab) -> None:
    web = min(pid for pid in descendants(served.program.process.pid) if "gunicorn" in command_line(pid))
    os.kill(web, signal.SIGKILL)
    served.program.wait_for("web ended with signal SIGKILL; again in 0.5 s")
    wait_until(lambda: served.health() is not None, 20, "an answer after the restart")


def test_the_second_start_prepares_nothing_again_and_keeps_data_and_password(served: Lab, tmp_path: Path) -> None:
    password = served.passwords["admin"]
    served.program.close()
    again = Lab(tmp_path / "again", "--port", "0", home=served.home)
    try:
        assert again.passwords["admin"] == password
        assert f"log in as admin with the password {password}" in again.program.printed
        assert "static files collected" not in again.program.printed
    finally:
        again.program.close()


def test_the_password_is_readable_by_its_owner_alone(served: Lab) -> None:
    assert stat.S_IMODE((served.home / "first-admin").stat().st_mode) == 0o600


def test_a_second_server_on_the_same_folder_is_refused(served: Lab) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harnesslab.cli.main", "serve", "--port", "0"],
        env=environ(served.home),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert "a server already runs on this folder" in done.stderr


def test_a_port_that_is_taken_is_said_when_it_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [sys.executable, "-m", "harnesslab.cli.main", "serve", "--port", str(taken.getsockname()[1])],
            env=environ(tmp_path / "home"),
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 1
    assert "can't listen: Address already in use" in done.stderr


def test_without_a_port_the_next_free_one_is_taken(tmp_path: Path) -> None:
    with socket.socket() as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            first.bind(("127.0.0.1", 8765))
            first.listen()
        except OSError:
            pass  # something else has it, which serves as well
        lab = Lab(tmp_path, "--workers", "0")
        try:
            assert lab.health() is not None
            assert not lab.address.endswith(":8765/")
        finally:
            lab.program.close()


def command_line(pid: int) -> str:
    """Return the command of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
