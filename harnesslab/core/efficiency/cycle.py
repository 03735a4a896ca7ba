"""Where the time of an experiment's rollouts went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cell


@dataclass(frozen=True, slots=True)
class Cycle:
    """Seconds, summed over rollouts, which may have run side by side."""

    queue: float
    """Requests waiting for their turn at the engine."""
    model: float
    tools: float
    verify: float
    counted: int
    """Rollouts that are summed."""
    rollouts: int
    """All of them."""
    wall: float | None
    """From the first to the last, by the clock."""

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """Each part with its name, in the order in which a request meets them."""
        return ("queue", self.queue), ("model", self.model), ("tools", self.tools), ("verify", self.verify)

    @property
    def total(self) -> float:
        """All parts together."""
        return sum(seconds for _, seconds in self.parts)


def cycle(cells: Iterable[Cell], wall: float | None) -> Cycle:
    """Sum up; a rollout whose trace is not counted yet is left out and shows in the counts."""
    found = list(cells)
    counted = [cell.anatomy for cell in found if cell.anatomy is not None]
    return Cycle(
        queue=sum(each.waited for each in counted),
        model=sum(each.model for each in counted),
        tools=sum(each.tool for each in counted),
        verify=sum(each.verify for each in counted),
        counted=len(counted),
        rollouts=len(found),
        wall=wall,
    )
