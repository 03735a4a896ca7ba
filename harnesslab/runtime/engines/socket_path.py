"""Where an engine host listens, also in a folder whose path is longer than a socket's may be."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harnesslab.core.errors import InvalidValue

SOCKET = "engines.sock"
LOCK = "engines.lock"
LONGEST = 100
"""Bytes of path that every system takes for a unix socket."""


@contextlib.contextmanager
def reachable(home: Path) -> Iterator[str]:
    """Give a path of the socket that is short enough for as long as the block runs; raises `InvalidValue`."""
    path = str(home / SOCKET)
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    if not Path("/proc/self/fd").is_dir():
        raise InvalidValue("the path is too long for a socket", where=path, hint="choose a home with a shorter path")
    # by the open folder's number, which the kernel follows however long the folder's own path is
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)
