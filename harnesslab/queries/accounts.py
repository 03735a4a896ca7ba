"""Users and tokens, for the account page."""

from __future__ import annotations

from datetime import datetime

from harnesslab.accounts.models import ApiToken, User
from harnesslab.queries.read_model import ReadModel


class ApiTokenRow(ReadModel):
    """One token without its secret."""

    id: int
    name: str
    prefix: str
    scope: str
    created_at: datetime
    used_at: datetime | None
    revoked_at: datetime | None


def tokens_of(user: User) -> list[ApiTokenRow]:
    """Return a user's tokens, newest first."""
    return [
        ApiTokenRow(
            id=row.pk,
            name=row.name,
            prefix=row.prefix,
            scope=row.scope,
            created_at=row.created_at,
            used_at=row.used_at,
            revoked_at=row.revoked_at,
        )
        for row in ApiToken.objects.filter(user=user).order_by("-id")
    ]


def all_users() -> list[tuple[str, str]]:
    """Return (name, role) of all users."""
    return list(User.objects.filter(is_active=True).order_by("username").values_list("username", "role"))
