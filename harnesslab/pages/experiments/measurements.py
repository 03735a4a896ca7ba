"""Asking for experiments, and following those that run."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.text import capfirst
from django.views.decorators.http import require_POST

from harnesslab.actions.asking import ask_experiment, panel_revision
from harnesslab.actions.experiments import measurements as actions
from harnesslab.core.errors import Conflict, HarnessLabError, InvalidValue, NotFound
from harnesslab.http_errors import status_of
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.experiments.choices import CASE, DEFAULTS, measuring_choices
from harnesslab.pages.forms import form_values, key_of, read, refusal
from harnesslab.pages.render import render
from harnesslab.queries.experiments.estimates import estimate
from harnesslab.queries.experiments.measurements import baselines_of
from harnesslab.queries.experiments.progress import progress_of
from harnesslab.queries.panels import definition_of, panel_rows
from harnesslab.queries.projects.bindings import bound_project, get_project, projects_to_measure, revisions_of
from harnesslab.requests.experiments import ExperimentRequest


@needs("operator")
def experiment_form(request: HttpRequest) -> HttpResponse:
    """The form of a new experiment, once a project is chosen; with POST, orders it."""
    sent = request.POST if request.method == "POST" else request.GET
    values, cases = {name: str(value) for name, value in sent.items() if name != CASE}, sent.getlist(CASE)
    if request.method == "POST":
        key = key_of({**values, "cases": "\n".join(cases)})
        try:
            made = ask_experiment(read(ExperimentRequest, _document(sent)), user_of(request), key)
        except HarnessLabError as error:
            return _form(request, values, cases, error)
        return redirect("experiment-progress", made.pk)
    if not values.get("project"):
        return render(request, "experiments/choose.html", {"projects": projects_to_measure(), "what": "experiment"})
    return _form(request, values, cases)


def experiment_progress(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """How far an experiment is; asked again until it is over (286 tells htmx to stop)."""
    try:
        found = progress_of(experiment_id)
    except NotFound:
        if not asks_for_part(request):
            raise
        return HttpResponse(status=286)
    if asks_for_part(request):
        return render(request, "experiments/_progress.html", {"progress": found}, status=286 if found.over else 200)
    return render(request, "experiments/progress.html", {"progress": found})


@require_POST
@needs("operator")
def experiment_cancel(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Stop measuring."""
    try:
        asked = actions.cancel(experiment_id)
    except Conflict as error:
        messages.error(request, f"{capfirst(error.what)}.")
    else:
        messages.success(request, f"Cancelled: {asked} rollout{'s were' if asked != 1 else ' was'} asked to stop.")
    return redirect("experiment-progress", experiment_id)


def _document(sent: QueryDict) -> dict[str, Any]:
    """Return what the form states; where it has a baseline it is a candidate."""
    document = form_values(ExperimentRequest, sent)
    return {**document, "kind": None} if document.get("baseline") else document


def _form(
    request: HttpRequest, values: dict[str, str], cases: list[str], error: HarnessLabError | None = None
) -> HttpResponse:
    project = get_project(values["project"]) if values.get("project") else None
    if project is None:
        raise InvalidValue("which project?", where="project")
    panels = panel_rows(project_id=project.pk)
    form = {
        **DEFAULTS,
        "panel": panels[0].argument if panels else "",
        "revision": bound_project(project).branch,
        **values,
    }
    context: dict[str, Any] = {
        "project": project.name,
        "chosen": cases,
        "key": secrets.token_urlsafe(16),
        **measuring_choices(panels),
        **refusal(error, form),
        **_cost(form, cases),
    }
    if context["errors"]:
        context["wrong"] = ""  # it stands at its field already
    if asks_for_part(request):
        return render(request, "experiments/_cost.html", context)
    context |= {"revisions": revisions_of(project), "baselines": _baselines(baselines_of(project))}
    return render(request, "experiments/form.html", context, status=status_of(error) if error is not None else 200)


def _baselines(rows: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    names = [(name, f"{name} · {score} solved · {commit}") for name, score, commit in rows]
    return [("", "nothing: an evaluation"), *names]


def _cost(form: dict[str, str], cases: Sequence[str]) -> dict[str, Any]:
    """Return the panel's cases and what the form would cost, or with what is wrong with it."""
    found: dict[str, Any] = {"wrong": "", "names": []}
    try:
        panel = panel_revision(form.get("project", ""), form.get("panel", ""))
        definition = definition_of(panel)
        found["names"] = [case.name for case in definition.cases]
        document = form_values(ExperimentRequest, form)
        plan = read(ExperimentRequest, {**document, "baseline": "", "kind": None}).to_measuring_plan()
        chosen = [case.name for case in definition.chosen(cases or None)]
        found["estimate"] = estimate(panel, chosen, plan.trials, plan.engine)
    except HarnessLabError as error:
        found["wrong"] = error.sentence
    return found
