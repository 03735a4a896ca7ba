"""How the outcomes of cases moved between two experiments."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cells
from harnesslab.core.running.rollout import Outcome

ABSENT = "absent"
"""A case or trial that one side doesn't have."""
_ORDER = {outcome.value: place for place, outcome in enumerate(Outcome)} | {ABSENT: len(Outcome)}


@dataclass(frozen=True, slots=True)
class Move:
    """One case at one trial."""

    case: str
    trial: int
    before: int | None
    """Its rollout; None where the side has none."""
    after: int | None


@dataclass(frozen=True, slots=True)
class Transition:
    """All that moved from one outcome to another, or kept it."""

    before: str
    after: str
    moves: tuple[Move, ...]

    @property
    def unmoved(self) -> bool:
        """Whether the outcome is the same on both sides."""
        return self.before == self.after


def transitions(before: Cells, after: Cells) -> list[Transition]:
    """Pair both sides by case and trial; ordered by outcome, solved first."""
    left = {(cell.case, cell.trial): cell for cells in before.values() for cell in cells}
    right = {(cell.case, cell.trial): cell for cells in after.values() for cell in cells}
    found: dict[tuple[str, str], list[Move]] = {}
    for key in dict.fromkeys([*left, *right]):
        a, b = left.get(key), right.get(key)
        ends = (a.outcome.value if a else ABSENT, b.outcome.value if b else ABSENT)
        move = Move(key[0], key[1], a.rollout if a else None, b.rollout if b else None)
        found.setdefault(ends, []).append(move)
    rows = (Transition(a, b, tuple(moves)) for (a, b), moves in found.items())
    return sorted(rows, key=lambda row: (_ORDER[row.before], _ORDER[row.after]))
