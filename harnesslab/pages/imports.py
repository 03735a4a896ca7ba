"""The upload page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from harnesslab.actions.imports.uploads import receive
from harnesslab.formats.registry import supported
from harnesslab.pages.access import needs, user_of
from harnesslab.pages.render import render


def import_page(request: HttpRequest) -> HttpResponse:
    """Where files are dropped."""
    return render(request, "imports/import.html", {"formats": supported()})


@require_POST
@needs("operator")
def import_upload(request: HttpRequest) -> HttpResponse:
    """Take uploaded files: small ones are imported at once, large ones become jobs."""
    results = receive(request.FILES.getlist("files"), request.POST.get("project", "").strip() or None, user_of(request))
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"results": results})
    return render(request, "imports/import.html", {"formats": supported(), "results": results})
