"""The evaluation grid of a project: models down, harness revisions across, solved of attempted in each cell."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.cells import Cell, by_case
from harnesslab.core.measuring.experiments import ExperimentKind, State, Verdict
from harnesslab.core.measuring.solve_rates import SolveRate, solve_rate
from harnesslab.core.training.story import CANDIDATES, Mark, mark_of
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.projects.bindings import get_project
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment, Rollout

MOST = 8
"""Revisions across."""


class GridRevision(ReadModel):
    """A harness revision that was measured."""

    revision: str
    role: str
    """`baseline`, `trained` or empty."""
    mechanism: str
    chosen: bool


class GridCell(ReadModel):
    """A model at a revision: of several experiments the one with most cases, and of those the newest."""

    experiment: int
    name: str
    rate: SolveRate
    training_cases: int
    """Of its cases, how many candidates were judged on; left out where they are subtracted."""
    others: int
    """Further experiments of the same model and revision."""


class GridRow(ReadModel):
    """A model."""

    model: str
    """Empty where no rollout states one."""
    cells: list[GridCell | None]
    """By chosen revision."""


class Grid(ReadModel):
    """Models × revisions."""

    project_id: int
    project: str
    revisions: list[GridRevision]
    """All that have rollouts, oldest first."""
    rows: list[GridRow]
    training: list[str]
    """Cases that candidates of the project were judged on."""
    subtracted: bool
    candidates: int

    @property
    def chosen(self) -> list[GridRevision]:
        """The columns."""
        return [each for each in self.revisions if each.chosen]


def grid(project_id: int, revisions: Sequence[str] = (), *, subtract: bool = False) -> Grid:
    """Return the grid; by default of the first baseline and the last promoted revision. Raises `NotFound`."""
    if len(revisions) > MOST:
        raise InvalidValue(f"{len(revisions)} revisions", where="r", hint=f"at most {MOST}")
    project = get_project(project_id)
    rows = list(Experiment.objects.light().filter(project=project).select_related("baseline").in_order())
    measured = set(Rollout.objects.filter(project=project, mode="").values_list("experiment_id", flat=True).distinct())
    there = [row for row in rows if row.pk in measured]
    marks = {row.pk: _mark(row) for row in rows}
    roles = _roles(there, marks)
    named: dict[str, Experiment] = {}
    for row in there:
        named.setdefault(row.revision, row)
    chosen = [each for each in named if each in revisions] or list(roles) or list(named)[-MOST:]
    judged = [row.pk for row in there if marks[row.pk] in CANDIDATES and row.kind != ExperimentKind.EVAL]
    training = set(
        Rollout.objects.filter(experiment__in=judged, mode="").values_list("case__name", flat=True).distinct()
    )
    return Grid(
        project_id=project.pk,
        project=project.name,
        revisions=[
            GridRevision(revision=each, role=roles.get(each, ""), mechanism=row.mechanism, chosen=each in chosen)
            for each, row in named.items()
        ],
        rows=_rows([row for row in there if row.revision in chosen], chosen, training, subtract=subtract),
        training=sorted(training),
        subtracted=subtract,
        candidates=sum(bool(row.verdict) and row.pk in judged for row in there),
    )


def _mark(row: Experiment) -> Mark:
    against = row.baseline.revision if row.baseline is not None else ("" if row.baseline_name else None)
    running = row.state == State.RUNNING
    return mark_of(row.kind, row.verdict, against=against, revision=row.revision, running=running)


def _roles(there: Sequence[Experiment], marks: dict[int, Mark]) -> dict[str, str]:
    """Name the first baseline's revision and the last promoted one's."""
    found: dict[str, str] = {}
    first = next((row for row in there if marks[row.pk] is Mark.BASELINE and row.kind), None)
    last = next((row for row in reversed(there) if row.verdict == Verdict.PROMOTED), None)
    if first is not None:
        found[first.revision] = "baseline"
    if last is not None:
        found.setdefault(last.revision, "trained")
    return found


def _rows(rows: Sequence[Experiment], chosen: Sequence[str], training: set[str], *, subtract: bool) -> list[GridRow]:
    found: dict[tuple[str, str], list[tuple[Experiment, list[Cell]]]] = {}
    cells = cells_of([row.pk for row in rows])
    for row in rows:
        by_model: dict[str, list[Cell]] = {}
        for cell in cells[row.pk]:
            by_model.setdefault(cell.model, []).append(cell)
        for model, part in by_model.items():
            found.setdefault((model, row.revision), []).append((row, part))
    models = sorted({model for model, _ in found if model}) + ([""] if any(not model for model, _ in found) else [])
    return [
        GridRow(model=model, cells=[_cell(found.get((model, each)), training, subtract=subtract) for each in chosen])
        for model in models
    ]


def _counted(cells: Sequence[Cell]) -> bool:
    return any(cell.is_sample for cell in cells)


def _cell(
    experiments: Sequence[tuple[Experiment, list[Cell]]] | None, training: set[str], *, subtract: bool
) -> GridCell | None:
    if not experiments:
        return None
    grouped = [(row, by_case(part)) for row, part in experiments]
    place = max(range(len(grouped)), key=lambda at: (len(grouped[at][1]), at))
    row, cases = grouped[place]
    return GridCell(
        experiment=row.pk,
        name=row.name,
        rate=solve_rate(cases, training if subtract else ()),
        training_cases=sum(case in training and _counted(cells) for case, cells in cases.items()),
        others=len(experiments) - 1,
    )
