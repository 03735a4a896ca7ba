"""The llama.cpp servers of an engine host: one process a configuration, started on first use, ended when idle."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.errors import HarnessLabError
from harnesslab.runtime.engines.configuration import Configuration
from harnesslab.runtime.engines.transport import Transport

START_S = 120.0
"""A model that takes longer to load counts as one that does not start."""
KEPT_LINES = 40
ANSWER_S = 5.0
_ASSERTION = re.compile(r"GGML_ASSERT|\.(?:c|cc|cpp|h):\d+: ")
_TELLING = re.compile(r"error|fail|abort", re.IGNORECASE)


class ChildFailed(HarnessLabError):
    """A llama.cpp server did not start."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a child ended."""

    pid: int
    code: int
    said: str
    """The line of its output that says most about it."""

    @property
    def sentence(self) -> str:
        """The ending in words."""
        how = f"signal {signal_name(-self.code)}" if self.code < 0 else f"exit code {self.code}"
        return f"llama.cpp (process {self.pid}) ended with {how}{f': {self.said}' if self.said else ''}"

    def to_json(self) -> dict[str, JSON]:
        """Return it for the protocol."""
        signalled = signal_name(-self.code) if self.code < 0 else None
        return {"pid": self.pid, "code": self.code, "signal": signalled, "said": self.said, "sentence": self.sentence}


@dataclass(slots=True)
class LlamaProcess:
    """A running llama.cpp server."""

    configuration: Configuration
    process: subprocess.Popen[bytes]
    key: str
    facts: dict[str, JSON] = field(default_factory=dict)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    used_at: float = field(default_factory=time.monotonic)
    stopping: bool = False
    deaf: int = 0
    """How often in a row it did not answer."""
    listener: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it and wait until it is gone."""
        self.stopping = True
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()  # the server ends with its standard input
        try:
            self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ending(self) -> ProcessExit:
        """Say how it ended, once it has."""
        code = self.process.wait()
        if self.listener is not None:
            self.listener.join(1.0)
        lines = list(self.lines)
        asserted = next((line for line in lines if _ASSERTION.search(line)), "")
        telling = asserted or next((line for line in reversed(lines) if _TELLING.search(line)), "")
        return ProcessExit(self.process.pid, code, telling.rpartition("/")[2][:400] if asserted else telling[:400])

    def healthy(self) -> bool:
        """Ask it whether it is well."""
        reply = self._ask("/health")
        return reply is not None

    def busy(self) -> bool:
        """Say whether it works at a request; one that does not answer counts as busy."""
        slots = self._ask("/slots")
        if not isinstance(slots, list):
            return True
        return any(isinstance(slot, dict) and slot.get("is_processing") for slot in slots)

    def _ask(self, path: str) -> JSON:
        reply = Transport(str(self.facts["address"]), key=self.key).send("GET", path, timeout=ANSWER_S)
        with contextlib.suppress(ValueError):
            return parse(reply.body) if reply.status == 200 and reply.failure is None else None
        return None


def start(configuration: Configuration, spawner: Executor, complain: Callable[[str], None]) -> LlamaProcess:
    """Start a child and wait until it listens; raises `ChildFailed`.

    `spawner` has one long-lived thread: the kernel ends a child with the thread, not the process, that started it.
    """
    key = secrets.token_urlsafe(32)
    command = [sys.executable, "-m", "harnesslab.runtime.engines.llama_server", json.dumps(configuration.to_json())]
    # it stays in the host's process group, so that whoever ends the group ends it too
    process = spawner.submit(
        subprocess.Popen,
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # which would run a debugger
    ).result()
    child = LlamaProcess(configuration, process, key)
    child.listener = threading.Thread(target=_listen, args=(child, complain), daemon=True)
    child.listener.start()
    try:
        facts = parse(_told(child, key))
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        child.stop() if child.running else None
        raise ChildFailed(child.ending().sentence, hint="see the host's output")
    child.facts = facts
    return child


def _told(child: LlamaProcess, key: str) -> bytes:
    """Give the key and read the line that says where it listens; nothing where it ended or took too long."""
    given, told = child.process.stdin, child.process.stdout
    if given is None or told is None:
        return b""
    with contextlib.suppress(OSError), told, selectors.DefaultSelector() as selector:
        given.write(key.encode() + b"\n")  # arguments and environment can be read by other processes
        given.flush()
        selector.register(told, selectors.EVENT_READ)
        if selector.select(START_S):
            return told.readline()
    return b""


def _listen(child: LlamaProcess, complain: Callable[[str], None]) -> None:
    if child.process.stderr is None:
        return
    with child.process.stderr as lines:
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip()
            if line:
                child.lines.append(line)
                complain(f"llama.cpp {child.process.pid}: {line}")


def signal_name(number: int) -> str:
    """Return a signal's name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
