"""Pipes whose ends a sandbox's user may open again by name, as `> /dev/stderr` does."""

from __future__ import annotations

import os


def pipe(user: int | None) -> tuple[int, int]:
    """Return the ends of a pipe for reading and writing, owned by the user of commands where it has its own."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    if user is not None:
        os.fchown(writing, user, user)
    return reading, writing
