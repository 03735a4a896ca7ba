"""Where the time of an experiment's rollouts went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cell


@dataclass(frozen=True, slots=True)
class Cycle:
    """Seconds, summed over rollouts, which may have run side by side; None where no rollout states any."""

    queue: float | None
    """Requests waiting for their turn at the engine."""
    model: float | None
    tools: float | None
    verify: float | None
    counted: int
    """Rollouts that are summed."""
    rollouts: int
    """All of them."""
    wall: float | None
    """From the first to the last, by the clock."""

    @property
    def parts(self) -> tuple[tuple[str, float | None], ...]:
        """Each part with its name, in the order in which a request meets them."""
        return ("queue", self.queue), ("model", self.model), ("tools", self.tools), ("verify", self.verify)

    @property
    def total(self) -> float:
        """All known parts together."""
        return sum(seconds for _, seconds in self.parts if seconds is not None)


def cycle(cells: Iterable[Cell], wall: float | None) -> Cycle:
    """Sum up; a rollout whose trace is not counted yet is left out and shows in the counts."""
    found = list(cells)
    counted = [cell.anatomy for cell in found if cell.anatomy is not None]
    return Cycle(
        queue=_sum(each.waited for each in counted),
        model=_sum(each.model for each in counted),
        tools=_sum(each.tool for each in counted),
        verify=_sum(each.verify for each in counted),
        counted=len(counted),
        rollouts=len(found),
        wall=wall,
    )


def _sum(values: Iterable[float | None]) -> float | None:
    stated = [value for value in values if value is not None]
    return sum(stated) if stated else None
