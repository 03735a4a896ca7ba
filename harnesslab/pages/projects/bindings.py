"""Which harness a project measures: its form is an admin's, since workers run what it names."""

from __future__ import annotations

import shlex

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from harnesslab.actions.projects.bindings import bind
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.recipe import HarnessKind
from harnesslab.http_errors import status_of
from harnesslab.pages.access import needs, user_of
from harnesslab.pages.forms import form_values, read, refusal
from harnesslab.pages.render import render
from harnesslab.queries.projects.bindings import binding_of, bound_project, get_project
from harnesslab.requests.projects import BindingRequest


@needs("admin")
def project_binding(request: HttpRequest, project_id: int) -> HttpResponse:
    """The form of a project's binding; with POST, keeps it."""
    row = get_project(project_id)
    project = bound_project(row)
    form = {
        "repository": project.repository,
        "branch": project.branch,
        "kind": project.kind,
        "entry": project.entry,
        "command": shlex.join(project.command),
        "surface": "\n".join(project.surface),
    }
    error = None
    if request.method == "POST":
        form |= request.POST.dict()
        try:
            asked = read(BindingRequest, form_values(BindingRequest, form))
            before = binding_of(row) if project.bound else None
            bind(project.name, asked.to_binding(project.name, before), user_of(request))
        except HarnessLabError as refused:
            error = refused
        else:
            messages.success(request, f"{project.name} is bound.")
            return redirect(f"{reverse('experiment-new')}?{urlencode({'project': project.name})}")
    context = {"project": project, "kinds": [kind.value for kind in HarnessKind], **refusal(error, form)}
    return render(request, "projects/binding.html", context, status=status_of(error) if error is not None else 200)
