"""Nothing but the login page, health and static files is readable without a login, unless reading is public."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import Resolver404, resolve

from harnesslab.accounts import tokens
from harnesslab.accounts.models import Role, User

OPEN = frozenset({"login", "health"})


class RequireReader:
    """Gives each request a `role`, from its session or its bearer token, and turns strangers away."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        role = _role(request)
        request.role = role  # type: ignore[attr-defined]
        if role is None and not _is_open(request):
            if request.path.startswith("/api/"):
                return JsonResponse({"error": "log in, or send a token as 'Authorization: Bearer …'"}, status=401)
            return redirect_to_login(request.get_full_path())
        return self.get_response(request)


def _role(request: HttpRequest) -> str | None:
    """Return the role of a request, or None for a stranger; a bearer token also sets the user."""
    header = request.headers.get("Authorization", "")
    if header.startswith("Bearer "):
        found = tokens.authenticate(header.removeprefix("Bearer ").strip())
        if found is None:
            return None
        request.user, role = found
        # a token can't be sent by a page of another site, so it needs no CSRF token
        request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
        return role
    if isinstance(request.user, User) and request.user.is_active:
        return request.user.role
    return Role.VIEWER if settings.CONFIG.public_read and request.method in ("GET", "HEAD") else None


def _is_open(request: HttpRequest) -> bool:
    if request.path.startswith(settings.STATIC_URL):
        return True
    try:
        return resolve(request.path_info).url_name in OPEN
    except Resolver404:
        return False
