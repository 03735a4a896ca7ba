"""A command's output as it comes: its beginning and end are kept, size and digest are of the whole."""

from __future__ import annotations

import hashlib


class BoundedOutput:
    """An output of any length, of which at most about three limits are held."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._sha256 = hashlib.sha256()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the output."""
        self.size += len(data)
        self._sha256.update(data)
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._limit]

    @property
    def digest(self) -> str:
        """SHA-256 of the whole output, hexadecimal."""
        return self._sha256.hexdigest()

    @property
    def excerpt(self) -> bytes:
        """The whole output, or its beginning and end with a marker between that says how much is left out."""
        if self.size <= self._limit:
            return bytes(self._head + self._tail)
        end = self._limit // 2
        start = self._limit - end
        last = (self._head + self._tail)[-end:] if end else b""
        marker = f"\n[... {self.size - start - len(last)} bytes left out ...]\n".encode()
        return bytes(self._head[:start] + marker + last)
