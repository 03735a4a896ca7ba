"""How long rollouts lasted, and when solves came: counts by step, with those that a cap cut off stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import Outcome

BUCKETS = 12
_NEVER = frozenset({Outcome.NOT_RUN, Outcome.RUNNING})
_CUT = frozenset({Outcome.STEP_CAP, Outcome.TIMEOUT})
_NICE = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class After:
    """Where the rollouts were after so many steps."""

    steps: int
    running: int
    """Rollouts that made a further step."""
    solved: int
    """Rollouts that had ended solved."""
    cut: int
    """Rollouts that a cap of steps or time had cut off: they might have gone on."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Solves by the number of steps they took."""

    first: int
    last: int
    solved: int
    ended: int
    """Rollouts that ended in these steps, solved or not."""


@dataclass(frozen=True, slots=True)
class Survival:
    """How long the rollouts of an experiment lasted."""

    rollouts: int
    cut: int
    after: tuple[After, ...]


def survival(cells: Iterable[Cell]) -> Survival:
    """Count the rollouts still running after each number of steps at which one ended."""
    ran = [cell for cell in cells if cell.outcome not in _NEVER]
    ends = Counter(cell.steps for cell in ran)
    solved = Counter(cell.steps for cell in ran if cell.outcome is Outcome.SOLVED)
    cut = Counter(cell.steps for cell in ran if cell.outcome in _CUT)
    left, won, lost = len(ran), 0, 0
    points = [After(0, left, 0, 0)] if ran and 0 not in ends else []
    for steps in sorted(ends):
        left, won, lost = left - ends[steps], won + solved[steps], lost + cut[steps]
        points.append(After(steps, left, won, lost))
    return Survival(len(ran), lost, tuple(points))


def width(longest: int) -> int:
    """Return a bucket width of 1, 2 or 5 times a power of ten that makes at most 12 buckets."""
    scale = 1
    while True:
        for nice in _NICE:
            if -(-max(longest, 1) // (nice * scale)) <= BUCKETS:
                return nice * scale
        scale *= 10


def buckets(cells: Iterable[Cell], size: int) -> tuple[Bucket, ...]:
    """Count solves by step, in buckets of a size; a rollout without a step is in the first."""
    ran = [cell for cell in cells if cell.outcome not in _NEVER]
    if not ran:
        return ()
    places = [(max(cell.steps, 1) - 1) // size for cell in ran]
    ended = Counter(places)
    solved = Counter(place for place, cell in zip(places, ran, strict=True) if cell.outcome is Outcome.SOLVED)
    return tuple(
        Bucket(place * size + 1, (place + 1) * size, solved[place], ended[place]) for place in range(max(places) + 1)
    )
