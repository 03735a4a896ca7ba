"""Moving rollouts, with their reruns and whole experiments, to another project: a story is one lineage."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from harnesslab.accounts.models import User
from harnesslab.core.errors import Conflict, InvalidValue, NotFound
from harnesslab.store.models import AuditEntry, Case, Experiment, Panel, Project, RegressionCase, Rollout
from harnesslab.store.text import storable


@transaction.atomic
def move(rollout_ids: Collection[int], name: str, user: User | None = None) -> list[int]:
    """Move rollouts to a project, which is made where it isn't there; returns the ids of all that moved.

    Reruns go with their parents, and an experiment goes whole or not at all. Nothing that is sealed changes: a project,
    panel and case are how rollouts are kept, and no part of a trace. Raises `NotFound`, `InvalidValue` or `Conflict`.
    """
    shown = storable(name.strip(), 200)
    if not shown:
        raise InvalidValue("a project needs a name", where="project")
    rows = _with_reruns(rollout_ids)
    if running := rows.filter(head=None).values_list("pk", flat=True).first():
        raise Conflict("it still runs", where=f"rollout {running}", hint="move it once it has ended")
    project, _ = Project.objects.get_or_create(name=shown)
    _move_experiments(rows, project)
    _move_regressions(rows, project)
    moved = [_moved(row, project) for row in rows.select_related("case__panel", "project", "experiment", "source")]
    detail = {"to": shown, "rollouts": moved[:200], "count": len(moved)}
    AuditEntry.objects.create(user=user, action="move rollouts", subject=shown, detail=detail)
    return moved


def of_same_file(rollout_id: int) -> list[int]:
    """Return the rollouts that were read from the same file as one, itself included."""
    source = Rollout.objects.filter(pk=rollout_id).values_list("source_id", flat=True).first()
    if source is None:
        return [rollout_id]
    return list(Rollout.objects.filter(source_id=source).order_by("position").values_list("pk", flat=True))


def _with_reruns(rollout_ids: Collection[int]) -> QuerySet[Rollout]:
    """Return the rows of rollouts and of all that was rerun of them, in order."""
    there = set(Rollout.objects.filter(pk__in=rollout_ids).values_list("pk", flat=True))
    if missing := sorted(set(rollout_ids) - there):
        raise NotFound(f"there is no rollout {missing[0]}")
    if not there:
        raise InvalidValue("no rollout was named", where="rollouts")
    new = there
    while new:  # reruns of reruns too
        new = set(Rollout.objects.filter(rerun__parent__in=new).values_list("pk", flat=True)) - there
        there |= new
    return Rollout.objects.filter(pk__in=there).order_by("pk")


def _move_experiments(rows: QuerySet[Rollout], project: Project) -> None:
    for experiment in Experiment.objects.filter(rollouts__in=rows).exclude(project=project).distinct():
        if experiment.training_id is not None:
            raise Conflict("it is part of a training, which stays with its project", where=experiment.name)
        if left := Rollout.objects.filter(experiment=experiment).exclude(pk__in=rows).count():
            hint = "move all of them together"
            raise Conflict(f"{left} more rollouts belong to it", where=experiment.name, hint=hint)
        if Experiment.objects.filter(project=project, name=experiment.name).exists():
            raise Conflict(f"{project.name} has an experiment of that name", where=experiment.name)
        Experiment.objects.filter(pk=experiment.pk).update(project=project)


def _move_regressions(rows: QuerySet[Rollout], project: Project) -> None:
    for regression in RegressionCase.objects.filter(parent__in=rows).exclude(project=project):
        if RegressionCase.objects.filter(project=project, name=regression.name).exists():
            raise Conflict(f"{project.name} has a regression case of that name", where=regression.name)
        RegressionCase.objects.filter(pk=regression.pk).update(project=project)


def _moved(row: Rollout, project: Project) -> int:
    panel, _ = Panel.objects.get_or_create(project=project, name=row.case.panel.name)
    case, _ = Case.objects.get_or_create(panel=panel, name=row.case.name)
    # the text that the search box looks in begins with the project's name
    rest = row.search.removeprefix(storable(row.project.name.lower()))
    search = f"{storable(project.name.lower())}{rest}"
    Rollout.objects.filter(pk=row.pk).update(project=project, case=case, search=search)
    return row.pk
