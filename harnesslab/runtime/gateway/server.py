"""The HTTP side: one unguessable path, bounded bodies, and nothing that a hostile agent could hold up but itself."""

from __future__ import annotations

import contextlib
import secrets
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harnesslab.runtime.gateway.exchange import Handler
from harnesslab.runtime.gateway.requests import ModelBoundary

CONNECTIONS = 64
"""At once; more are closed as they come."""
IN_FLIGHT = 128 * 1024 * 1024
"""Bytes of all bodies that are held at once."""


class Bytes:
    """A budget of bytes that connections share."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        """Reserve a number of bytes; False where there are not so many left."""
        with self._lock:
            if count > self._left:
                return False
            self._left -= count
            return True

    def give_back(self, count: int) -> None:
        """Release reserved bytes."""
        with self._lock:
            self._left += count


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves each connection in a thread, up to a number of them."""

    daemon_threads = True
    block_on_close = False  # an agent may hold a connection for as long as it likes
    request_queue_size = CONNECTIONS
    allow_reuse_address = True

    def __init__(self, address: Any, boundary: ModelBoundary, secret: str) -> None:
        self.boundary, self.secret = boundary, secret
        self.bytes = Bytes(IN_FLIGHT)
        self._turns = threading.Semaphore(CONNECTIONS)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a connection where there is a place for it."""
        if not self._turns.acquire(blocking=False):
            self.shutdown_request(request)
            return
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.discard(request)
            self._turns.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: an agent that breaks off is no news."""

    def end_connections(self) -> None:
        """End the connections that are open."""
        with self._lock:
            left = list(self._open)
        for request in left:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; a unix socket's peer has no address."""
        request, _ = super().get_request()
        return request, ("agent", 0)


class Gateway:
    """Serves one rollout's boundary at an address of its own until it is closed."""

    def __init__(self, boundary: ModelBoundary, *, socket_path: Path | None = None) -> None:
        self.path = f"/r/{secrets.token_urlsafe(32)}"
        secret = self.path.rpartition("/")[2]
        self._server: _Server
        if socket_path is None:
            self._server = _Server(("127.0.0.1", 0), boundary, secret)
        else:
            self._server = _UnixServer(str(socket_path), boundary, secret)
            socket_path.chmod(0o600)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="gateway", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The loopback port it listens on, where it has no socket path."""
        return int(self._server.server_address[1])

    def address(self, port: int) -> str:
        """Return the address before `/v1`, as it is reached at a loopback port."""
        return f"http://127.0.0.1:{port}{self.path}"

    def close(self) -> None:
        """Stop listening and end every connection; may be called twice."""
        # new ones first: one that began after the last look would never be ended
        self._server.shutdown()
        self._server.server_close()
        self._server.end_connections()


@contextlib.contextmanager
def served(boundary: ModelBoundary, *, socket_path: Path | None = None) -> Iterator[Gateway]:
    """Serve a boundary for the length of the block."""
    gateway = Gateway(boundary, socket_path=socket_path)
    try:
        yield gateway
    finally:
        gateway.close()
