"""The work folder as tar, which containers speak, to and from the stream of `workspace`."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime

from harnesslab.core.running.ports import Place, SandboxRefused
from harnesslab.runtime.sandboxes.inside.tree import DEVICE, END, FILE, FOLDER, HEADER, LINK, PIPE, UP
from harnesslab.runtime.sandboxes.workspace import check


def pack(files: Mapping[str, bytes], place: Place) -> bytes:
    """Return files as tar with fixed times; raises `SandboxRefused` for a path that isn't relative and plain."""
    moment = int(datetime.strptime(place.clock, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            check(path, content, place.limits)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(content), 0o644, moment
            entry.uid = entry.gid = 1000
            tar.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def unpack(data: bytes) -> bytes:
    """Return a container's tar as the stream that a bubblewrap sandbox sends for the same folder."""
    entries: dict[tuple[bytes, ...], tuple[bytes, int, bytes]] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errorlevel=1) as tar:
            for entry in tar:
                path = _parts(entry.name)
                if path:
                    entries[path] = _entry(tar, entry)
    except (tarfile.TarError, ValueError, OSError, KeyError) as error:
        raise SandboxRefused(f"The sandbox sent something that is no work folder: {error}") from error
    return _stream(entries)


def _parts(name: str) -> tuple[bytes, ...]:
    return tuple(part for part in os.fsencode(name).split(b"/") if part not in (b"", b"."))


def _entry(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> tuple[bytes, int, bytes]:
    mode = entry.mode & 0o7777
    if entry.isdir():
        return FOLDER, mode, b""
    if entry.issym():
        return LINK, 0, os.fsencode(entry.linkname)
    if entry.isreg() or entry.islnk():  # a hard link has the content of the name that came first
        source = tar.extractfile(entry)
        return FILE, mode, source.read() if source is not None else b""
    return PIPE if entry.isfifo() else DEVICE, mode, b""


def _stream(entries: Mapping[tuple[bytes, ...], tuple[bytes, int, bytes]]) -> bytes:
    out = bytearray()
    depth = 0
    for path in sorted(entries):
        kind, mode, content = entries[path]
        out += HEADER.pack(UP, 0, 0, 0) * (depth - len(path) + 1)
        depth = len(path) - 1
        out += HEADER.pack(kind, mode, len(path[-1]), len(content)) + path[-1] + content
        if kind == FOLDER:
            depth += 1
    return bytes(out + HEADER.pack(UP, 0, 0, 0) * depth + HEADER.pack(END, 0, 0, 0))
