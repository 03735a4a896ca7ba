"""Routes of trainings; iterations count from 0. Beginning one is an admin's: its command runs as the worker does."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status

from harnesslab.actions.asking import ask_training
from harnesslab.actions.trainings import lifecycle as actions
from harnesslab.api.keys import key_of
from harnesslab.api.permissions import require
from harnesslab.queries.trainings.listing import TrainingRow, TrainingView, training_rows, training_view
from harnesslab.requests.trainings import TrainingRequest

router = Router()


@router.get("/trainings", response=list[TrainingRow])
def trainings(request: HttpRequest, project: str = "") -> list[TrainingRow]:
    """The trainings, newest first."""
    return training_rows(project)


@router.post("/trainings", response={201: TrainingView})
def training_new(request: HttpRequest, training: TrainingRequest) -> Status[TrainingView]:
    """Begin a training; `patches` is a folder on the server. The same key gives the one that is already there."""
    user = require(request, "admin")
    made = ask_training(training, user, key_of(request))
    return Status(201, training_view(made.pk))


@router.get("/trainings/{int:training_id}", response=TrainingView)
def training(request: HttpRequest, training_id: int) -> TrainingView:
    """One training with its iterations."""
    return training_view(training_id)


@router.post("/trainings/{int:training_id}/stop", response=TrainingView)
def training_stop(request: HttpRequest, training_id: int) -> TrainingView:
    """Stop it where it is."""
    require(request, "operator")
    actions.stop(training_id)
    return training_view(training_id)


@router.post("/trainings/{int:training_id}/resume", response=TrainingView)
def training_resume(request: HttpRequest, training_id: int) -> TrainingView:
    """Go on where it stopped."""
    require(request, "operator")
    actions.resume(training_id)
    return training_view(training_id)
