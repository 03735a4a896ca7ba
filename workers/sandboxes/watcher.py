"""How much memory a process and all its descendants hold, seen from the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(root: int, limit: int) -> int:
    """Return the bytes of private memory that a process tree holds.

    Pages that processes share after a fork are counted once only where the cheap count is above the limit, since
    that takes the kernel a walk over their page tables.
    """
    found = list(_tree(root))
    cheap = sum(_private(pid) for pid in found)
    return cheap if cheap <= limit else sum(_proportional(pid) for pid in found)


def _tree(root: int) -> Iterator[int]:
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                waiting.extend(int(child) for child in (thread / "children").read_bytes().split())
        except OSError:  # it ended meanwhile
            continue


def _private(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE if len(fields) > 2 else 0


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return _private(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss_Anon:")), 0)
