"""The projects home, and health."""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect

from harnesslab import __version__
from harnesslab.pages.render import render
from harnesslab.queries.projects.home import home, project_named


def projects(request: HttpRequest) -> HttpResponse:
    """All projects."""
    return render(request, "projects/home.html", {"home": home()})


def named(request: HttpRequest) -> HttpResponse:
    """Lead to the story of the project that `name` names; without one, to all projects."""
    name = request.GET.get("name", "")
    return redirect("project", project_named(name)) if name else redirect("projects")


def health(request: HttpRequest) -> JsonResponse:
    """Say that the process and its database answer."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok", "version": __version__})
