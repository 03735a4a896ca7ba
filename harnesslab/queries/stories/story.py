"""The story of a project as read models: experiments in order, the baseline's steps, and what cases came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from harnesslab.core.canonical import JSON
from harnesslab.core.deciding.decision_reasons import Reasons, brief, reasons_of
from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.cells import Cell, by_case, solved_cases
from harnesslab.core.measuring.experiments import ExperimentKind, State
from harnesslab.core.measuring.recurrence import Recurrence, recurrence
from harnesslab.core.training.story import CANDIDATES, Mark, Point, Step, common_panel, leading, mark_of, numbers, steps
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.certificates import documents_by_case
from harnesslab.queries.experiments.listing import left_out
from harnesslab.queries.projects.bindings import get_project
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment, Iteration, Project
from harnesslab.store.models.experiments import ExperimentQuerySet
from harnesslab.store.text import as_object, storable, thawed

_JUDGED = frozenset(Mark) - {Mark.RUNNING, Mark.UNDECIDED}
CRASH = "crash"
"""A ledger's reason: what such a row states as its metrics is no measurement."""
SOLVED, COMMON, METRIC = "solved", "common", "metric:"


class StoryRow(ReadModel):
    """One experiment of the story."""

    id: int
    name: str
    mark: Mark
    epoch: int | None
    """Zero-based iteration of its training; of an imported candidate its place among the candidates."""
    training: int | None
    commit: str
    parent: str
    baseline: int | None
    mechanism: str
    solved: int | None
    total: int | None
    common: int | None
    """Solved of the cases that every decided experiment measured."""
    gained: list[str]
    lost: list[str]
    delta: int | None
    """Cases gained less those lost, on what both have."""
    shared: int | None
    """How many cases both have."""
    reason: str
    why: str
    """The reason in a few words."""
    explained: int | None
    """Flips that the change explains, of `flips`; None where nothing was attributed."""
    flips: int | None
    metrics: dict[str, float]
    value: float | None
    """The number that the figure draws for it."""
    started_at: datetime | None


class EvalRow(ReadModel):
    """One evaluation, which decides nothing."""

    id: int
    name: str
    mechanism: str
    commit: str
    solved: int | None
    total: int | None
    trials: int


