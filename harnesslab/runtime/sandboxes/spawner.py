"""The one thread that starts processes which must die with this process.

The kernel ends such a process when the *thread* that started it ends, and threads of a worker come and go.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

ARGUMENTS = 200
"""Number of the open file that bubblewrap reads its arguments from: commands see it, so it is always the same."""

_lock = threading.Lock()
_jobs: SimpleQueue[_Job] | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    bubblewrap: str
    arguments: Sequence[str]
    command: Sequence[str]
    inherited: Sequence[int]
    complaints: int
    started: Future[subprocess.Popen[bytes]] = field(default_factory=Future)


def start(
    bubblewrap: str, arguments: Sequence[str], command: Sequence[str], inherited: Sequence[int], complaints: int
) -> subprocess.Popen[bytes]:
    """Start bubblewrap with an empty environment, given open files and standard error; raises `OSError`."""
    job = _Job(bubblewrap, arguments, command, inherited, complaints)
    _queue().put(job)
    return job.started.result()


def _queue() -> SimpleQueue[_Job]:
    global _jobs
    with _lock:
        if _jobs is None:
            _jobs = SimpleQueue()
            threading.Thread(target=_work, args=(_jobs,), name="sandboxes", daemon=True).start()
        return _jobs


def _work(jobs: SimpleQueue[_Job]) -> None:
    with Path(os.devnull).open("rb") as nothing:
        reserved = fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, ARGUMENTS)
    while True:
        job = jobs.get()
        try:
            job.started.set_result(_start(job, reserved))
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            job.started.set_exception(error)


def _start(job: _Job, reserved: int) -> subprocess.Popen[bytes]:
    source = os.memfd_create("arguments")
    try:
        with open(source, "wb", closefd=False) as target:
            target.write(b"".join(os.fsencode(argument) + b"\0" for argument in job.arguments))
        os.lseek(source, 0, os.SEEK_SET)
        os.dup2(source, reserved, inheritable=False)
    finally:
        os.close(source)
    return subprocess.Popen(  # noqa: S603  # bubblewrap with arguments made here
        ["bwrap", "--args", str(reserved), "--", *job.command],  # noqa: S607  # the name that commands see
        executable=job.bubblewrap,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=job.complaints,
        env={},
        pass_fds=(reserved, *job.inherited),
        cwd="/",
        start_new_session=True,
    )


def _forget() -> None:
    """A forked process has the queue but not the thread."""
    global _jobs, _lock
    _jobs, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
