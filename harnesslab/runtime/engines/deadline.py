"""A network whose every wait ends by one deadline: a server that sends a byte now and then gains no time by it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpcore2 as httpcore

CONNECT_S = 10.0
"""A server that takes longer to accept a connection counts as unreachable."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Set one `seconds` from now."""
        return cls(time.monotonic() + seconds)

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def left(self, at_most: float | None = None) -> float:
        """Return the seconds left, at most `at_most`; raises `ReadTimeout` where none are."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the time is up")
        return left if at_most is None else min(left, at_most)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        wrapped = self._inner.start_tls(ssl_context, server_hostname, self._deadline.left(CONNECT_S))
        return _Stream(wrapped, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """The ordinary network, bounded by a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._inner = httpcore.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        wait = self._deadline.left(CONNECT_S)
        return _Stream(self._inner.connect_tcp(host, port, wait, local_address, socket_options), self._deadline)
