"""What a request's role lets it do."""

from __future__ import annotations

from django.http import HttpRequest
from ninja.errors import HttpError

from harnesslab.accounts.models import RANK, User


def require(request: HttpRequest, role: str) -> User:
    """Return the request's user if its role includes another; answers 403 otherwise."""
    given = getattr(request, "role", None)
    if given is None or RANK[given] < RANK[role] or not isinstance(request.user, User):
        raise HttpError(403, f"this needs the role {role}")
    return request.user
