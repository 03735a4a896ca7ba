"""Turns the domain's errors into answers: one clear sentence with the right status."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from harnesslab.core.errors import (
    Conflict,
    FormatRefused,
    HarnessLabError,
    InvalidValue,
    NotComparable,
    NotFound,
    TryLater,
)

STATUS: dict[type[HarnessLabError], int] = {
    NotFound: 404,
    Conflict: 409,
    FormatRefused: 422,
    NotComparable: 422,
    InvalidValue: 400,
    TryLater: 429,
}


def status_of(error: HarnessLabError) -> int:
    """Return the HTTP status of a domain error."""
    return next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an address that leads nowhere."""
    if request.path.startswith("/api/"):
        return JsonResponse({"error": "there is no such address; /api/v1/openapi.json lists them"}, status=404)
    return render(request, "404.html", status=404)


class DomainErrors:
    """Answers expected errors; unexpected ones stay errors."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer a domain error."""
        if not isinstance(exception, HarnessLabError):
            return None
        status = status_of(exception)
        if request.path.startswith("/api/"):
            return JsonResponse({"error": exception.sentence}, status=status)
        return render(request, "error.html", {"error": exception, "status": status}, status=status)
