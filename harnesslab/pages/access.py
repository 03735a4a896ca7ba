"""Guards for views, and what every template is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from harnesslab.accounts.models import RANK, User
from harnesslab.pages.render import render

P = ParamSpec("P")
View: TypeAlias = Callable[Concatenate[HttpRequest, P], HttpResponse]


def role_of(request: HttpRequest) -> str:
    """Return the role that the request was given on its way in."""
    return str(getattr(request, "role", "") or "viewer")


def may(request: HttpRequest, role: str) -> bool:
    """Say whether a request's role includes another."""
    return RANK[role_of(request)] >= RANK[role]


def user_of(request: HttpRequest) -> User:
    """Return the user of a request that `needs` let in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def asks_for_part(request: HttpRequest) -> bool:
    """Say whether htmx asks, to put a part into a page that is already there."""
    return bool(getattr(request, "htmx", False))


def needs(role: str) -> Callable[[View[P]], View[P]]:
    """Let a view be used by a role and those above it."""

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not may(request, role) or not isinstance(request.user, User):
                return render(request, "forbidden.html", {"needed": role}, status=403)
            return view(request, *args, **kwargs)

        return cast(View[P], checked)

    return guard


NAVIGATION = (
    ("projects", "Projects"),
    ("experiments", "Experiments"),
    ("rollouts", "Rollouts"),
    ("reruns", "Reruns"),
    ("regressions", "Regressions"),
    ("requests", "Requests"),
    ("import", "Import"),
    ("jobs", "Queue"),
    ("engines", "Engines"),
)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Context of every template: the main navigation, where one is, and what one may do."""
    name = request.resolver_match.url_name if request.resolver_match else ""
    section = (name or "").split("-")[0]
    owner = {
        "project": "projects",
        "experiment": "experiments",
        "panel": "experiments",
        "panels": "experiments",
        "training": "experiments",
        "trainings": "experiments",
        "rollout": "rollouts",
        "compare": "rollouts",
        "manifest": "rollouts",
        "request": "requests",
        "job": "jobs",
        "rerun": "reruns",
        "engine": "engines",
        "regression": "regressions",
    }
    return {
        "navigation": NAVIGATION,
        "section": owner.get(section, section),
        "may_operate": may(request, "operator") and request.user.is_authenticated,
        "may_admin": may(request, "admin") and request.user.is_authenticated,
    }
