"""The cells of experiments: one query for all of them, no trace read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from django.db.models import Q

from harnesslab.core.measuring.cells import Cell
from harnesslab.core.measuring.experiments import State
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import CrashOrigin, Outcome
from harnesslab.store.models import Rollout
from harnesslab.store.text import thawed

_PASSED_OVER = frozenset({Outcome.INTERRUPTED, Outcome.RUNNING})
_COLUMNS = (
    "pk",
    "experiment_id",
    "case__name",
    "trial",
    "outcome",
    "crash_origin",
    "steps",
    "seconds",
    "model",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "path",
)


def cells_of(experiments: Sequence[int], *, anatomies: bool = False, case: str = "") -> dict[int, list[Cell]]:
    """Return the counted cells by experiment, of one `case` or all, in the order in which they were first stored.

    The last rollout of a case and trial counts; one that was interrupted or still runs gives way to any that ended.
    What was imported under the name of an experiment that was measured here is no part of it.
    With `anatomies`, what each trace adds up to comes along where it is kept.
    """
    columns = (*_COLUMNS, "anatomy") if anatomies else _COLUMNS
    ours = Q(source=None) | Q(experiment__state=State.IMPORTED)
    rollouts = Rollout.objects.filter(ours, experiment_id__in=experiments, mode="").order_by("pk")
    rows = (rollouts.filter(case__name=case) if case else rollouts).values_list(*columns)
    found: dict[int, dict[tuple[str, int], Cell]] = defaultdict(dict)
    for pk, experiment, name, trial, outcome, crash, steps, seconds, model, used, output, cached, path, *rest in rows:
        cell = Cell(
            case=name,
            trial=trial,
            outcome=Outcome(outcome),
            crash_origin=CrashOrigin(crash) if crash else None,
            rollout=pk,
            steps=steps,
            seconds=seconds,
            model=model,
            input=used,
            output=output,
            cached=cached,
            path=bytes(path or b""),
            anatomy=TraceStatistics.from_json(thawed(rest[0])) if rest and rest[0] else None,
        )
        key = (name, trial)
        found[experiment][key] = _counted(found[experiment].get(key), cell)
    return {experiment: list(found[experiment].values()) for experiment in experiments}


def _counted(before: Cell | None, cell: Cell) -> Cell:
    """Return which of two rollouts of one case and trial counts, with the other noted as superseded."""
    if before is None:
        return cell
    kept, other = (before, cell) if cell.outcome in _PASSED_OVER else (cell, before)
    gone = (*before.superseded, *cell.superseded, other.rollout)
    return replace(kept, superseded=gone)
