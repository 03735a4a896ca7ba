"""Panels: their revisions, what each holds, and what was measured on it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.pages.render import render
from harnesslab.queries.panels import get_revision, panel_archive, panel_rows, panel_view


def panels(request: HttpRequest) -> HttpResponse:
    """All panels, or those of one project."""
    project = request.GET.get("project", "")
    return render(request, "panels/list.html", {"panels": panel_rows(project), "project": project})


def panel(request: HttpRequest, revision_id: int) -> HttpResponse:
    """One revision with its cases."""
    return render(request, "panels/panel.html", {"view": panel_view(revision_id)})


def panel_download(request: HttpRequest, revision_id: int) -> HttpResponse:
    """One revision as the folder that `harnesslab panel-add` takes, in a zip file."""
    revision = get_revision(revision_id)
    answer = HttpResponse(panel_archive(revision), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="panel-{revision.digest[:12]}.zip"'
    return answer
