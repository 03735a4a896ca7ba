"""Token efficiency and failure anatomy of experiments as read models, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.efficiency.factors import Answers, Cases, Levers, TokenKind, chosen, levers
from harnesslab.core.efficiency.survival import width
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.figures.sheets import Sheet
from harnesslab.queries.efficiency.sheets import sheets
from harnesslab.queries.efficiency.words import caveat, formula, headline, served
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.sums import LETTERS, EfficiencyQuery, ExperimentSums, side_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment, Rollout


class Efficiency(ReadModel):
    """One to eight experiments; the first is what the others are compared with."""

    sentence: str
    formula: str
    caveat: str
    served: str
    """A warning where answers were served from a cache and are not counted; else empty."""
    kind: TokenKind
    answers: Answers
    which: Cases
    sides: list[ExperimentSums]
    levers: list[Levers]
    """Of each experiment after the first against it."""
    sheets: list[Sheet]
    waiting: int
    """Rollouts that are not counted yet."""
    older: int
    """Rollouts that an older version of the counter counted; they are in the numbers."""
    counter: int
    """The current version of the counter."""


def uncounted(query: EfficiencyQuery) -> list[int]:
    """Return the ended rollouts that were not counted yet, or by an older version of the counter."""
    rows = Rollout.objects.behind().filter(experiment_id__in=query.experiments, mode="")
    return list(rows.order_by("pk").values_list("pk", flat=True))


def efficiency(query: EfficiencyQuery, left: Sequence[int] = ()) -> Efficiency:
    """Return the numbers; `left` are the rollouts that are not by the current counter.

    Raises `NotFound` for an experiment that is not there.
    """
    rows = {
        row.pk: row for row in Experiment.objects.light().select_related("project").filter(pk__in=query.experiments)
    }
    missing = next((number for number in query.experiments if number not in rows), None)
    if missing is not None:
        raise NotFound(f"there is no experiment {missing}")
    cells = cells_of(query.experiments, anatomies=True)
    older = {cell.rollout for number in query.experiments for cell in cells[number] if cell.anatomy is not None}
    older &= set(left)
    walls = _walls(query)
    groups = chosen([cells[number] for number in query.experiments], query.cases)
    size = width(max((cell.steps for group in groups for cell in group), default=1))
    sides = [
        side_of(letter, rows[number], group, query.view, walls, size)
        for letter, number, group in zip(LETTERS, query.experiments, groups, strict=False)
    ]
    moved = [levers(sides[0].identity, side.identity) for side in sides[1:]]
    return Efficiency(
        sentence=headline(sides, moved, query.view),
        formula=formula(query.view),
        caveat=caveat(sides, query.cases),
        served=served(sides, query.view),
        kind=query.view.kind,
        answers=query.view.answers,
        which=query.cases,
        sides=sides,
        levers=moved,
        sheets=sheets(sides, moved, query.view),
        waiting=len(set(left) - older),
        older=len(older),
        counter=VERSION,
    )


def _walls(asked: EfficiencyQuery) -> dict[int, float]:
    rows = Rollout.objects.filter(experiment_id__in=asked.experiments, mode="").exclude(budgets={})
    found = ((pk, budgets.get("wall")) for pk, budgets in rows.values_list("pk", "budgets"))
    return {pk: float(wall) for pk, wall in found if isinstance(wall, int | float) and wall > 0}
