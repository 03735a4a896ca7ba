"""Measuring: an experiment's rollouts are ordered, followed and concluded; nothing of it waits in a process."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils import timezone

from harnesslab.accounts.models import User
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.repositories import commit_of
from harnesslab.actions.reruns import job_specs as orders
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.experiments import Binding, ExperimentKind, MeasuringPlan, State
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.recipe import RUN, Recipe, SideEffects
from harnesslab.core.training.training import TrainingState
from harnesslab.queries.engines import engine_named
from harnesslab.queries.experiments.measurements import measured
from harnesslab.queries.jobs.groups import rollouts_group
from harnesslab.queries.panels import definition_of
from harnesslab.queries.projects.bindings import binding_of
from harnesslab.queries.reruns.job_specs import Belonging
from harnesslab.store.models import AuditEntry, Experiment, Job, JobState, PanelRevision, Project, Training
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import frozen, storable


@dataclass(frozen=True, slots=True)
class Purpose:
    """What an experiment is measured for."""

    kind: ExperimentKind = ExperimentKind.EVAL
    baseline: Experiment | None = None
    training: Training | None = None
    mechanism: str = ""
    parent: str = ""
    """Commit that the revision was made from."""


def measure(
    project: Project,
    revision: str,
    panel: PanelRevision,
    plan: MeasuringPlan,
    purpose: Purpose | None = None,
    *,
    user: User | None = None,
    key: str = "",
) -> Experiment:
    """Order the rollouts of an experiment: one job a case and trial. The same key gives the one that is there.

    Raises `InvalidValue`, `NotFound` or `Conflict` where it can't be measured.
    """
    if (known := _known(key)) is not None:
        return known
    purpose = purpose or Purpose()
    binding = binding_of(project)
    if panel.panel.project_id != project.pk:
        raise Conflict(f"the panel {panel.panel.name!r} belongs to another project")
    engine_named(plan.engine)
    cases = definition_of(panel).chosen(plan.cases)
    commit = commit_of(binding.harness.repository, revision)
    try:
        with transaction.atomic():
            row = _row(project, commit, panel, plan, purpose, user, key, len(cases))
            _order(row, _recipes(binding, commit, cases, plan), user)
    except IntegrityError:
        if (known := _known(key)) is None:
            raise
        return known
    return row


def _known(key: str) -> Experiment | None:
    return Experiment.objects.filter(key=key).first() if key else None


def _order(row: Experiment, recipes: Iterable[Recipe], user: User | None) -> None:
    """Queue a job a recipe; workers are woken for a few, and one that ends a job wakes the next."""
    project, panel = row.project.name, row.panel.panel.name if row.panel is not None else ""
    asked = ((recipe, Belonging(project, panel, row.name, recipe.trial)) for recipe in recipes)
    orders.order_all(asked, group=rollouts_group(row.pk), user=user)


def _recipes(binding: Binding, commit: str, cases: Sequence[CaseDefinition], plan: MeasuringPlan) -> Iterator[Recipe]:
    """Yield what is run, every case once before any for the second time."""
    for trial in range(plan.trials):
        for case in cases:
            yield Recipe(
                harness=binding.at(commit),
                case=case,
                engine=plan.engine,
                settings=plan.settings,
                root_seed=plan.root_seed,
                trial=trial,
                tools=dict(binding.tools) or {RUN: SideEffects.SANDBOXED},
                pins=plan.pins,
            )


def _row(
    project: Project,
    commit: str,
    panel: PanelRevision,
    plan: MeasuringPlan,
    purpose: Purpose,
    user: User | None,
    key: str,
    total: int,
) -> Experiment:
    now = timezone.now()
    row = Experiment.objects.create(
        project=project,
        name=f"exp-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        kind=purpose.kind,
        state=State.RUNNING,
        revision=commit,
        parent_revision=purpose.parent,
        baseline=purpose.baseline,
        baseline_name=purpose.baseline.name if purpose.baseline is not None else "",
        mechanism=storable(purpose.mechanism, 400),
        panel=panel,
        trials=plan.trials,
        total=total,
        training=purpose.training,
        plan=frozen(plan.to_json()),
        key=key or None,
        created_by=user,
        started_at=now,
    )
    if user is not None:
        AuditEntry.objects.create(user=user, action="measure", subject=row.name, detail={"revision": commit})
    return row


def conclude(experiment_id: int) -> bool:
    """Close an experiment whose rollouts have all ended; True for the one caller that did.

    One whose rollouts were cancelled because its training stopped stays open: they are queued again when it goes on.
    """
    group = rollouts_group(experiment_id)
    if Job.objects.filter(group=group).exclude(state__in=ENDED).exists():
        return False
    waits = Experiment.objects.filter(pk=experiment_id, training__state=TrainingState.STOPPED)
    if waits.exists() and Job.objects.filter(group=group, state=JobState.CANCELLED).exists():
        return False
    found = measured(experiment_id)
    closed = Experiment.objects.filter(pk=experiment_id, state=State.RUNNING).update(
        state=State.DONE,
        solved=len(found.solved),
        identity=found.identity,
        ended_at=timezone.now(),
    )
    return bool(closed)


def cancel(experiment_id: int) -> int:
    """Stop measuring: what was measured stays; returns how many rollouts were asked to stop."""
    row = Experiment.objects.filter(pk=experiment_id, state=State.RUNNING)
    if not row.update(state=State.CANCELLED, ended_at=timezone.now()):
        raise Conflict("the experiment is not running", where=f"experiment {experiment_id}")
    asked = jobs.cancel_group(rollouts_group(experiment_id))
    found = measured(experiment_id)
    Experiment.objects.filter(pk=experiment_id).update(solved=len(found.solved))
    return asked
