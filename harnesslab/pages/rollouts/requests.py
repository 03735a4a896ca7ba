"""Requests: model calls grouped by what was asked."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.core.natural import natural
from harnesslab.pages.render import render
from harnesslab.queries.rollouts.requests import request_detail, request_page


def requests(request: HttpRequest) -> HttpResponse:
    """Repeated requests, those with most answers first."""
    offset = natural(request.GET.get("offset", "")) or 0
    unstable = request.GET.get("unstable") == "1"
    page = request_page(offset, unstable_only=unstable)
    return render(request, "requests/list.html", {"page": page, "unstable": unstable})


def request_answers(request: HttpRequest, digest: str) -> HttpResponse:
    """One request with its distinct answers."""
    return render(request, "requests/request.html", {"request_detail": request_detail(digest)})
