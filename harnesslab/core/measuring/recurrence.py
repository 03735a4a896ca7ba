"""Which cases a project never, always or sometimes solved, over its experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cells
from harnesslab.core.running.rollout import Outcome


@dataclass(frozen=True, slots=True)
class Solved:
    """One case: in how many experiments it was solved at every counted trial, of those that counted it."""

    case: str
    k: int
    n: int


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The cases by how often they were solved; those that no experiment counted are apart."""

    never: tuple[Solved, ...]
    sometimes: tuple[Solved, ...]
    """Rarest first."""
    always: tuple[Solved, ...]
    uncounted: tuple[str, ...]


def recurrence(experiments: Iterable[Cells]) -> Recurrence:
    """Count, by case, the experiments that solved it."""
    counts: dict[str, list[int]] = {}
    for cases in experiments:
        for case, cells in cases.items():
            count = counts.setdefault(case, [0, 0])
            counted = [cell.outcome for cell in cells if cell.is_sample]
            if counted:
                count[0] += all(outcome is Outcome.SOLVED for outcome in counted)
                count[1] += 1
    found = sorted((Solved(case, k, n) for case, (k, n) in counts.items() if n), key=lambda each: each.case)
    part = (each for each in found if 0 < each.k < each.n)
    return Recurrence(
        never=tuple(each for each in found if each.k == 0),
        sometimes=tuple(sorted(part, key=lambda each: each.k / each.n)),
        always=tuple(each for each in found if each.k == each.n),
        uncounted=tuple(sorted(case for case, (_, n) in counts.items() if not n)),
    )
