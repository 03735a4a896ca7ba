"""Rendering: whatever a trace holds can be sent, a lone surrogate as its escape."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def render(
    request: HttpRequest, template: str, context: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Return a template as a page."""
    text = render_to_string(template, context, request)
    return HttpResponse(text.encode("utf-8", "backslashreplace"), status=status)
