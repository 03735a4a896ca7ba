"""Trainings: begun, stopped, and taken up again; `iterations` moves them forwards."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from harnesslab.accounts.models import User
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.trainings.iterations import advance, alone, begin_again
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.experiments import State
from harnesslab.core.training.training import OPEN, IterationState, TrainingPlan, TrainingState
from harnesslab.queries.engines import engine_named
from harnesslab.queries.experiments.criteria import criterion
from harnesslab.queries.jobs.groups import audits_group, proposals_group, rollouts_group
from harnesslab.queries.panels import definition_of
from harnesslab.queries.trainings.training import get_training, repository_of
from harnesslab.runtime.training.proposers import proposer
from harnesslab.store.models import AuditEntry, Experiment, Iteration, PanelRevision, Project, Training
from harnesslab.store.text import frozen


def train(
    project: Project, panel: PanelRevision, plan: TrainingPlan, *, user: User | None = None, key: str = ""
) -> Training:
    """Begin a training; the same key gives the one that is there.

    Raises `InvalidValue`, `NotFound` or `Conflict` for what can't be trained: a dirty or missing branch among them.
    """
    with alone(project.pk):
        row = _known(key) or _begin(project, panel, plan, user, key)
    advance(row.pk)
    return get_training(row.pk)


def _known(key: str) -> Training | None:
    return Training.objects.filter(key=key).first() if key else None


def _begin(project: Project, panel: PanelRevision, plan: TrainingPlan, user: User | None, key: str) -> Training:
    _check(project, panel, plan)
    try:
        with transaction.atomic():
            row = Training.objects.create(
                project=project, panel=panel, plan=frozen(plan.to_json()), key=key or None, created_by=user
            )
            if user is not None:
                AuditEntry.objects.create(user=user, action="train", subject=f"training {row.pk}", detail={})
    except IntegrityError:  # the key was used in another project
        if (known := _known(key)) is None:
            raise
        return known
    return row


def _check(project: Project, panel: PanelRevision, plan: TrainingPlan) -> None:
    engine_named(plan.measure.engine)
    criterion(plan.criterion)
    proposer(plan.proposer)
    definition_of(panel).chosen(plan.measure.cases)
    repository = repository_of(project)
    repository.head()
    repository.refuse_dirty()
    _refuse_another(project)


def _refuse_another(project: Project) -> None:
    other = Training.objects.filter(project=project, state=TrainingState.RUNNING).first()
    if other is not None:
        raise Conflict(f"training {other.pk} of the project is running", hint="stop it, or wait for its end")


def stop(training_id: int) -> None:
    """Stop a training where it is: what is measured stays, what is not is cancelled and can be queued again."""
    training = get_training(training_id)
    with alone(training.project_id):
        if not Training.objects.filter(pk=training_id, state=TrainingState.RUNNING).update(
            state=TrainingState.STOPPED, sentence="stopped on request"
        ):
            raise Conflict("the training is not running", where=f"training {training_id}")
        for group in _groups(training):
            jobs.cancel_group(group)


def resume(training_id: int) -> None:
    """Go on where a training stopped; between two iterations, with the next one."""
    training = get_training(training_id)
    repository_of(training.project).refuse_dirty()
    again = Training.objects.filter(pk=training_id, state__in=(TrainingState.STOPPED, TrainingState.FAILED))
    with alone(training.project_id), transaction.atomic():
        if not again.exists():
            raise Conflict("the training has not stopped", where=f"training {training_id}")
        _refuse_another(training.project)
        again.update(state=TrainingState.RUNNING, sentence="", ended_at=None)
        for group in _groups(training):
            jobs.requeue_group(group)
        begin_again(training)
    advance(training_id)


def _groups(training: Training) -> list[str]:
    """Return the groups of the jobs that a training waits for; experiments that are over are left as they are."""
    running = Experiment.objects.filter(training=training, state=State.RUNNING).values_list("pk", flat=True)
    groups = [rollouts_group(experiment) for experiment in running]
    iteration = Iteration.objects.filter(training=training, state__in=OPEN).order_by("-number").first()
    if iteration is None:
        return groups
    if iteration.state == IterationState.CERTIFYING and iteration.baseline_id is not None:
        groups.append(audits_group(iteration.baseline_id))
    return [*groups, proposals_group(iteration.pk)]
