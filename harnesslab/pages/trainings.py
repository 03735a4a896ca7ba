"""Trainings: asked for, followed, stopped and taken up again."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import capfirst
from django.views.decorators.http import require_POST

from harnesslab.actions.asking import AskedTraining, ask_training
from harnesslab.actions.trainings import lifecycle as actions
from harnesslab.core.errors import Conflict, HarnessLabError, NotFound
from harnesslab.http_errors import status_of
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.experiments.form_fields import ASKED, command_of, common, number, whole, words_of
from harnesslab.pages.render import render
from harnesslab.pages.reruns.plans import key_of
from harnesslab.queries.engines import engines
from harnesslab.queries.experiments.criteria import criterion_names
from harnesslab.queries.panels import panel_rows
from harnesslab.queries.projects.bindings import bound_project, get_project, projects_to_measure
from harnesslab.queries.trainings.listing import training_rows, training_view

_DEFAULTS = {**ASKED, "epochs": "8", "by": "patches", "criterion": "strict_pareto", "timeout": "1800"}


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
    if request.method == "POST":
        values, cases = words_of(request.POST)
        try:
            made = ask_training(_asked(values, cases), user_of(request), key_of({**values, "cases": "\n".join(cases)}))
        except HarnessLabError as error:
            return _form(request, values, error)
        return redirect("training", made.pk)
    values, _ = words_of(request.GET)
    if not values.get("project"):
        return render(request, "experiments/choose.html", {"projects": projects_to_measure(), "what": "training"})
    return _form(request, {**_DEFAULTS, "certify": "1", **values})


def _asked(values: dict[str, str], cases: Sequence[str]) -> AskedTraining:
    patches = values.get("by") != "command"
    return AskedTraining(
        **common(values, cases),
        epochs=whole(values, "epochs"),
        patches=values.get("patches", "").strip() if patches else "",
        command=() if patches else command_of(values.get("command", "")),
        name=values.get("name", "").strip(),
        effort=values.get("effort", "").strip(),
        timeout=number(values, "timeout") or 0.0,
        criterion=values.get("criterion", ""),
        certify=bool(values.get("certify")),
        remeasure=bool(values.get("remeasure")),
        unchanged=bool(values.get("unchanged")),
    )


def _form(request: HttpRequest, values: dict[str, str], error: HarnessLabError | None = None) -> HttpResponse:
    project = get_project(values.get("project", ""))
    context = {
        "project": project.name,
        "binding": bound_project(project),
        "form": {**_DEFAULTS, **values},
        "key": secrets.token_urlsafe(16),
        "panels": panel_rows(project_id=project.pk),
        "engines": engines(),
        "criteria": criterion_names(),
        "error": error,
    }
    return render(request, "trainings/form.html", context, status=status_of(error) if error is not None else 200)
