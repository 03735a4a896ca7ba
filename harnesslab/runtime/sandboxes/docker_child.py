"""A program in a container of its own, with its standard streams in the worker's hands."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import Any, BinaryIO

from harnesslab.runtime.sandboxes.docker_streams import frames, raw

COMPLAINT_BYTES = 8192


class DockerChild:
    """A program that runs until it ends or is killed."""

    def __init__(self, api: Any, container: str) -> None:
        self._api = api
        self._container = container
        self._complaints = b""
        self._code: int | None = None
        self._removed = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._stream = api.attach_socket(container, params=wanted)
        self._connection = raw(self._stream)
        self._connection.settimeout(None)
        theirs, mine = os.pipe()
        out, self._out = os.pipe()
        self.stdin: BinaryIO = os.fdopen(mine, "wb", buffering=0)
        self.stdout: BinaryIO = os.fdopen(out, "rb")
        api.start(container)
        threading.Thread(target=self._send, args=(theirs,), name="container input", daemon=True).start()
        threading.Thread(target=self._attend, name="container output", daemon=True).start()

    def kill(self) -> None:
        """End it and all it started; may be called twice."""
        self._remove()
        self._ended.wait(10)
        for stream in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                stream.close()

    def wait(self, timeout: float) -> int | None:
        """Return its exit code, or None where it still runs after `timeout` seconds."""
        return self._code if self._ended.wait(timeout) else None

    def complaints(self) -> str:
        """Return the last 8 KiB of its standard error."""
        return self._complaints.decode(errors="replace")

    def _send(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as source, contextlib.suppress(OSError):
            while data := source.read(65536):
                self._connection.sendall(data)
            self._connection.shutdown(socket.SHUT_WR)

    def _attend(self) -> None:
        try:
            with contextlib.suppress(OSError):
                frames(self._connection, self._give, self._hear)
            os.close(self._out)
            self._code = int(self._api.wait(self._container)["StatusCode"])
        except Exception:  # noqa: BLE001  # removed meanwhile, or the engine is gone
            self._code = -9
        finally:
            self._remove()
            self._ended.set()

    def _give(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out, view) :]

    def _hear(self, data: bytes) -> None:
        self._complaints = (self._complaints + data)[-COMPLAINT_BYTES:]

    def _remove(self) -> None:
        with self._lock:
            if self._removed:
                return
            self._removed = True
        with contextlib.suppress(Exception):  # it is gone, or the engine is
            self._api.remove_container(self._container, force=True, v=True)
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._stream.close()
