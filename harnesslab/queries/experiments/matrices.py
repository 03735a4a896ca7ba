"""Matrices of agents, scenarios and trials, added up from stored rollouts."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.matrix import MatrixSummary, MatrixTrial, summarise
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Experiment, Rollout
from harnesslab.store.text import as_object, storable, thawed


def matrices(project: str = "") -> dict[str, MatrixSummary]:
    """Return each imported matrix by its run, in the order in which they were started."""
    rows = Rollout.objects.filter(source__format="harness-matrix", mode="").exclude(experiment=None)
    if project:
        rows = rows.filter(project__name=storable(project))
    stated = Experiment.objects.filter(rollouts__in=rows).distinct().values_list("pk", "name", "facts")
    cells = {pk: (name, str(as_object(thawed(facts)).get("cell"))) for pk, name, facts in stated}
    found: dict[str, list[MatrixTrial]] = {}
    columns = ("experiment_id", "case__name", "outcome", "facts")
    for experiment, case, outcome, facts in rows.order_by("experiment__started_at", "pk").values_list(*columns):
        name, cell = cells[experiment or 0]
        trial = _trial(cell, case, outcome, as_object(thawed(facts)))
        found.setdefault(name.removesuffix(cell).strip() or name, []).append(trial)
    return {run: summarise(trials) for run, trials in found.items()}


def _trial(cell: str, case: str, outcome: str, facts: Mapping[str, JSON]) -> MatrixTrial:
    row, skipped = as_object(facts.get("trial")), outcome == Outcome.NOT_RUN
    usage, shape, cost, tokens = as_object(row.get("usage")), row.get("outcome"), 0.0, 0
    if isinstance(given := usage.get("cost"), int | float):
        cost = float(given)
    if isinstance(given := usage.get("total"), int):
        tokens = given
    return MatrixTrial(
        cell=cell,
        scenario=case,
        group=str(facts.get("class") or ""),
        skipped=skipped,
        one_shot=row.get("one_shot") is True,
        eventual=row.get("eventual") is True,
        excused=row.get("blocked_only_by_harness") is True,
        hard_fails=len(_objects(row.get("hard_fails"), "")),
        shape=shape if isinstance(shape, str) else "",
        cost=cost,
        tokens=tokens,
        failures=(
            *_objects(row.get("failures"), "check"),
            *_objects(as_object(row.get("wire")).get("tool_errors"), "code"),
        ),
    )


def _objects(value: JSON, key: str) -> list[str]:
    """Return what each item of a list says under a key, or with no key each item."""
    given = value if isinstance(value, list) else []
    named = [as_object(item).get(key) if key else str(item) for item in given]
    return [name for name in named if isinstance(name, str)]
