"""The machinery of tests with real processes: a server under its supervisor, a worker, waiting for a state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
T = TypeVar("T")


def wait_until(found: Callable[[], T], seconds: float = 30.0, what: str = "") -> T:
    """Return the first true answer; fails with a sentence after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = found()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds:g} s: {what or found}")


def environ(home: Path, **changes: str) -> dict[str, str]:
    """Return the environment of a process with this home, on SQLite and the embedded broker unless changed."""
    kept = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
    paths = [str(ROOT), kept.get("PYTHONPATH", "")]
    return {
        **kept,
        "HARNESSLAB_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "harnesslab.settings",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        **changes,
    }


class Program:
    """A process in a group of its own, with what it prints kept in a file."""

    def __init__(self, command: list[str], env: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as handle:
            self.process = subprocess.Popen(
                command, env=dict(env), cwd=log.parent, stdout=handle, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def printed(self) -> str:
        """Everything it has printed."""
        return self.log.read_text(errors="replace")

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Wait until it has printed a text; fails at once when the process has ended."""

        def seen() -> bool:
            if text in self.printed:
                return True
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.printed}"
            return False

        wait_until(seen, seconds, f"{text!r} in:\n{self.printed}")

    def send(self, number: int) -> None:
        """Send a signal to the process alone."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """`kill -9` of the process alone."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process, politely first."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


def worker(home: Path, log: Path, **changes: str) -> Program:
    """Start a worker as `harnesslab serve` does."""
    command = [sys.executable, "-m", "celery", "--app", "workers.app", "worker", "--queues", "cpu,gpu,control"]
    command += ["--pool", "solo"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
    return Program(command, environ(home, **changes), log)


class Lab:
    """A running `harnesslab serve`: its address, its home and its users."""

    def __init__(self, folder: Path, *arguments: str, home: Path | None = None, **changes: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.home = home or folder / "home"
        self.env = environ(self.home, **changes)
        command = [sys.executable, "-m", "harnesslab.cli.main", "serve", *(arguments or ("--port", "0"))]
        self.program = Program(command, self.env, folder / f"serve-{time.monotonic_ns()}.log")
        self.program.wait_for("ready at ")
        self.address = self.program.printed.split("ready at ")[1].split()[0]
        self.passwords = {"admin": (self.home / "first-admin").read_text().splitlines()[0]}

    def run(self, *arguments: str) -> str:
        """Run a `harnesslab` command on this lab's home and return what it printed."""
        command = [sys.executable, "-m", "harnesslab.cli.main", *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def add_users(self) -> None:
        """Add a user named as each lower role, with a password of their own."""
        self.passwords |= {"viewer": "viewer-password", "operator": "operator-password"}
        script = (
            "import django; django.setup()\n"
            "from harnesslab.actions.accounts.users import add_user\n"
            "for name in ('viewer', 'operator'): add_user(None, name, f'{name}-password', name)\n"
        )
        subprocess.run([sys.executable, "-c", script], env=self.env, check=True)

    def health(self) -> object:
        """Return what /health answers, or None where nothing answers."""
        try:
            with urllib.request.urlopen(f"{self.address}health", timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, OSError):
            return None


def descendants(pid: int) -> set[int]:
    """Return the ids of the processes below one, from /proc."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    left = [pid]
    while left:
        children = below.get(left.pop(), [])
        found |= set(children)
        left += children
    return found


def alive(pids: set[int]) -> set[int]:
    """Return those that still run (an unreaped one doesn't)."""
    left = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            left.add(pid)
    return left


def native_lines(rollouts: int, case: str = "case") -> str:
    """Return a native trace file with so many small rollouts."""
    lines: list[dict[str, object]] = []
    for number in range(rollouts):
        lines.append({"rollout": {"schema": "harnesslab.trace/1", "case": f"{case}-{number}", "outcome": "solved"}})
        asked = [{"role": "user", "content": f"question {number} " + "word " * 200}]
        lines.append({"kind": "model_call", "step": 0, "model": "m", "messages": asked})
    return "".join(json.dumps(line) + "\n" for line in lines)
