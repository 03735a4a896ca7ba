"""The work folder as a sandbox streams it, read without believing it: sizes are bounded, names are never opened."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping

from harnesslab.core.running.ports import Limits, SandboxRefused
from harnesslab.runtime.sandboxes.inside.tree import DEVICE, END, FILE, FOLDER, HEADER, LINK, PIPE, SOCKET, UP

PATH_BYTES = 4096
_NAME_BYTES = 255
_KINDS = frozenset({FOLDER, UP, FILE, LINK, PIPE, SOCKET, DEVICE, END})


class TarReader:
    """Takes the stream piece by piece; `leaf` gets each regular file's path and content."""

    def __init__(self, limits: Limits, leaf: Callable[[str, bytes], None] | None = None) -> None:
        self.ended = False
        self._limits = limits
        self._leaf = leaf
        self._buffer = bytearray()
        self._folders: list[bytes] = []
        self._length = 0
        self._entries = self._bytes = 0
        self._sha256 = hashlib.sha256(b"harnesslab.workspace/1\n")

    @property
    def digest(self) -> str:
        """SHA-256 of the stream, which has one form for one folder."""
        return self._sha256.hexdigest()

    def feed(self, data: bytes) -> None:
        """Take more; raises `SandboxRefused` where it is more than limits allow, or no such stream."""
        self._sha256.update(data)
        self._buffer += data
        at = 0
        while (end := self._entry(at)) is not None:
            at = end
        del self._buffer[:at]
        if self.ended and self._buffer:
            raise SandboxRefused("The sandbox sent more than its work folder.")

    def _entry(self, at: int) -> int | None:
        """Take one whole entry and return where the next begins, or None until there is more."""
        if self.ended or len(self._buffer) < at + HEADER.size:
            return None
        kind, _, length, size = HEADER.unpack_from(self._buffer, at)
        self._refuse(kind, length, size)
        start = at + HEADER.size
        end: int = start + length + size
        if len(self._buffer) < end:
            return None
        self._entries += 1
        self._bytes += size
        name = bytes(self._buffer[start : start + length])
        self._take(kind, name, start + length, end)
        return end

    def _refuse(self, kind: bytes, length: int, size: int) -> None:
        if kind not in _KINDS or length > _NAME_BYTES or (size and kind not in (FILE, LINK)):
            raise SandboxRefused("The sandbox sent something that is no work folder.")
        if size > self._limits.file or self._bytes + size > self._limits.disk:
            raise SandboxRefused(f"The work folder's files hold more than {self._limits.disk} bytes.")
        if self._entries > 2 * self._limits.files + 2:
            raise SandboxRefused(f"The work folder has more than {self._limits.files} files.")

    def _take(self, kind: bytes, name: bytes, start: int, end: int) -> None:
        if kind == FOLDER:
            self._folders.append(name)
            self._length += len(name) + 1
        elif kind == UP:
            if not self._folders:
                raise SandboxRefused("The sandbox sent something that is no work folder.")
            self._length -= len(self._folders.pop()) + 1
        elif kind == END:
            self.ended = True
        elif kind == FILE and self._leaf is not None:
            if self._length + len(name) > PATH_BYTES:
                raise SandboxRefused(f"The work folder has a path longer than {PATH_BYTES} bytes.")
            self._leaf(os.fsdecode(b"/".join([*self._folders, name])), bytes(self._buffer[start:end]))


def stream(files: Mapping[str, bytes], limits: Limits) -> bytes:
    """Return files to write as a stream; raises `SandboxRefused` for a path that isn't relative and plain."""
    parts = []
    for path, content in files.items():
        name = check(path, content, limits)
        parts.append(HEADER.pack(FILE, 0o644, len(name), len(content)) + name + content)
    return b"".join([*parts, HEADER.pack(END, 0, 0, 0)])


def check(path: str, content: bytes, limits: Limits) -> bytes:
    """Return a path to write as bytes; raises `SandboxRefused` where it isn't relative and plain, or all too long."""
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        raise SandboxRefused(f"{path[:200]!r} is no path of a file.") from None
    pieces = name.split(b"/")
    if any(piece in (b"", b".", b"..") or b"\0" in piece or len(piece) > _NAME_BYTES for piece in pieces):
        raise SandboxRefused(f"{path[:200]!r} is no relative path of a file.")
    if len(name) > PATH_BYTES or len(content) > limits.file:
        raise SandboxRefused(f"{path[:200]!r} is longer than a sandbox takes.")
    return name
