"""Ordering what a request asks to be measured or trained: its names are resolved here."""

from __future__ import annotations

import re

from harnesslab.accounts.models import User
from harnesslab.actions.experiments.measurements import Purpose, measure
from harnesslab.actions.trainings.lifecycle import train
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.measuring.experiments import State
from harnesslab.queries.experiments.measurements import experiment_named, measuring_plan_of
from harnesslab.queries.panels import revision_named
from harnesslab.queries.projects.bindings import get_project
from harnesslab.queries.trainings.training import training_plan
from harnesslab.requests.experiments import ExperimentRequest
from harnesslab.requests.trainings import TrainingRequest
from harnesslab.store.models import Experiment, PanelRevision, Training

_DIGEST = re.compile("[0-9a-f]{4,64}")


def panel_revision(project: str, panel: str) -> PanelRevision:
    """Return the revision of a panel that `NAME` or `NAME@DIGEST` names; raises `NotFound`."""
    name, _, digest = panel.rpartition("@")
    if name and _DIGEST.fullmatch(digest):
        return revision_named(project, name, digest)
    return revision_named(project, panel)


def ask_experiment(request: ExperimentRequest, user: User | None = None, key: str = "") -> Experiment:
    """Order an experiment; raises what `measure` raises, and `InvalidValue` for a baseline that is none."""
    project, plan = get_project(request.project), request.to_measuring_plan()
    baseline = _baseline(request) if request.baseline else None
    purpose = Purpose(request.purpose, baseline, parent=baseline.revision if baseline is not None else "")
    panel = panel_revision(request.project, request.panel)
    made = measure(project, request.revision, panel, plan, purpose, user=user, key=key)
    if (made.project_id, made.panel_id, made.kind, measuring_plan_of(made)) != (
        project.pk,
        panel.pk,
        request.purpose,
        plan,
    ):
        raise Conflict("this key was used for another experiment", where=made.name)
    return made


def _baseline(request: ExperimentRequest) -> Experiment:
    row = experiment_named(request.baseline, request.project)
    if not row.plan:
        raise Conflict(
            "it was not measured here, so that nothing measured here can be judged against it", where=row.name
        )
    if row.state == State.CANCELLED:
        raise InvalidValue("it was cancelled, so that nothing can be judged against it", where=row.name)
    return row


def ask_training(request: TrainingRequest, user: User | None = None, key: str = "") -> Training:
    """Begin a training; raises what `train` raises."""
    plan = request.to_plan()
    project, panel = get_project(request.project), panel_revision(request.project, request.panel)
    made = train(project, panel, plan, user=user, key=key)
    if (made.project_id, made.panel_id, training_plan(made)) != (project.pk, panel.pk, plan):
        raise Conflict("this key was used for another training", where=f"training {made.pk}")
    return made
