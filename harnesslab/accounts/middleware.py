"""Nothing but the login page, health and static files is readable without a login, unless reading is public."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import Resolver404, resolve

from harnesslab.accounts import tokens
from harnesslab.accounts.models import Role, User

OPEN = frozenset({"login", "health"})


class RequireReader:
    """Gives each request a `role`, from its session or its bearer token, and turns strangers away."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        # the API's views are exempt from the check on forms, since most callers send a token of their own
        self._forms = CsrfViewMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        at_api = request.path.startswith("/api/")
        role = _role(request, at_api=at_api)
        request.role = role  # type: ignore[attr-defined]
        if role is None and not _is_open(request):
            if at_api:
                return JsonResponse({"error": "log in, or send a token as 'Authorization: Bearer …'"}, status=401)
            return redirect_to_login(request.get_full_path())
        if at_api and self._forms.process_view(request, self.get_response, (), {}) is not None:
            return JsonResponse({"error": "a session needs the X-CSRFToken header here; or send a token"}, status=403)
        return self.get_response(request)


def _role(request: HttpRequest, *, at_api: bool) -> str | None:
    """Return the role of a request, or None for a stranger; a bearer token also sets the user.

    Tokens count at the API alone: on the account page one could make another of a wider scope.
    """
    header = request.headers.get("Authorization", "") if at_api else ""
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
