"""Locks by name across processes: one holder at a time, and a killed one lets go."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from harnesslab.core.canonical import sha256

_FILES = 64
"""Lock files on SQLite; two names that share one wait for each other needlessly, and no file has to be removed."""


@contextmanager
def held(name: str) -> Iterator[None]:
    """Hold a lock until the block ends, waiting for it first.

    Hold one at a time: on SQLite two names may share a file, and a second `flock` of it would block its own process for
    ever. Take it outside a transaction: released inside one, it would be free before what was written can be seen.
    """
    number = int.from_bytes(sha256(name.encode("utf-8", "surrogateescape"))[:8], signed=True)
    with _advisory(number) if connection.vendor == "postgresql" else _file(number % _FILES):
        yield


@contextmanager
def _advisory(number: int) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [number])
    try:
        yield
    finally:
        # inside a transaction that failed, PostgreSQL would refuse this, and the session would keep the lock
        with suppress(DatabaseError), connection.cursor() as cursor:  # a broken connection has let go already
            cursor.execute("SELECT pg_advisory_unlock(%s)", [number])


@contextmanager
def _file(number: int) -> Iterator[None]:
    folder = Path(settings.CONFIG.home) / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{number:02d}").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
