"""One user id for each sandbox of the machine, where the worker is root.

The kernel counts processes by user, so two sandboxes with the same one would share their limit and could signal each
other's files' owner. A lock that the kernel lets go of with the process says that an id is taken.
"""

from __future__ import annotations

import socket

from harnesslab.core.running.ports import SandboxRefused

FIRST, LAST = 57_000, 59_999
"""Ids that no distribution gives to people or services."""


class SandboxUser:
    """An id taken from the range until it is given back."""

    def __init__(self) -> None:
        for self.id in range(FIRST, LAST + 1):
            lock = socket.socket(socket.AF_UNIX)
            try:
                lock.bind(f"\0harnesslab-sandbox-user-{self.id}")
            except OSError:
                lock.close()
                continue
            self._lock = lock
            return
        raise SandboxRefused(f"All {LAST - FIRST + 1} user ids for sandboxes are taken.")

    def give_back(self) -> None:
        """Let another sandbox have it; may be called twice."""
        self._lock.close()
