"""Experiments as read models: rows of the list, and one with its cases beside those of its baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.cells import Cell, by_case, solved_cases
from harnesslab.core.measuring.experiments import Verdict
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.certificates import documents_by_case
from harnesslab.queries.experiments.filters import UNDECIDED, ExperimentFilter, cursor, newest_first
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment
from harnesslab.store.models.experiments import ExperimentQuerySet
from harnesslab.store.text import as_object, thawed

PAGE = 50
Cases = Mapping[str, list[Cell]]


class ExperimentRow(ReadModel):
    """One experiment as lists show it; what its source doesn't say is None."""

    id: int
    project: str
    external_id: str
    kind: str | None
    state: str
    decision: str | None
    reason: str | None
    mechanism: str
    """The change in one line."""
    solved: int | None
    """Cases solved at every trial, of `total`, which counts those that were never run."""
    total: int | None
    commit: str | None
    parent_commit: str | None
    baseline: str | None
    """External id of its baseline, which may not be here."""
    baseline_id: int | None
    delta: int | None
    """Cases solved more than by its baseline, on those that both have."""
    gained: int | None
    lost: int | None
    common: int | None
    """How many cases both have; None where one of them has no rollouts, and `delta` is of the stated numbers."""
    certification: dict[str, str]
    """By case: deterministic, forked or no_chain."""
    identity: str | None
    """Digest of its measurement identity, where its source states one."""
    indexed: bool | None
    """Whether its tree's index lists it; None where there is no index."""
    left_out: str
    """Why it is in no index: it was superseded, or it never ended, as one that was killed; else empty."""
    trials: int
    started_at: datetime | None
    ended_at: datetime | None


class ExperimentPage(ReadModel):
    """A page of the list."""

    rows: list[ExperimentRow]
    count: int
    next: str
    """Cursor of the next page; empty at the end."""


class ExperimentCounts(ReadModel):
    """How many experiments there are: under the filters by decision, and by each filter's values under the others."""

    all: int
    promoted: int
    rejected: int
    invalid: int
    projects: int
    by: dict[str, dict[str, int]]


class CellRow(ReadModel):
    """What one trial of a case came to; trials count from 0."""

    trial: int
    outcome: str
    rollout: int
    superseded: list[int]


class CaseRow(ReadModel):
    """One case of an experiment, beside its baseline."""

    case: str
    cells: list[CellRow]
    baseline: list[CellRow]
    change: str
    """`gained`, `lost`, `kept` or empty where both failed or one has no such case."""
    certificate: str
    """The verdict of its certification, of this experiment or else of its baseline."""


class ExperimentView(ReadModel):
    """One experiment with its cases and what is stated of it."""

    row: ExperimentRow
    cases: list[CaseRow]
    decision: dict[str, object]
    """Verbatim."""
    certification: dict[str, object]
    facts: dict[str, object]


class _Pair(NamedTuple):
    own: Cases
    baseline: Cases


def get_experiment(experiment_id: int) -> Experiment:
    """Return an experiment's row; raises `NotFound`."""
    found = _listed().filter(pk=experiment_id).first()
    if found is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    return found


def experiment_page(chosen: ExperimentFilter, after: str = "") -> ExperimentPage:
    """Return a page of experiments, newest first; `after` is the previous page's `next`."""
    rows = list(newest_first(chosen.apply(_listed()), after)[: PAGE + 1])
    shown = rows[:PAGE]
    return ExperimentPage(
        rows=experiment_rows(shown),
        count=chosen.apply(Experiment.objects.all()).count(),
        next=cursor(shown[-1]) if len(rows) > PAGE else "",
    )


def experiment_counts(chosen: ExperimentFilter) -> ExperimentCounts:
    """Count experiments for the list's sentence and chips."""
    shown = chosen.apply(Experiment.objects.all())
    verdicts = Counter(dict(shown.order_by().values_list("verdict").annotate(n=Count("pk"))))
    by: dict[str, dict[str, int]] = {}
    for name, column in ExperimentFilter.columns().items():
        others = replace(chosen, **{name: ""}).apply(Experiment.objects.all())
        counted = others.order_by(column).values_list(column).annotate(n=Count("pk"))
        by[name] = {value or UNDECIDED: count for value, count in counted if value or name == "decision"}
    return ExperimentCounts(
        all=verdicts.total(),
        promoted=verdicts[Verdict.PROMOTED],
        rejected=verdicts[Verdict.REJECTED],
        invalid=verdicts[Verdict.INVALID_INFRA],
        projects=shown.order_by().values("project_id").distinct().count(),
        by=by,
    )


def all_experiments(chosen: ExperimentFilter) -> list[ExperimentRow]:
    """Return all experiments that pass, in the order in which they were measured."""
    return experiment_rows(chosen.apply(_listed()).in_order())


