"""Making and checking API tokens."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.utils import timezone

from harnesslab.accounts.models import RANK, ApiToken, Role, User
from harnesslab.core.canonical import bytes_digest

PREFIX = "hlab_"
USE_RESOLUTION = timedelta(minutes=1)
"""`used_at` is not written more often than this."""


def issue(user: User, name: str, scope: str = Role.VIEWER) -> tuple[ApiToken, str]:
    """Make a token and return it with its secret, which can't be read again."""
    # 256 random bits, which nobody guesses: the digest needs no salt and no slow hash, and finds the row by itself
    secret = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        user=user, name=name, prefix=secret[:10], digest=bytes_digest(secret.encode()), scope=scope
    )
    return row, secret


def authenticate(secret: str) -> tuple[User, str] | None:
    """Return the user and effective role of a token, or None for an unknown or revoked one."""
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=bytes_digest(secret.encode()), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None:
        return None
    now = timezone.now()
    if token.used_at is None or now - token.used_at > USE_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
    role = min(token.user.role, token.scope, key=RANK.__getitem__)
    return token.user, role
