"""The projects home, and health."""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from harnesslab import __version__
from harnesslab.pages.render import render
from harnesslab.queries.projects import home


def projects(request: HttpRequest) -> HttpResponse:
    """All projects."""
    return render(request, "projects/home.html", {"home": home()})


def health(request: HttpRequest) -> JsonResponse:
    """Say that the process and its database answer."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok", "version": __version__})
