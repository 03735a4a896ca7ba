"""Writing what sources state of experiments, and counting what their rollouts show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from harnesslab.actions.projects.memos import keep_memo
from harnesslab.actions.projects.mirrors import say_again
from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.cells import by_case, solved_cases
from harnesslab.core.measuring.experiments import ExperimentRecord, State
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.store.models import Experiment, Project
from harnesslab.store.text import as_object, frozen, storable, thawed

NAME = 200
"""Longest name of a project, experiment or revision."""


@transaction.atomic
def store_record(record: ExperimentRecord) -> Experiment:
    """Store what a source states of an experiment; what it leaves open stays as it is, so that nothing is lost.

    An experiment that was measured here is not touched: a source that bears its name is a copy of it.
    """
    project, _ = Project.objects.get_or_create(name=storable(record.project, NAME) or "imported")
    name = storable(record.external_id, NAME)
    row, _ = Experiment.objects.select_for_update().get_or_create(project=project, name=name)
    if row.state != State.IMPORTED:
        return row
    for column, value in _columns(record).items():
        setattr(row, column, value)
    row.decision = _merged(row.decision, record.decision)
    row.certification = _merged(row.certification, record.certification)
    metrics: dict[str, JSON] = {"metrics": dict(record.metrics)} if record.metrics else {}
    row.facts = _merged(row.facts, {**record.facts, **metrics})
    if row.baseline is None and row.baseline_name:
        row.baseline = Experiment.objects.filter(project=project, name=row.baseline_name).exclude(pk=row.pk).first()
    row.save()
    say_again(row.pk)
    waiting = Experiment.objects.filter(project=project, baseline_name=name, baseline=None)
    waiting.exclude(pk=row.pk).update(baseline=row)
    if record.memo:
        _store_memo(record, row)
    return row


def _columns(record: ExperimentRecord) -> dict[str, Any]:
    """Return the columns that a record states."""
    stated = {
        "kind": record.kind,
        "revision": storable(record.revision, NAME),
        "parent_revision": storable(record.parent_revision, NAME),
        "baseline_name": storable(record.baseline, NAME),
        "verdict": record.verdict,
        "reason": storable(record.reason, NAME),
        "mechanism": storable(record.mechanism, 400),
        "identity": storable(record.identity, 64),
        "solved": record.solved,
        "total": record.total,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
    }
    return {name: value for name, value in stated.items() if value is not None and value != ""}


def _merged(stored: bytes | memoryview, stated: Mapping[str, JSON]) -> bytes:
    return frozen({**as_object(thawed(stored)), **stated})


def _store_memo(record: ExperimentRecord, row: Experiment) -> None:
    """Keep a memo once; it follows the newest experiment that it names."""
    memo = keep_memo(row.project, record.memo)
    names = (record.external_id, record.revision[:12])
    if not any(name and name in record.memo for name in names):
        return
    if memo.after is None or _age(memo.after) < _age(row):
        memo.after = row
        memo.save(update_fields=["after"])


def _age(row: Experiment) -> tuple[float, int]:
    return row.started_at.timestamp() if row.started_at else 0.0, row.pk


def refresh(experiments: Iterable[int]) -> None:
    """Count the cases and trials of imported experiments from their rollouts, and those solved at every trial.

    A case that was never run counts. An experiment without rollouts keeps what its source states; one that was
    measured here has counted already.
    """
    imported = Experiment.objects.filter(pk__in=list(experiments), state=State.IMPORTED).values_list("pk", flat=True)
    for pk, cells in cells_of(list(imported)).items():
        if cells:
            cases = by_case(cells)
            Experiment.objects.filter(pk=pk).update(
                solved=len(solved_cases(cases)),
                total=len(cases),
                trials=max(cell.trial for cell in cells) + 1,
            )
