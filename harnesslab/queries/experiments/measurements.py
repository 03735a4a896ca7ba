"""Experiments as they were measured: cells by case, what is missing, and the identity they were measured under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import Digest
from harnesslab.core.conditions.identity import identity_digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.measuring.cells import Cell, by_case, solved_cases
from harnesslab.core.measuring.certification import Certificate, CertificateVerdict
from harnesslab.core.measuring.experiments import MeasuringPlan, State
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.panels import definition_of
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.manifests import manifests_of
from harnesslab.store.models import Experiment, Project, Rollout
from harnesslab.store.text import as_object, storable, thawed

BASELINES = 50
"""Experiments that a form offers as a baseline."""


def get_measured(experiment_id: int) -> Experiment:
    """Return an experiment with what it belongs to; raises `NotFound`."""
    row = (
        Experiment.objects.select_related("project", "panel__panel", "baseline", "training")
        .defer("panel__body", "facts", "baseline__facts", "baseline__decision")
        .filter(pk=experiment_id)
        .first()
    )
    if row is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    return row


def experiment_named(name: str, project: str = "") -> Experiment:
    """Return an experiment by its external id; raises `NotFound`, or `Conflict` where several projects have it."""
    rows = Experiment.objects.filter(name=storable(name)).order_by("pk")
    if project:
        rows = rows.filter(project__name=storable(project))
    found = list(rows.select_related("project")[:2])
    if not found:
        where = f" in project {project!r}" if project else ""
        raise NotFound(f"there is no experiment {name!r}{where}", hint="harnesslab experiments lists them")
    if len(found) > 1:
        named = ", ".join(repr(row.project.name) for row in found)
        raise Conflict(f"several projects have an experiment {name!r}: {named}", hint="name one with --project")
    return get_measured(found[0].pk)


def baselines_of(project: Project) -> list[tuple[str, str, str]]:
    """Return the measured experiments that another can be judged against, newest first: name, score, revision."""
    rows = Experiment.objects.filter(project=project, state=State.DONE).exclude(plan=b"").light().order_by("-pk")
    return [(row.name, f"{row.solved}/{row.total}", row.revision[:8]) for row in rows[:BASELINES]]


def measuring_plan_of(experiment: Experiment) -> MeasuringPlan:
    """Return an experiment's plan; raises `NotFound` where it was imported."""
    if not experiment.plan:
        raise NotFound(f"{experiment.name} was not measured here, so that it has no plan")
    return MeasuringPlan.from_json(thawed(experiment.plan))


@dataclass(frozen=True, slots=True)
class Measured:
    """What an experiment gave."""

    cases: Mapping[str, list[Cell]]
    missing: tuple[tuple[str, int], ...]
    """Cases and trials that were planned and have no ended rollout."""
    identity: Digest
    manifests: Mapping[str, Manifest]
    """By case, of its first trial."""

    @property
    def solved(self) -> set[str]:
        """Cases solved at every planned trial."""
        return solved_cases(self.cases) - {case for case, _ in self.missing}


def measured(experiment_id: int, *, anatomies: bool = False) -> Measured:
    """Return what an experiment gave so far."""
    row = get_measured(experiment_id)
    cells = cells_of([experiment_id], anatomies=anatomies)[experiment_id]
    ended = [cell for cell in cells if cell.outcome != "running"]
    cases = by_case(ended)
    first = {case: found[0].rollout for case, found in cases.items()}
    manifests = manifests_of(first)
    return Measured(cases, _missing(row, ended), identity_digest(manifests), manifests)


def _missing(row: Experiment, cells: list[Cell]) -> tuple[tuple[str, int], ...]:
    if row.panel is None:
        return ()
    there = {(cell.case, cell.trial) for cell in cells}
    plan = measuring_plan_of(row)
    planned = [
        (case.name, trial) for case in definition_of(row.panel).chosen(plan.cases) for trial in range(plan.trials)
    ]
    return tuple(each for each in planned if each not in there)


def certificates_of(experiment: Experiment) -> dict[str, Certificate]:
    """Return the certificates that an experiment's audit gave, by case; an imported one keeps other documents."""
    found = as_object(thawed(experiment.certification))
    return {case: Certificate.from_json(document) for case, document in found.items()} if experiment.plan else {}


def certified_cases(experiment: Experiment) -> list[str]:
    """Return the cases whose environment repeats, in the panel's order."""
    return [
        case
        for case, certificate in certificates_of(experiment).items()
        if certificate.verdict is CertificateVerdict.DETERMINISTIC
    ]


def counted_rollouts(experiment_id: int) -> list[int]:
    """Return the rollouts that count in an experiment."""
    return [cell.rollout for cell in cells_of([experiment_id])[experiment_id]]


def crashed_by_harness(rollout_id: int) -> bool:
    """Say whether a crash is said to be the harness's own."""
    facts = as_object(thawed(get_rollout(rollout_id).facts))
    return facts.get("crash_origin") == "harness" or as_object(facts.get("rollout")).get("failure_origin") == "policy"


def rollouts_of(experiment_id: int, case: str) -> list[Rollout]:
    """Return the counted rollouts of a case, by trial."""
    cells = cells_of([experiment_id], case=case)[experiment_id]
    rows = Rollout.objects.listed().in_bulk([cell.rollout for cell in cells])
    return [rows[cell.rollout] for cell in sorted(cells, key=lambda cell: cell.trial)]
