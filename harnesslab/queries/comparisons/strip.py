"""A comparison step by step, for its strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core.comparing.alignment import Relation, Row
from harnesslab.queries.comparisons.comparison import Aligned


@dataclass(frozen=True, slots=True)
class StripCell:
    """One cell of the strip: an aligned step with the worst relation in it, and its first such row."""

    relation: str
    step_a: int | None
    step_b: int | None
    row: int
    start: int
    """Its first row of any relation."""


_WORST = (Relation.CHANGED, Relation.ONLY_A, Relation.ONLY_B, Relation.MOVED, Relation.SCRUBBED, Relation.EQUAL)


def strip(compared: Aligned) -> list[StripCell]:
    """Return the comparison step by step, for the strip."""
    cells: list[StripCell] = []
    steps_a, steps_b = compared.a.steps, compared.b.steps
    current: tuple[int | None, int | None] | None = None
    group: list[int] = []
    rows = compared.rows
    for number, row in enumerate(rows):
        place = (steps_a[row.a] if row.a is not None else None, steps_b[row.b] if row.b is not None else None)
        if current is None or not _same_cell(current, place):
            if group:
                cells.append(_cell(rows, group, current or (None, None)))
            current, group = place, []
        current = (
            current[0] if current[0] is not None else place[0],
            current[1] if current[1] is not None else place[1],
        )
        group.append(number)
    if group:
        cells.append(_cell(rows, group, current or (None, None)))
    return cells


def _same_cell(current: tuple[int | None, int | None], place: tuple[int | None, int | None]) -> bool:
    """Rows share a cell when no side moves to another step, and sides that are missing stay missing."""
    return current == place


def _cell(rows: Sequence[Row], group: Sequence[int], steps: tuple[int | None, int | None]) -> StripCell:
    relation = min((rows[number].relation for number in group), key=_WORST.index)
    first = next(number for number in group if rows[number].relation is relation)
    return StripCell(relation.value, steps[0], steps[1], first, group[0])
