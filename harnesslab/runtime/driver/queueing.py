"""The time in which a rollout could do nothing but wait for its turn at an engine: the lab's doing, not the agent's."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


class QueueTime:
    """Adds up the seconds in which a rollout's requests wait for the lab's own ceiling and none of them is answered.

    A rollout's time budget stands still for as long. An agent that has several requests under way still works while one
    of them is answered, so that only the time in which all of them wait is taken off.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._waiting = 0
        self._answered = 0
        self._seconds = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds so far, those of a wait that goes on included."""
        with self._lock:
            return self._seconds + (0.0 if self._since is None else self._now() - self._since)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Say that a request waits for its turn, for the length of the block."""
        with self._counted(1, 0):
            yield

    @contextlib.contextmanager
    def answered(self) -> Iterator[None]:
        """Say that an engine answers a request, for the length of the block."""
        with self._counted(0, 1):
            yield

    @contextlib.contextmanager
    def _counted(self, waiting: int, answered: int) -> Iterator[None]:
        self._change(waiting, answered)
        try:
            yield
        finally:
            self._change(-waiting, -answered)

    def _change(self, waiting: int, answered: int) -> None:
        with self._lock:
            self._waiting += waiting
            self._answered += answered
            stands = self._waiting > 0 and self._answered == 0
            if stands and self._since is None:
                self._since = self._now()
            elif not stands and self._since is not None:
                self._seconds += self._now() - self._since
                self._since = None
