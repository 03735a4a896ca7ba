"""Trainings: asked for, followed, stopped and taken up again."""

from __future__ import annotations

import secrets

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.text import capfirst
from django.views.decorators.http import require_POST

from harnesslab.actions.asking import ask_training
from harnesslab.actions.trainings import lifecycle as actions
from harnesslab.core.deciding.promotion import DEFAULT as CRITERION
from harnesslab.core.deciding.promotion import criterion_words
from harnesslab.core.errors import Conflict, HarnessLabError, NotFound
from harnesslab.http_errors import status_of
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.experiments.choices import CASE, DEFAULTS, measuring_choices
from harnesslab.pages.forms import form_values, key_of, read, refusal
from harnesslab.pages.render import render
from harnesslab.queries.experiments.criteria import criterion_names
from harnesslab.queries.panels import panel_rows
from harnesslab.queries.projects.bindings import bound_project, get_project, projects_to_measure
from harnesslab.queries.trainings.listing import training_rows, training_view
from harnesslab.requests.trainings import TrainingRequest

_DEFAULTS = {**DEFAULTS, "epochs": "8", "by": "patches", "criterion": CRITERION, "timeout": "1800"}


def trainings(request: HttpRequest) -> HttpResponse:
    """All trainings, newest first, or those of one project."""
    project = request.GET.get("project", "")
    return render(request, "trainings/list.html", {"trainings": training_rows(project), "project": project})


def training(request: HttpRequest, training_id: int) -> HttpResponse:
    """One training; asked again every other second until nothing goes on (286 tells htmx to stop)."""
    try:
        view = training_view(training_id)
    except NotFound:
        if not asks_for_part(request):
            raise
        return HttpResponse(status=286)
    if asks_for_part(request):
        return render(request, "trainings/_training.html", {"view": view}, status=286 if view.row.over else 200)
    return render(request, "trainings/training.html", {"view": view})


@require_POST
@needs("operator")
def training_stop(request: HttpRequest, training_id: int) -> HttpResponse:
    """Stop it where it is."""
    try:
        actions.stop(training_id)
    except Conflict as error:
        messages.error(request, f"{capfirst(error.what)}.")
    else:
        messages.success(request, "Stopped: what is measured stays, and it can go on from here.")
    return redirect("training", training_id)


@require_POST
@needs("operator")
def training_resume(request: HttpRequest, training_id: int) -> HttpResponse:
    """Go on where it stopped."""
    try:
        actions.resume(training_id)
    except Conflict as error:
        messages.error(request, f"{capfirst(error.what)}.")
    else:
        messages.success(request, "It goes on.")
    return redirect("training", training_id)


@needs("admin")
def training_form(request: HttpRequest) -> HttpResponse:
    """The form of a new training, once a project is chosen; with POST, begins it."""
    sent = request.POST if request.method == "POST" else request.GET
    values = {name: str(value) for name, value in sent.items() if name != CASE}
    if request.method == "POST":
        key = key_of({**values, "cases": "\n".join(sent.getlist(CASE))})
        try:
            made = ask_training(_asked(sent), user_of(request), key)
        except HarnessLabError as error:
            return _form(request, values, error)
        return redirect("training", made.pk)
    if not values.get("project"):
        return render(request, "experiments/choose.html", {"projects": projects_to_measure(), "what": "training"})
    return _form(request, {**_DEFAULTS, "certify": "1", **values})


def _asked(sent: QueryDict) -> TrainingRequest:
    """Read the form; of the two ways to propose changes, the fields of the one that is hidden are left out."""
    command = sent.get("by") == "command"
    unused = ("patches",) if command else ("command", "timeout")
    document = {name: value for name, value in form_values(TrainingRequest, sent).items() if name not in unused}
    return read(TrainingRequest, document, {"patches": "command"} if command else None)


def _form(request: HttpRequest, values: dict[str, str], error: HarnessLabError | None = None) -> HttpResponse:
    project = get_project(values.get("project", ""))
    context = {
        "project": project.name,
        "binding": bound_project(project),
        "key": secrets.token_urlsafe(16),
        "criteria": [(name, criterion_words(name)) for name in criterion_names()],
        **measuring_choices(panel_rows(project_id=project.pk)),
        **refusal(error, {**_DEFAULTS, **values}),
    }
    return render(request, "trainings/form.html", context, status=status_of(error) if error is not None else 200)
