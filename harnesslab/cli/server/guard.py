"""Ends the process groups of a supervisor that is gone, even by `kill -9`: run as a script by the supervisor.

It reads one line for each group from a pipe whose other end only the supervisor holds: `+N` began, `-N` ended.
The end of the pipe is the end of the supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_S = 2.0


def main() -> None:
    """Watch the pipe on standard input, then end what is left."""
    # what is sent to all of the server must not end the one process that ends what is left of it
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        if line.startswith("+"):
            groups.add(int(line[1:]))
        else:
            groups.discard(int(line[1:]))
    end_groups(groups)


def end_groups(groups: Iterable[int]) -> None:
    """Ask the groups to end, and kill what hasn't within two seconds."""
    left = {group for group in groups if _send(group, signal.SIGTERM)}
    deadline = time.monotonic() + GRACE_S
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = {group for group in left if _send(group, 0)}
    for group in left:
        _send(group, signal.SIGKILL)


def _send(group: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


if __name__ == "__main__":
    main()
