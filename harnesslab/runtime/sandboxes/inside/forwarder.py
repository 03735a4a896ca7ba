"""Loopback TCP ports inside a sandbox that lead to unix sockets of the worker; the only way out of it."""

from __future__ import annotations

import contextlib
import socket
import threading

CONNECTIONS = 64
"""At once, all ports together; more wait in the backlog."""


def forward(port: int, path: str, turns: threading.Semaphore) -> None:
    """Listen on a loopback port from now on; each connection becomes one to the unix socket."""
    listener = socket.create_server(("127.0.0.1", port), backlog=CONNECTIONS)
    threading.Thread(target=_accept, args=(listener, path, turns), daemon=True).start()


def _accept(listener: socket.socket, path: str, turns: threading.Semaphore) -> None:
    while True:
        turns.acquire()
        try:
            near, _ = listener.accept()
        except OSError:  # the other side gave up before it was accepted
            turns.release()
            continue
        threading.Thread(target=_connect, args=(near, path, turns), daemon=True).start()


def _connect(near: socket.socket, path: str, turns: threading.Semaphore) -> None:
    with near, socket.socket(socket.AF_UNIX) as far:
        try:
            far.connect(path)
        except OSError:
            pass  # the connection is closed, as if nobody listened
        else:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_copy, args=(far, near), daemon=True)
            back.start()
            _copy(near, far)
            back.join()
    turns.release()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
