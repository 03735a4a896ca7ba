"""Case × experiment: what each case came to in an experiment, its baseline and their neighbours, a window at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harnesslab.core.measuring.cells import Cell, by_case, solved_cases
from harnesslab.core.measuring.experiments import ExperimentKind
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment

NEAR = 4
"""Neighbours on each side."""
WIDEST = 300
"""Most experiments of the whole matrix."""
ROWS = 200
"""Cases in a window."""


class MatrixColumn(ReadModel):
    """One experiment."""

    id: int
    name: str
    commit: str
    role: str
    """`baseline`, `this` or empty."""
    verdict: str


class MatrixCell(ReadModel):
    """A case in an experiment: its outcome, or of several trials the first that was not solved."""

    outcome: str
    rollout: int
    solved: int
    trials: int


class MatrixRow(ReadModel):
    """One case."""

    case: str
    change: str
    """`lost`, `gained`, or empty."""
    cells: list[MatrixCell | None]
    """By column; None where it was not in the panel."""


class OutcomeMatrix(ReadModel):
    """A window of cases over experiments in order; regressions come first."""

    columns: list[MatrixColumn]
    rows: list[MatrixRow]
    cases: int
    """In all windows."""
    start: int
    experiments: int
    """That the project has; more than `columns` where only neighbours are shown."""

    @property
    def widest(self) -> int:
        """How many experiments the whole matrix shows."""
        return min(self.experiments, WIDEST)

    @property
    def end(self) -> int:
        """Where the window ends."""
        return self.start + len(self.rows)


def outcome_matrix(experiment: Experiment, *, whole: bool = False, start: int = 0, most: int = ROWS) -> OutcomeMatrix:
    """Return a window; with `whole` over all experiments of the project instead of the nearest ones."""
    told = Experiment.objects.filter(project=experiment.project_id).exclude(kind=ExperimentKind.EVAL)
    order = list(told.in_order().values_list("pk", flat=True))
    if experiment.pk not in order:  # an evaluation has no neighbours
        order = [experiment.pk]
    chosen = _nearest(order, experiment, WIDEST if whole else 2 * NEAR + 1)
    cells = {pk: by_case(found) for pk, found in cells_of(chosen).items()}
    named = Experiment.objects.light().in_bulk(chosen)
    kept = [pk for pk in chosen if cells[pk] or pk == experiment.pk]
    cases = _ordered(kept, cells, experiment)
    shown = list(cases.items())[start : start + most]
    return OutcomeMatrix(
        columns=[_column(named[pk], experiment) for pk in kept],
        rows=[
            MatrixRow(case=case, change=change, cells=[_cell(cells[pk].get(case)) for pk in kept])
            for case, change in shown
        ],
        cases=len(cases),
        start=start,
        experiments=len(order),
    )


def _nearest(order: Sequence[int], experiment: Experiment, most: int) -> list[int]:
    begin = max(0, min(order.index(experiment.pk) - most // 2, len(order) - most))
    around = set(order[begin : begin + most]) | {experiment.baseline_id}
    return [pk for pk in order if pk in around]


def _ordered(
    kept: Sequence[int], cells: Mapping[int, Mapping[str, list[Cell]]], experiment: Experiment
) -> dict[str, str]:
    """Return every case with its change: lost, gained, then all others by name."""
    own, before = cells[experiment.pk], cells.get(experiment.baseline_id or 0, {})
    solved, was = solved_cases(own), solved_cases(before)
    both = own.keys() & before.keys()
    change = dict.fromkeys(both & was - solved, "lost") | dict.fromkeys(both & solved - was, "gained")
    every = {case for pk in kept for case in cells[pk]}
    rank = {"lost": 0, "gained": 1, "": 2}
    ordered = sorted(every, key=lambda case: (rank[change.get(case, "")], case))
    return {case: change.get(case, "") for case in ordered}


def _column(row: Experiment, experiment: Experiment) -> MatrixColumn:
    role = "this" if row.pk == experiment.pk else "baseline" if row.pk == experiment.baseline_id else ""
    return MatrixColumn(id=row.pk, name=row.name, commit=row.revision, role=role, verdict=row.verdict)


def _cell(cells: Sequence[Cell] | None) -> MatrixCell | None:
    if not cells:
        return None
    shown = next((cell for cell in cells if cell.outcome is not Outcome.SOLVED), cells[0])
    solved = sum(cell.outcome is Outcome.SOLVED for cell in cells)
    return MatrixCell(outcome=shown.outcome.value, rollout=shown.rollout, solved=solved, trials=len(cells))
