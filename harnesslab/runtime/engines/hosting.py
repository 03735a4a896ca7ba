"""The way to an engine host: asking it, and having one for as long as it is needed."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.running.ports import EngineDown
from harnesslab.runtime.engines.children import START_S
from harnesslab.runtime.engines.configuration import Configuration
from harnesslab.runtime.engines.socket_path import reachable

LOG = "engines.log"
"""Where a host that a command started for itself says what it does."""
CONNECT_S = 5.0
READY_S = 30.0
"""A host that takes longer to listen counts as one that does not start."""
ASK_S = 0.05
LONGEST_ANSWER = 1 << 22


class Host:
    """Asks the engine host of a home folder; every question is a connection of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def ensure(self, configuration: Configuration, timeout: float = START_S) -> Mapping[str, JSON]:
        """Have a server of this configuration: its address, pid, key, facts and digests; raises `EngineDown`."""
        return self._ask({"do": "ensure", "configuration": configuration.to_json()}, timeout)

    def restart(self, configuration: Configuration) -> Mapping[str, JSON]:
        """End its server and start another; raises `EngineDown`."""
        return self._ask({"do": "restart", "configuration": configuration.to_json()}, START_S)

    def stop(self, configuration: Configuration) -> bool:
        """End its server and say whether there was one; raises `EngineDown`."""
        return self._ask({"do": "stop", "configuration": configuration.to_json()}).get("stopped") is True

    def ending(self, pid: int) -> Mapping[str, JSON] | None:
        """Say how a server ended: `code`, `signal`, `said`, `sentence`; None where it did not. Raises `EngineDown`."""
        ending = self._ask({"do": "ending", "pid": pid}).get("ending")
        return ending if isinstance(ending, Mapping) else None

    def status(self) -> Mapping[str, JSON]:
        """Describe the host and its servers; raises `EngineDown`."""
        return self._ask({"do": "status"})

    def hold(self) -> socket.socket:
        """Keep a host that serves only while it is held; close what this returns to let go. Raises `EngineDown`."""
        connection = self._connect(CONNECT_S)
        try:
            connection.sendall(b'{"do": "hold"}\n')
            if not connection.recv(100):
                raise OSError("the host went away")
            connection.settimeout(None)
        except OSError as error:
            connection.close()
            raise self._down(str(error)) from error
        return connection

    def _ask(self, question: Mapping[str, JSON], timeout: float = 10.0) -> Mapping[str, JSON]:
        try:
            with self._connect(timeout) as connection, connection.makefile("rb") as answers:
                connection.sendall(json.dumps(question).encode() + b"\n")
                answer = parse(answers.readline(LONGEST_ANSWER))
        except (OSError, ValueError) as error:
            raise self._down(str(error) or "it went away") from error
        if not isinstance(answer, Mapping) or answer.get("ok") is not True:
            said = answer.get("sentence") if isinstance(answer, Mapping) else "an unreadable answer"
            raise EngineDown(str(said), where="engine host")
        return answer

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            with reachable(self._home) as path:
                connection.connect(path)
        except OSError as error:
            connection.close()
            raise self._down(error.strerror or str(error)) from error
        return connection

    def _down(self, reason: str) -> EngineDown:
        return EngineDown(
            f"no engine host answers: {reason}", where=str(self._home), hint="it runs with `harnesslab serve`"
        )


@contextlib.contextmanager
def hosted(home: Path) -> Iterator[Host]:
    """Have an engine host for the length of the block: the one that runs, or one started for it.

    Of several starters one succeeds and all use its host, which ends when the last of them has let go, also where they
    were killed. Raises `EngineDown` where none comes up.
    """
    host = Host(home)
    deadline = time.monotonic() + READY_S
    started: subprocess.Popen[bytes] | None = None
    while True:
        try:
            holding = host.hold()
            break
        except EngineDown:
            if time.monotonic() > deadline:
                raise
        if started is None or started.poll() is not None:
            started = _start(home)
        time.sleep(ASK_S)
    try:
        yield host
    finally:
        holding.close()
        if started is not None and not _others(host):
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(10)


def _others(host: Host) -> bool:
    with contextlib.suppress(EngineDown):
        holders = host.status().get("holders")
        return isinstance(holders, int) and holders > 0
    return False


def _start(home: Path) -> subprocess.Popen[bytes]:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (home / LOG).open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "harnesslab.runtime.engines.host", "--home", str(home), "--while-held"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C reaches the command, which lets go in its own time
        )
