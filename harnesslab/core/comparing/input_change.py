"""What the harness did to an agent's messages between two model calls: kept, added, dropped, clipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.messages import MessageView, view


@dataclass(frozen=True, slots=True)
class InputChange:
    """Payload positions by what became of them; `clipped` pairs (before, after)."""

    unchanged: int
    added: tuple[int, ...]
    dropped: tuple[int, ...]
    clipped: tuple[tuple[int, int], ...]


def input_change(before: Sequence[int], after: Sequence[int], payloads: dict[int, JSON]) -> InputChange:
    """Compare two message lists by payload position; `payloads` holds what is dropped and added."""
    stayed = set(before) & set(after)
    dropped = [position for position in before if position not in stayed]
    added = [position for position in after if position not in stayed]
    clipped = []
    for old in list(dropped):
        match = next((new for new in added if _clips(view(payloads[old]), view(payloads[new]))), None)
        if match is not None:
            clipped.append((old, match))
            dropped.remove(old)
            added.remove(match)
    return InputChange(len(stayed), tuple(added), tuple(dropped), tuple(clipped))


def _clips(old: MessageView, new: MessageView) -> bool:
    """Say whether a message is a shortened form of another: same role and answered call, and it begins alike."""
    if old.role != new.role or old.answers != new.answers or len(new.text) >= len(old.text):
        return False
    return bool(old.answers) or (bool(new.text) and old.text[:40] == new.text[:40])
