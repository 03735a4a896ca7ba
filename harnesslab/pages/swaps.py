"""What htmx is answered is markup: it swaps whatever comes, text too, so that text must never come as it is."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.html import escape

from harnesslab.pages.access import asks_for_part

HTML = "text/html"


class SwapsAreMarkup:
    """Escapes every answer to htmx that isn't HTML, whichever view made it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if answer.headers.get("Content-Type", HTML).startswith(HTML):
            return answer
        if asks_for_part(request):
            return _escaped(answer)
        patch_vary_headers(answer, ["HX-Request"])
        return answer


def _escaped(answer: HttpResponseBase) -> HttpResponse:
    """Return the same answer with its text as HTML; a file that is sent piece by piece is nothing to be swapped."""
    if not isinstance(answer, HttpResponse):
        answer.close()
        return HttpResponse("a file is no part of a page", status=406)
    answer.content = escape(answer.content.decode(answer.charset or "utf-8", "replace")).encode()
    answer.headers["Content-Type"] = f"{HTML}; charset=utf-8"
    patch_vary_headers(answer, ["HX-Request"])
    return answer
