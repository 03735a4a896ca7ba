"""Streams of a Docker engine: output as it comes, and the frames of a connection that goes both ways."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, cast

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


class Receiving(Protocol):
    """What pieces are read from."""

    def recv(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


class Wire:
    """The connection of a request, beginning with what the HTTP client read beyond the head of its answer.

    The client reads ahead into a buffer and the SDK then reads the socket beneath it, so that what a quick command puts
    out together with the head would be lost.
    """

    def __init__(self, stream: Any) -> None:
        self.socket = raw(stream)
        self._ahead = self._read_ahead(stream)

    def _read_ahead(self, stream: Any) -> bytes:
        buffered = getattr(getattr(getattr(getattr(stream, "_response", None), "raw", None), "_fp", None), "fp", None)
        if buffered is None:
            return b""
        timeout = self.socket.gettimeout()
        self.socket.settimeout(0)  # an empty buffer would wait for the socket
        try:
            return bytes(buffered.peek())
        except ssl.SSLWantReadError:  # nothing came yet; a plain socket says it by giving nothing
            return b""
        finally:
            self.socket.settimeout(timeout)

    def recv(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if not self._ahead:
            return self.socket.recv(size)
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        return piece


def pieces(stream: Any) -> Iterator[bytes]:
    """Yield output and errors as they come, however long they take; raises `ConnectionError` where a piece is cut."""
    wire = Wire(stream)
    wire.socket.settimeout(None)
    try:
        while head := wire.recv(FRAME.size):
            _, size = FRAME.unpack(head + _all(wire, FRAME.size - len(head)))
            yield _all(wire, size)
    finally:
        stream.close()


def _all(connection: Receiving, size: int) -> bytes:
    whole = exactly(connection, size) if size else b""
    if len(whole) < size:
        raise ConnectionError("it ended within a piece of output")
    return whole


def frames(connection: Receiving, output: Callable[[bytes], object], errors: Callable[[bytes], object]) -> None:
    """Hand each piece to its stream until the other side ends."""
    while head := exactly(connection, FRAME.size):
        kind, size = FRAME.unpack(head)
        while size:
            piece = connection.recv(min(size, 65536))
            if not piece:
                return
            size -= len(piece)
            (errors if kind == 2 else output)(piece)


def exactly(connection: Receiving, size: int) -> bytes:
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
    try:
        wire = Wire(stream)
        wire.socket.settimeout(timeout)
        wire.socket.sendall(body)
        with contextlib.suppress(OSError):
            wire.socket.shutdown(socket.SHUT_WR)
        frames(wire, output, errors)
    except OSError as error:
        raise SandboxRefused(f"The Docker engine's connection broke: {error}") from error
    finally:
        stream.close()
