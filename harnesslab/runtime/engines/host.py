"""The engine host, `python -m harnesslab.runtime.engines.host --home DIR`: owns a home's embedded llama.cpp servers.

It listens on the unix socket `engines.sock` there, a JSON object a line: `ensure`, `restart`, `stop` and `ending` of a
configuration, `status`, and `hold`, which keeps a host alive that was started for as long as someone needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import signal
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.runtime.engines.configuration import Configuration
from harnesslab.runtime.engines.fleet import IDLE_S, Fleet
from harnesslab.runtime.engines.socket_path import LOCK, SOCKET, reachable

TICK_S = 0.25
FIRST_HOLD_S = 10.0
"""A host that nobody came to hold ends after this long."""
UNHELD_S = 0.3
"""A host that nobody holds any more ends after this long."""
LONGEST_LINE = 1 << 20
HELD_ELSEWHERE = 3
"""Exit code of a host that found another one on its folder."""


class _Gone(Exception):
    """The other side of a conversation let go."""


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: str, fleet: Fleet) -> None:
        self.fleet = fleet
        self.ends_at = time.monotonic() + FIRST_HOLD_S
        self.holders = 0
        self.counting = threading.Lock()
        super().__init__(path, _Conversation)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Count a holder."""
        with self.counting:
            self.holders += 1
        try:
            yield
        finally:
            with self.counting:
                self.holders -= 1
                self.ends_at = time.monotonic() + UNHELD_S

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in one line what a client's going away makes of a conversation."""
        say(f"a client went away: {sys.exc_info()[1]}")


class _Conversation(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while line := self.rfile.readline(LONGEST_LINE):
            try:
                answer = {"ok": True, **self._answer(line)}
            except _Gone:
                return
            except (HarnessLabError, OSError) as error:
                sentence = error.sentence if isinstance(error, HarnessLabError) else str(error)
                answer = {"ok": False, "sentence": sentence}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    def _answer(self, line: bytes) -> dict[str, JSON]:
        try:
            asked = parse(line)
        except ValueError:
            asked = None
        match asked:
            case {"do": "ensure", "configuration": configuration}:
                return self.server.fleet.ensure(Configuration.from_json(configuration))
            case {"do": "restart", "configuration": configuration}:
                self.server.fleet.stop(Configuration.from_json(configuration))
                return self.server.fleet.ensure(Configuration.from_json(configuration))
            case {"do": "stop", "configuration": configuration}:
                return {"stopped": self.server.fleet.stop(Configuration.from_json(configuration))}
            case {"do": "ending", "pid": int(pid)}:
                ending = self.server.fleet.ending(pid)
                return {"ending": None if ending is None else ending.to_json()}
            case {"do": "status"}:
                return {"pid": os.getpid(), "holders": self.server.holders, "children": self.server.fleet.status()}
            case {"do": "hold"}:
                with self.server.held():
                    self.wfile.write(b'{"ok": true}\n')
                    self.rfile.read()
                raise _Gone
        raise InvalidValue("not a request that an engine host knows")


def main() -> int:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(
        prog="harnesslab.runtime.engines.host", description="Owns the embedded engine's processes."
    )
    parser.add_argument("--home", type=Path, required=True, help="folder of the socket")
    parser.add_argument("--while-held", action="store_true", help="end when nobody holds it any more")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds after which an unused engine is ended")
    given = parser.parse_args()
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    given.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _lock(given.home, stopping, wait=not given.while_held)
    if lock is None:
        return 0 if stopping.is_set() else HELD_ELSEWHERE
    with lock:
        _serve(given.home, Fleet(say, idle=given.idle), stopping, while_held=given.while_held)
    return 0


def say(line: str) -> None:
    """Print a line; a reader that went away must not stop the engines."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _lock(home: Path, stopping: threading.Event, *, wait: bool) -> IO[str] | None:
    """Hold the folder; a lasting host waits for one that a command started for itself."""
    handle = (home / LOCK).open("w")
    told = False
    while not stopping.is_set():
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if not wait:
                break
            if not told:
                say("another engine host serves this folder; waiting until it ends")
            told = True
            stopping.wait(TICK_S)
        else:
            return handle
    handle.close()
    return None


def _serve(home: Path, fleet: Fleet, stopping: threading.Event, *, while_held: bool) -> None:
    with reachable(home) as path:
        Path(path).unlink(missing_ok=True)  # of a host that was killed; the lock says that none lives
        # the socket gets its mode as it is made: a later chmod would leave it open for a moment
        before = os.umask(0o077)
        server = _Server(path, fleet)
        os.umask(before)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    say(f"engine host ready in {home}")
    try:
        while not stopping.wait(TICK_S):
            fleet.watch()
            if while_held and server.holders == 0 and time.monotonic() > server.ends_at:
                break
    finally:
        (home / SOCKET).unlink(missing_ok=True)
        server.shutdown()
        fleet.close()
        server.server_close()


if __name__ == "__main__":
    sys.exit(main())
