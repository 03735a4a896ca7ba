"""Two texts line by line, and the lines of a unified difference, each with what it is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """One line: `added`, `removed`, `same` or `place`, which says where in a file one is."""

    kind: str
    text: str


_KINDS = {"+": "added", "-": "removed", "@": "place"}
_HEADS = (
    "diff ",
    "index ",
    "--- ",
    "+++ ",
    "new file",
    "deleted file",
    "old mode",
    "new mode",
    "similarity ",
    "rename ",
)


def changed_lines(before: str, after: str, *, around: int = 2) -> list[ChangedLine]:
    """Return what changed between two texts, with a few lines around it; empty where nothing did."""
    made = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=around)
    return _read(list(made)[2:])


def diff_lines(diff: str) -> list[ChangedLine]:
    """Return the lines of what git writes; the name of each file is a place, the rest of its head is left out."""
    found: list[ChangedLine] = []
    head = False
    for line in diff.splitlines():
        if line.startswith("diff --git "):
            head = True
            found.append(ChangedLine("place", line.rpartition(" b/")[2]))
        elif line.startswith("@@"):
            head = False
            found += _read([line])
        elif not (head and line.startswith(_HEADS)):
            found += _read([line])
    return found


def _read(lines: Iterable[str]) -> list[ChangedLine]:
    return [ChangedLine(_KINDS.get(line[:1], "same"), line if line[:1] == "@" else line[1:]) for line in lines]
