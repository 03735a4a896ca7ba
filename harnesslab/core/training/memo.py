"""The learning memo: notes that a proposer keeps, and below them what became of every candidate, written anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TITLE = "# Learning memo"
FACTS = "## What became of the candidates"
NEWEST = "Newest experiment: "
_FACTS = re.compile(rf"^{re.escape(FACTS)}\s*$(?:.*?^{NEWEST}[^\n]*$|.*)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Concluded:
    """One iteration, as the memo tells it."""

    number: int
    """Zero-based."""
    commit: str
    mechanism: str
    state: str
    reason: str
    solved: int | None = None
    total: int | None = None
    before: int | None = None
    """Cases of the same panel that the baseline solved."""
    new: Sequence[str] = ()
    lost: Sequence[str] = ()


def notes_of(memo: str) -> str:
    """Return the part of a memo that its proposer keeps: all but the facts, also what it put below them."""
    parts = (part.strip() for part in _FACTS.split(memo, maxsplit=1))
    return "\n\n".join(part for part in parts if part)


def written(notes: str, iterations: Iterable[Concluded], newest: str) -> str:
    """Return the memo: notes as they were left, then the facts, one line a candidate in the order of iterations."""
    lines = [notes.strip() or TITLE, "", FACTS, ""]
    for iteration in iterations:
        lines += _lines(iteration)
    return "\n".join([*lines, "", f"{NEWEST}{_plain(newest) or 'none'}.", ""])


def _lines(iteration: Concluded) -> list[str]:
    name = f"`{iteration.commit[:12]}` " if iteration.commit else ""
    first = f"- {name}iteration {iteration.number + 1}: {_plain(iteration.mechanism) or 'no change'}"
    if iteration.solved is None:
        return [first, f"  - {iteration.state} ({_plain(iteration.reason)})"]
    new, lost = (", ".join(map(_plain, cases)) or "none" for cases in (iteration.new, iteration.lost))
    score = f"solved {iteration.solved}/{iteration.total}, baseline {iteration.before}"
    return [first, f"  - {iteration.state} ({_plain(iteration.reason)}); {score}; new: {new}; lost: {lost}"]


def _plain(text: str) -> str:
    """Return text in one line, so that a description makes no line of the memo's own."""
    return " ".join(text.split())
