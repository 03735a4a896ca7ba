"""How much memory a process and all its descendants hold, seen from the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_KERNEL_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
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
    if not _KERNEL_LISTS_CHILDREN:
        yield from _tree_by_parents(root)
        return
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                waiting.extend(int(child) for child in (thread / "children").read_bytes().split())
        except OSError:  # it ended meanwhile
            continue


def _tree_by_parents(root: int) -> Iterator[int]:
    """The same from every process's own word, for kernels that list no children."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parent = int((place / "stat").read_bytes().rsplit(b")", 1)[1].split()[1])
            except (OSError, IndexError):  # it ended meanwhile
                continue
            children.setdefault(parent, []).append(int(place.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


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