class Story(ReadModel):
    """A project told by its experiments."""

    id: int
    project: str
    by: str
    """What is told: `solved`, `common`, or `metric:NAME`."""
    choices: list[str]
    rows: list[StoryRow]
    steps: list[Step]
    common: list[str]
    """Cases that every decided experiment measured."""
    epochs: int | None
    """Iterations of trainings here; None where all is imported."""
    skipped: int
    """Iterations without a measured candidate."""
    excluded: dict[str, str]
    """Cases that certification keeps out, with the verdict of the newest audit that looked at each."""
    trials: list[int]
    gate: bool | None
    left_out: dict[str, int]
    """Experiments that are not told, by why: attempts that another took the place of, and runs that never ended."""
    evals: list[EvalRow]
    recurrence: Recurrence

    @property
    def candidates(self) -> list[StoryRow]:
        """The rows that were measured to be judged."""
        return [row for row in self.rows if row.mark in CANDIDATES]

    @property
    def counts(self) -> Counter[Mark]:
        """Rows by mark."""
        return Counter(row.mark for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Told:
    """An experiment with what was read of it."""

    row: Experiment
    mark: Mark
    cases: Mapping[str, list[Cell]]
    reasons: Reasons
    metrics: Mapping[str, float]
    crash: str
    """Why the whole of it crashed, in one line."""


def story(project_id: int, by: str = "") -> Story:
    """Return a project's story in a fixed number of queries; raises `NotFound` and `InvalidValue`."""
    project = get_project(project_id)
    rows = list(_rows(project))
    cells = {pk: by_case(found) for pk, found in cells_of([row.pk for row in rows]).items()}
    facts = {row.pk: as_object(thawed(row.facts)) for row in rows}
    kept = [row for row in rows if row.kind != ExperimentKind.EVAL and facts[row.pk].get("indexed") is not False]
    told = [_told(row, cells[row.pk], facts[row.pk]) for row in kept if row.state != State.CANCELLED]
    decided = [each for each in told if each.mark in _JUDGED and each.cases]
    common = common_panel(each.cases for each in decided)
    series = _series(told)
    choices = [*_choices(told, common), *(f"{METRIC}{name}" for name in sorted(series))]
    if by and by not in (SOLVED, *choices):
        raise InvalidValue(f"{by[:60]!r} is nothing to tell", where="by", hint=f"one of {', '.join(choices) or SOLVED}")
    chosen = by or _default(told, choices, series)
    iterations = list(Iteration.objects.filter(training__project=project).order_by("training_id", "number"))
    places = _numbers(told, {each.candidate_id: each for each in iterations})
    shown = [
        _story_row(each, number, cells.get(each.row.baseline_id or 0, {}), common, chosen)
        for each, number in zip(told, places, strict=True)
    ]
    points = [Point(row.mark, row.commit, row.parent, row.value, _of(chosen, row, common)) for row in shown]
    return Story(
        id=project.pk,
        project=project.name,
        by=chosen,
        choices=choices,
        rows=shown,
        steps=steps(points, falls=not chosen.startswith(METRIC)),
        common=sorted(common),
        epochs=len(iterations) or None,
        skipped=sum(each.state == "skipped" for each in iterations),
        excluded=_excluded(told),
        trials=sorted({each.row.trials for each in told}),
        gate=next((each.reasons.gate for each in reversed(told) if each.reasons.gate is not None), None),
        left_out=Counter(why for row in rows if (why := left_out(row, facts[row.pk].get("indexed")))),
        evals=[_eval(row) for row in rows if row.kind == ExperimentKind.EVAL],
        recurrence=recurrence(each.cases for each in told),
    )


def _rows(project: Project) -> ExperimentQuerySet:
    found = Experiment.objects.filter(project=project).select_related("baseline").in_order()
    return found.defer("plan", *(f"baseline__{name}" for name in ("plan", "facts", "decision", "certification")))


def _told(row: Experiment, cases: Mapping[str, list[Cell]], facts: Mapping[str, JSON]) -> _Told:
    against = row.baseline.revision if row.baseline is not None else ("" if row.baseline_name else None)
    running = row.state == State.RUNNING
    mark = mark_of(row.kind, row.verdict, against=against, revision=row.revision, running=running)
    crash = facts.get("crash_reason")
    line = crash.partition("\n")[0].rstrip(":") if isinstance(crash, str) else ""
    reasons = reasons_of(as_object(thawed(row.decision)))
    return _Told(
        row,
        mark,
        cases,
        reasons,
        {storable(name): value for name, value in numbers(as_object(facts.get("metrics"))).items()},
        line,
    )


def _series(told: Sequence[_Told]) -> dict[str, list[float | None]]:
    names = {name for each in told for name in each.metrics}
    return {name: [None if each.row.reason == CRASH else each.metrics.get(name) for each in told] for name in names}


def _choices(told: Sequence[_Told], common: frozenset[str]) -> list[str]:
    solved = [SOLVED] if any(each.row.solved is not None for each in told) else []
    return [*solved, *([COMMON] if common else [])]


def _default(told: Sequence[_Told], choices: Sequence[str], series: Mapping[str, list[float | None]]) -> str:
    if not choices or choices[0] == SOLVED:
        return SOLVED
    return METRIC + leading(series, [each.mark for each in told])


def _numbers(told: Sequence[_Told], iterations: Mapping[int | None, Iteration]) -> list[int | None]:
    """Number candidates by their iterations, or else in their order."""
    found: list[int | None] = []
    candidates = 0
    for each in told:
        iteration = iterations.get(each.row.pk)
        candidate = each.mark in CANDIDATES
        found.append(iteration.number if iteration is not None else candidates if candidate else None)
        candidates += candidate
    return found


def _story_row(
    each: _Told, number: int | None, before: Mapping[str, list[Cell]], common: frozenset[str], by: str
) -> StoryRow:
    row, count = each.row, each.reasons.attributable
    shared = each.cases.keys() & before.keys()
    solved = solved_cases(each.cases)
    own, theirs = solved & shared, solved_cases(before) & shared
    of_common = len(solved & common) if common and common <= each.cases.keys() else None
    return StoryRow(
        id=row.pk,
        name=row.name,
        mark=each.mark,
        epoch=number,
        training=row.training_id,
        commit=row.revision,
        parent=row.parent_revision,
        baseline=row.baseline_id,
        mechanism=row.mechanism,
        solved=row.solved,
        total=row.total,
        common=of_common,
        gained=sorted(own - theirs),
        lost=sorted(theirs - own),
        delta=len(own) - len(theirs) if shared and each.mark in _JUDGED else None,
        shared=len(shared) or None,
        reason=row.reason,
        why=brief(row.reason, each.reasons) or each.crash,
        explained=count[0] if count else None,
        flips=count[1] if count else None,
        metrics=dict(each.metrics),
        value=_value(by, row.solved, of_common, {} if row.reason == CRASH else each.metrics),
        started_at=row.started_at,
    )


def _of(by: str, row: StoryRow, common: frozenset[str]) -> int | None:
    """Return how many cases a value is of; a metric is of none."""
    return {SOLVED: row.total, COMMON: len(common)}.get(by)


def _value(by: str, solved: int | None, common: int | None, metrics: Mapping[str, float]) -> float | None:
    if by.startswith(METRIC):
        return metrics.get(by.removeprefix(METRIC))
    return common if by == COMMON else solved


def _excluded(told: Sequence[_Told]) -> dict[str, str]:
    """Return what certification keeps out: each case by the newest audit that looked at it."""
    found: dict[str, str] = {}
    for each in told:
        for case, said in documents_by_case(each.row.certification).items():
            verdict = said.get("verdict")
            found[case] = verdict if isinstance(verdict, str) else ""
    return {case: verdict for case, verdict in found.items() if verdict not in ("", "deterministic")}


def _eval(row: Experiment) -> EvalRow:
    return EvalRow(
        id=row.pk,
        name=row.name,
        mechanism=row.mechanism,
        commit=row.revision,
        solved=row.solved,
        total=row.total,
        trials=row.trials,
    )
