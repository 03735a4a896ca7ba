"""What may be printed: text of files and traces could otherwise move the cursor, or hide what stands before it."""

from __future__ import annotations


def printable(line: str) -> str:
    """Return a line with control characters, lone surrogates and direction marks shown as escapes."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
