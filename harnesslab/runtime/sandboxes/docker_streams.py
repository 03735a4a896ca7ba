"""Streams of a Docker engine: output as it comes, and the frames of a connection that goes both ways."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any, cast

from harnesslab.core.running.ports import SandboxRefused

FRAME = struct.Struct(">BxxxI")
"""Which stream (1 output, 2 errors) and how many bytes follow."""


class Reading:
    """Reads output in a thread, so that whoever waits for it can look at a clock."""

    def __init__(self, chunks: Iterable[bytes], feed: Callable[[bytes], None]) -> None:
        self.ended = threading.Event()
        self.broken = ""
        """Why the output stopped before its end; empty where it did not."""
        self._chunks = chunks
        self._feed = feed
        threading.Thread(target=self._read, name="container output", daemon=True).start()

    def _read(self) -> None:
        try:
            for chunk in self._chunks:
                self._feed(chunk)
        except Exception as error:  # noqa: BLE001 - kept for whoever waits: what came is not all there was
            self.broken = str(error) or type(error).__name__
        finally:
            self.ended.set()


def raw(stream: Any) -> socket.socket:
    """Return the socket under what the SDK hands out."""
    return cast(socket.socket, getattr(stream, "_sock", stream))


def frames(connection: socket.socket, output: Callable[[bytes], object], errors: Callable[[bytes], object]) -> None:
    """Hand each piece to its stream until the other side ends."""
    while head := exactly(connection, FRAME.size):
        kind, size = FRAME.unpack(head)
        while size:
            piece = connection.recv(min(size, 65536))
            if not piece:
                return
            size -= len(piece)
            (errors if kind == 2 else output)(piece)


def exactly(connection: socket.socket, size: int) -> bytes:
    """Return exactly `size` bytes, or none where the stream ends before."""
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            return b""
        found += more
    return found


def exchange(
    stream: Any,
    body: bytes,
    output: Callable[[bytes], object],
    errors: Callable[[bytes], object],
    timeout: float,
) -> None:
    """Send all of `body`, then read to the end; raises `SandboxRefused` where nothing moves for `timeout` seconds."""
    connection = raw(stream)
    connection.settimeout(timeout)
    try:
        connection.sendall(body)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        frames(connection, output, errors)
    except OSError as error:
        raise SandboxRefused(f"The Docker engine's connection broke: {error}") from error
    finally:
        stream.close()
