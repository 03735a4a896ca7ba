"""A folder as a stream and back: kinds, modes, names and contents in an order of their own, never times or inodes.

It runs as the commands' user, while none of them runs. Only one folder is open at a time and names are never joined,
so that neither depth nor long names matter; no symbolic link is followed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterator
from typing import BinaryIO

HEADER = struct.Struct(">cHHQ")
"""Kind, mode, bytes of the name, bytes of the content; name and content follow."""
FOLDER, UP, FILE, LINK, PIPE, SOCKET, DEVICE, END = b"d", b"u", b"f", b"l", b"p", b"s", b"v", b"e"

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OPENED = 0o700
"""Bits that let the owner read a folder or file; missing ones are lent while it is read."""
_CHUNK = 1 << 20


class TreeRefused(Exception):
    """The folder holds what can't be read or written; one sentence."""


def read(root: str, out: BinaryIO) -> None:
    """Write the folder as a stream."""
    at = os.open(root, _FLAGS | os.O_DIRECTORY)
    waiting = [_names(at)]
    modes: list[tuple[bytes, int]] = []
    while waiting:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
            if modes:
                at = _leave(at, *modes.pop())
                out.write(HEADER.pack(UP, 0, 0, 0))
            continue
        found = os.lstat(name, dir_fd=at)
        if stat.S_ISDIR(found.st_mode):
            out.write(_head(FOLDER, found.st_mode, name, 0))
            at = _enter(at, name, found.st_mode)
            waiting.append(_names(at))
            modes.append((name, found.st_mode))
        else:
            _read_leaf(at, name, found, out)
    os.close(at)
    out.write(HEADER.pack(END, 0, 0, 0))


def fix_times(root: str, moment: int) -> None:
    """Give everything in the folder, and itself, the same times, in nanoseconds."""
    at = os.open(root, _FLAGS | os.O_DIRECTORY)
    waiting = [_folders(at, moment)]
    modes: list[tuple[bytes, int]] = []
    while waiting:
        inner = next(waiting[-1], None)
        if inner is not None:
            at = _enter(at, *inner)
            modes.append(inner)
            waiting.append(_folders(at, moment))
            continue
        waiting.pop()
        with contextlib.suppress(PermissionError):  # a root such as /tmp, which is its owner's to stamp
            os.utime(at, ns=(moment, moment))
        if modes:
            at = _leave(at, *modes.pop())
    os.close(at)


def write(root: str, source: BinaryIO, moment: int | None) -> None:
    """Put files into the folder from a stream of `FILE` entries whose names are relative paths."""
    while True:
        kind, mode, length, size = HEADER.unpack(source.read(HEADER.size))
        if kind == END:
            return
        _write_file(root, source.read(length), mode, source.read(size), moment)


def _names(at: int) -> Iterator[bytes]:
    return iter(sorted(os.fsencode(name) for name in os.listdir(at)))


def _folders(at: int, moment: int) -> Iterator[tuple[bytes, int]]:
    """Stamp what is in a folder and return its folders, which are stamped after what is in them."""
    folders = []
    with os.scandir(at) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                folders.append((os.fsencode(entry.name), found.st_mode))
            elif found.st_mtime_ns != moment or found.st_atime_ns != moment:
                os.utime(entry.name, ns=(moment, moment), dir_fd=at, follow_symlinks=False)
    return iter(folders)


def _head(kind: bytes, mode: int, name: bytes, size: int) -> bytes:
    return HEADER.pack(kind, stat.S_IMODE(mode), len(name), size) + name


def _enter(at: int, name: bytes, mode: int) -> int:
    if mode & _OPENED != _OPENED:
        os.chmod(name, stat.S_IMODE(mode) | _OPENED, dir_fd=at)
    inner = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=at)
    os.close(at)
    return inner


def _leave(at: int, name: bytes, mode: int) -> int:
    # by `..`, not by a path: no command runs that could move the folder, and no depth makes the name too long
    outer = os.open("..", _FLAGS | os.O_DIRECTORY, dir_fd=at)
    os.close(at)
    if mode & _OPENED != _OPENED:
        os.chmod(name, stat.S_IMODE(mode), dir_fd=outer)
    return outer


def _read_leaf(at: int, name: bytes, found: os.stat_result, out: BinaryIO) -> None:
    mode = found.st_mode
    if stat.S_ISREG(mode):
        out.write(_head(FILE, mode, name, found.st_size))
        _read_file(at, name, found, out)
    elif stat.S_ISLNK(mode):
        target = os.readlink(name, dir_fd=at)
        out.write(_head(LINK, 0, name, len(target)) + target)
    else:
        kind = PIPE if stat.S_ISFIFO(mode) else SOCKET if stat.S_ISSOCK(mode) else DEVICE
        out.write(_head(kind, mode, name, 0))


def _read_file(at: int, name: bytes, found: os.stat_result, out: BinaryIO) -> None:
    if not found.st_mode & stat.S_IRUSR:
        os.chmod(name, stat.S_IMODE(found.st_mode) | stat.S_IRUSR, dir_fd=at)
    left = found.st_size
    with open(os.open(name, _FLAGS, dir_fd=at), "rb", buffering=0) as source:
        while left:
            data = source.read(min(left, _CHUNK))
            if not data:
                raise TreeRefused("A file of the work folder became shorter while it was read.")
            out.write(data)
            left -= len(data)
    if not found.st_mode & stat.S_IRUSR:
        os.chmod(name, stat.S_IMODE(found.st_mode), dir_fd=at)


def _write_file(root: str, path: bytes, mode: int, content: bytes, moment: int | None) -> None:
    *folders, name = path.split(b"/")
    at = os.open(root, _FLAGS | os.O_DIRECTORY)
    try:
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=at)
            inner = os.open(folder, _FLAGS | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        with contextlib.suppress(FileNotFoundError):  # never through a link, nor into a hard-linked file
            os.unlink(name, dir_fd=at)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, mode, dir_fd=at), "wb", buffering=0) as target:
            view = memoryview(content)
            while view:
                view = view[target.write(view) :]
        if moment is not None:
            os.utime(name, ns=(moment, moment), dir_fd=at, follow_symlinks=False)
    except OSError as error:
        raise TreeRefused(f"{os.fsdecode(path)!r} can't be written into the work folder: {error.strerror}.") from error
    finally:
        os.close(at)