def experiment_view(experiment_id: int) -> ExperimentView:
    """Return one experiment with its cases; raises `NotFound`."""
    found = get_experiment(experiment_id)
    pair = _pairs([found])[found.pk]
    row = _row(found, pair)
    inherited = _verdicts(found.baseline.certification) if found.baseline is not None else {}
    certificates = {**inherited, **row.certification}
    return ExperimentView(
        row=row,
        cases=_cases(pair, certificates),
        decision=_shown(found.decision),
        certification=_shown(found.certification),
        facts=_shown(found.facts),
    )


def experiment_rows(rows: Iterable[Experiment]) -> list[ExperimentRow]:
    """Make read models, in the same queries however many there are."""
    found = list(rows)
    pairs = _pairs(found)
    return [_row(row, pairs[row.pk]) for row in found]


def _listed() -> ExperimentQuerySet:
    return Experiment.objects.select_related("project", "baseline").defer("plan", "baseline__plan", "baseline__facts")


def _pairs(rows: Sequence[Experiment]) -> dict[int, _Pair]:
    """Return the cells of each experiment and of its baseline, by case."""
    wanted = {row.pk for row in rows} | {row.baseline_id for row in rows if row.baseline_id is not None}
    cases = {pk: by_case(cells) for pk, cells in cells_of(sorted(wanted)).items()}
    return {row.pk: _Pair(cases[row.pk], cases.get(row.baseline_id or 0, {})) for row in rows}


def left_out(row: Experiment, indexed: JSON) -> str:
    """Say why a tree's index doesn't list an experiment; empty where it does, or where there is none."""
    if indexed is not False:
        return ""
    return "superseded attempt" if row.ended_at is not None else "unfinished"


def _row(row: Experiment, pair: _Pair) -> ExperimentRow:
    gained, lost, common = _change(pair)
    delta = gained - lost if gained is not None and lost is not None else None
    baseline = row.baseline
    if delta is None and baseline is not None and row.solved is not None and baseline.solved is not None:
        delta = row.solved - baseline.solved
    indexed = as_object(thawed(row.facts)).get("indexed")
    return ExperimentRow(
        id=row.pk,
        project=row.project.name,
        external_id=row.name,
        kind=row.kind or None,
        state=row.state,
        decision=row.verdict or None,
        reason=row.reason or None,
        mechanism=row.mechanism,
        solved=row.solved,
        total=row.total,
        commit=row.revision or None,
        parent_commit=row.parent_revision or None,
        baseline=row.baseline_name or (baseline.name if baseline is not None else None),
        baseline_id=row.baseline_id,
        delta=delta,
        gained=gained,
        lost=lost,
        common=common,
        certification=_verdicts(row.certification),
        identity=row.identity or None,
        indexed=indexed if isinstance(indexed, bool) else None,
        left_out=left_out(row, indexed),
        trials=row.trials,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _change(pair: _Pair) -> tuple[int | None, int | None, int | None]:
    """Count cases gained, lost and common between an experiment and its baseline."""
    common = pair.own.keys() & pair.baseline.keys()
    if not common:
        return None, None, None
    own, before = solved_cases(pair.own) & common, solved_cases(pair.baseline) & common
    return len(own - before), len(before - own), len(common)


def _cases(pair: _Pair, certificates: Mapping[str, str]) -> list[CaseRow]:
    """Return the cases: those lost first, then gained, then all others in their order."""
    own, before = solved_cases(pair.own), solved_cases(pair.baseline)
    rows = [
        CaseRow(
            case=case,
            cells=_cells(pair.own.get(case, [])),
            baseline=_cells(pair.baseline.get(case, [])),
            change=_word(case in own, case in before) if case in pair.own and case in pair.baseline else "",
            certificate=certificates.get(case, ""),
        )
        for case in dict.fromkeys([*pair.own, *pair.baseline])
    ]
    order = {"lost": 0, "gained": 1}
    return sorted(rows, key=lambda row: order.get(row.change, 2))


def _word(solved: bool, before: bool) -> str:
    return {(True, False): "gained", (False, True): "lost", (True, True): "kept"}.get((solved, before), "")


def _cells(cells: Iterable[Cell]) -> list[CellRow]:
    return [
        CellRow(trial=cell.trial, outcome=cell.outcome.value, rollout=cell.rollout, superseded=list(cell.superseded))
        for cell in sorted(cells, key=lambda cell: cell.trial)
    ]


def _verdicts(certification: bytes | memoryview) -> dict[str, str]:
    """Return the verdict of each case, whatever else its certificate says."""
    found = {case: said.get("verdict") for case, said in documents_by_case(certification).items()}
    return {case: verdict for case, verdict in found.items() if isinstance(verdict, str)}


def _shown(stored: bytes | memoryview) -> dict[str, object]:
    """Return a document as JSON that every client reads: numbers that are none are tagged, as in exports."""
    document: dict[str, object] = json.loads(canonical_bytes(as_object(thawed(stored))))
    return document
