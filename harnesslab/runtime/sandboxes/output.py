"""A command's output as it comes: its beginning and end are kept, size and digest are of the whole."""

from __future__ import annotations

import hashlib


class BoundedOutput:
    """Bytes that may be far more than are kept."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._sha256 = hashlib.sha256()

    def feed(self, data: bytes) -> None:
        """Take more of it."""
        self.size += len(data)
        self._sha256.update(data)
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._limit]

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return self._sha256.hexdigest()

    @property
    def excerpt(self) -> bytes:
        """All of it, or its beginning and end with a marker between that says how much is left out."""
        if self.size <= self._limit:
            return bytes(self._head + self._tail)
        end = self._limit // 2
        start = self._limit - end
        last = (self._head + self._tail)[-end:] if end else b""
        marker = f"\n[... {self.size - start - len(last)} bytes left out ...]\n".encode()
        return bytes(self._head[:start] + marker + last)
