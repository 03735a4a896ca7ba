"""What a rollout changed in its work folder, as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

LONGEST = 200_000
"""Characters of a diff that are kept."""
LARGEST_FILE = 500_000
"""Bytes of a file that is compared line by line."""


def workspace_diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """Return the change between two folders, files in order of their names, cut with a marker."""
    pieces: list[str] = []
    size = 0
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        piece = _file_diff(name, old, new)
        size += len(piece)
        if size > LONGEST:
            pieces.append(f"[… the diff goes on with {name}; it is cut here]\n")
            break
        pieces.append(piece)
    return "".join(pieces)


def _file_diff(name: str, old: bytes | None, new: bytes | None) -> str:
    if any(_opaque(content) for content in (old, new)):
        return f"binary or large file {name}: {_size(old)} → {_size(new)}\n"
    lines_old = [] if old is None else old.decode().splitlines(keepends=True)
    lines_new = [] if new is None else new.decode().splitlines(keepends=True)
    from_name, to_name = ("/dev/null" if old is None else f"a/{name}"), ("/dev/null" if new is None else f"b/{name}")
    found = difflib.unified_diff(lines_old, lines_new, from_name, to_name, n=3)
    text = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in found)
    return text or f"empty file {name}: {_size(old)} → {_size(new)}\n"


def _opaque(content: bytes | None) -> bool:
    if content is None:
        return False
    if len(content) > LARGEST_FILE or b"\0" in content:
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return True
    return False


def _size(content: bytes | None) -> str:
    return "absent" if content is None else f"{len(content):,} bytes"
