"""The lease of a running job, kept alive by a thread while the work goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from django.db import DatabaseError, connection

from harnesslab.actions.jobs import lifecycle as jobs

# two beats may be lost before the lease runs out
BEAT_S = jobs.LEASE.total_seconds() / 3
PROGRESS_S = 0.5
"""Progress is written at most this often."""
log = logging.getLogger(__name__)


class HeldLease:
    """Beats until it is left.

    `refused` once the row says that the job is no longer ours or was cancelled, or once no beat got through for a whole
    lease, after which another worker may have it.
    """

    def __init__(self, job_id: int, token: str, shutting_down: Callable[[], bool]) -> None:
        self.job_id = job_id
        self.token = token
        self.message = ""
        self._shutting_down = shutting_down
        self._refused = threading.Event()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease of job {job_id}", daemon=True)
        self._written = 0.0
        self._beaten = time.monotonic()

    @property
    def refused(self) -> bool:
        """Whether the work must stop: the row said so, or could not be asked for as long as a lease lasts."""
        return self._refused.is_set()

    def progress(self, done: int, message: str) -> bool:
        """Note progress; False tells the work to stop."""
        self.message = message
        now = time.monotonic()
        if now - self._written >= PROGRESS_S:
            self._written = now
            self._beat_once(done=done, message=message)
        return not self.stopped()

    def stopped(self) -> bool:
        """Say whether the work must stop; asks the row at most twice a second."""
        now = time.monotonic()
        if now - self._written >= PROGRESS_S:
            self._written = now
            self._beat_once()
        return self.refused or self._shutting_down()

    def __enter__(self) -> HeldLease:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            while not self._left.wait(BEAT_S) and not self.refused:
                self._beat_once()
        finally:
            connection.close()

    def _beat_once(self, **facts: Any) -> None:
        """Beat; a database that is away for longer than the lease means that the job may be another's by now."""
        try:
            if not jobs.heartbeat(self.job_id, self.token, **facts):
                self._refused.set()
            self._beaten = time.monotonic()
        except DatabaseError as error:  # the next beat comes before the lease ends
            log.warning("no heartbeat for job %s: %s", self.job_id, error)
            # `progress` and `stopped` beat on the work's own connection, which must not be closed inside a transaction
            # of it; outside one, a broken connection is closed, so that the next beat opens another.
            if not connection.in_atomic_block:
                connection.close()
            # the sweeper may have given the job on by now, though no row could say so here
            if time.monotonic() - self._beaten > jobs.LEASE.total_seconds():
                self._refused.set()
