"""Routes of experiments that are measured here, and of their panels; everything is named, and trials count from 0.

They belong to the router of experiments, since one address is answered by one router.
"""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Status

from harnesslab.actions.asking import ask_experiment
from harnesslab.actions.experiments import measurements as actions
from harnesslab.api import experiments
from harnesslab.api.cancelling import Cancelled
from harnesslab.api.keys import key_of
from harnesslab.api.permissions import require
from harnesslab.queries.experiments.progress import Progress, progress_of
from harnesslab.queries.panels import PanelRow, panel_rows
from harnesslab.requests.experiments import ExperimentRequest

router = experiments.router


@router.post("/experiments", response={201: Progress})
def experiment_new(request: HttpRequest, experiment: ExperimentRequest) -> Status[Progress]:
    """Measure a revision over a panel. The same key gives the experiment that is already there."""
    user = require(request, "operator")
    made = ask_experiment(experiment, user, key_of(request))
    return Status(201, progress_of(made.pk))


@router.get("/experiments/{int:experiment_id}/progress", response=Progress)
def experiment_progress(request: HttpRequest, experiment_id: int) -> Progress:
    """How far an experiment is, case by case."""
    return progress_of(experiment_id)


@router.post("/experiments/{int:experiment_id}/cancel", response=Cancelled)
def experiment_cancel(request: HttpRequest, experiment_id: int) -> dict[str, int]:
    """Stop measuring; what was measured stays."""
    require(request, "operator")
    return {"asked": actions.cancel(experiment_id)}


@router.get("/panels", response=list[PanelRow])
def panels(request: HttpRequest, project: str = "") -> list[PanelRow]:
    """The runnable panels with their revisions, newest first."""
    return panel_rows(project)
