"""Keeps a few processes running, forwards what they print, and leaves none behind."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
STEADY_S = 30.0
"""A child that lived this long starts again without a growing pause."""
STOP_S = 4.0
"""How long children may take to end before they are killed."""
TICK_S = 0.1
ASK_S = 0.3
"""How often it asks whether all is ready."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, under which name; `sockets` are file descriptors that it inherits."""

    name: str
    command: Sequence[str]
    sockets: tuple[int, ...] = ()


@dataclass(slots=True)
class SupervisedProcess:
    """A program and its process, restarted with a growing pause."""

    program: Program
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    pause: float = FIRST_PAUSE_S
    due_at: float = 0.0
    forwarder: threading.Thread | None = field(default=None)


class Guard:
    """A process that ends the children when this one is gone without a word; see `guard`."""

    def __init__(self) -> None:
        script = str(Path(__file__).with_name("guard.py"))
        # A session of its own, so that what ends the supervisor's terminal doesn't end the guard with it. The programs
        # don't inherit the pipe (`close_fds`): one that held it open would keep the guard waiting for ever.
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-S", "-E", script], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def began(self, group: int) -> None:
        """Watch a process group."""
        self._tell(f"+{group}\n")

    def ended(self, group: int) -> None:
        """Forget a process group."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the guard end whatever is left, and itself."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(line)
            self._process.stdin.flush()


class Supervisor:
    """Runs programs until it is stopped."""

    def __init__(
        self, programs: Sequence[Program], environ: Mapping[str, str], say: Callable[[str, str], None]
    ) -> None:
        self._children = [SupervisedProcess(program) for program in programs]
        self._environ = dict(environ)
        self._say = say
        self._stopping = threading.Event()
        self._guard = Guard()

    def stop(self, number: int = 0, _frame: object = None) -> None:
        """Make `run` end; also usable as a signal handler."""
        self._stopping.set()

    def run(self, ready: Callable[[], bool], when_ready: Callable[[], None]) -> None:
        """Start all, call `when_ready` once `ready` says so, restart what dies, and end all of it when stopped."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.stop)
        ask_at = 0.0
        try:
            while not self._stopping.wait(TICK_S):
                self._tick()
                if time.monotonic() >= ask_at:
                    ask_at = time.monotonic() + ASK_S
                    if ready():
                        when_ready()
                        ask_at = math.inf
        finally:
            self._end_all()

    def _tick(self) -> None:
        for child in self._children:
            if child.process is None:
                if time.monotonic() >= child.due_at:
                    self._start(child)
            elif child.process.poll() is not None:
                self._note_death(child, child.process)

    def _start(self, child: SupervisedProcess) -> None:
        process = subprocess.Popen(  # noqa: S603 - the programs are named by `serve`, not by a user
            child.program.command,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the supervisor alone, and a group can be ended whole
            pass_fds=child.program.sockets,
        )
        self._guard.began(process.pid)  # before anything else can fail: until then nobody would end it
        child.process, child.started_at = process, time.monotonic()
        assert process.stdout is not None  # noqa: S101 - it was asked for above
        child.forwarder = threading.Thread(target=self._forward, args=(child.program.name, process.stdout), daemon=True)
        child.forwarder.start()

    def _forward(self, name: str, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                self._say(name, line.rstrip("\n"))

    def _note_death(self, child: SupervisedProcess, process: subprocess.Popen[str]) -> None:
        self._kill_group(process.pid)  # what it may have left behind
        self._guard.ended(process.pid)
        now = time.monotonic()
        if now - child.started_at >= STEADY_S:
            child.pause = FIRST_PAUSE_S
        name = child.program.name
        self._say("supervisor", f"{name} ended with {_ending(process.returncode)}; again in {child.pause:g} s")
        child.process, child.due_at = None, now + child.pause
        child.pause = min(child.pause * 2, LONGEST_PAUSE_S)

    def _end_all(self) -> None:
        processes = [child.process for child in self._children if child.process is not None]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_S
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            # not before it was waited for: workers give their jobs back when they are asked to end
            self._kill_group(process.pid)
            process.wait()
            self._guard.ended(process.pid)
        for child in self._children:
            if child.forwarder is not None:
                child.forwarder.join(1)
        self._guard.close()

    @staticmethod
    def _kill_group(group: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
