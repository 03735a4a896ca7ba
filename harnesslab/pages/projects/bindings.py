"""Which harness a project measures: its form is an admin's, since workers run what it names."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from harnesslab.actions.projects.bindings import bind
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.measuring.experiments import Binding
from harnesslab.core.running.recipe import HarnessKind, HarnessSource
from harnesslab.http_errors import status_of
from harnesslab.pages.access import needs, user_of
from harnesslab.pages.experiments.form_fields import command_of
from harnesslab.pages.render import render
from harnesslab.queries.projects.bindings import binding_of, bound_project, get_project


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
        form |= {name: str(value) for name, value in request.POST.items()}
        try:
            bind(project.name, _binding(form, binding_of(row) if project.bound else None), user_of(request))
        except HarnessLabError as refused:
            error = refused
        else:
            messages.success(request, f"{project.name} is bound.")
            return redirect(f"{reverse('experiment-new')}?{urlencode({'project': project.name})}")
    context = {"project": project, "form": form, "error": error, "kinds": [kind.value for kind in HarnessKind]}
    return render(request, "projects/binding.html", context, status=status_of(error) if error is not None else 200)


def _binding(form: dict[str, str], before: Binding | None) -> Binding:
    """Read a binding; what the form doesn't name stays as it was before."""
    if form["kind"] not in tuple(HarnessKind):
        raise InvalidValue(f"no kind of harness: {form['kind'][:40]!r}", where="kind")
    repository = form["repository"].strip()
    kept = before or Binding(HarnessSource("", ""))
    source = msgspec.structs.replace(
        kept.harness,
        name=kept.harness.name or Path(repository).name.removesuffix(".git") or "harness",
        repository=repository,
        kind=HarnessKind(form["kind"]),
        entry=form["entry"].strip() or "harness",
        command=command_of(form["command"]),
    )
    if source.kind is HarnessKind.COMMAND and not source.command:
        raise InvalidValue("a command harness needs a command", where="command")
    if not repository:
        raise InvalidValue("which repository?", where="repository", hint="its revisions are what is measured")
    surface = tuple(form["surface"].split()) or ("*.py",)
    return msgspec.structs.replace(kept, harness=source, branch=form["branch"].strip() or "main", surface=surface)
