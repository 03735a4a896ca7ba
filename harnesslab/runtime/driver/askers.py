"""Threads that wait for the engine, so that requests an agent makes at once are asked at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

MOST = 16
JOIN_S = 5.0


class Askers:
    """Does jobs in threads, as many as there are jobs at once; each thread calls `leave` before it ends."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._busy = 0

    def give(self, job: Callable[[], None]) -> None:
        """Have a job done by a free thread, or a further one; beyond `MOST` of them it waits."""
        with self._lock:
            self._busy += 1
            if self._busy > len(self._threads) and len(self._threads) < MOST:
                thread = threading.Thread(target=self._work, name="asks the engine", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)

    @property
    def busy(self) -> int:
        """Jobs that are not done."""
        with self._lock:
            return self._busy

    def close(self) -> None:
        """Let the threads end; one that still waits for an engine is left to itself."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(JOIN_S)

    def _work(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                try:
                    job()
                finally:
                    with self._lock:
                        self._busy -= 1
        finally:
            self._leave()  # a ticket in the database opened a connection of this thread, which nobody else can close
