"""Users with a role, and API tokens."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    """What a user may do; each role includes the ones before it."""

    VIEWER = "viewer", "viewer"
    """Reads everything, changes nothing."""
    OPERATOR = "operator", "operator"
    """Imports, annotates, queues reruns."""
    ADMIN = "admin", "admin"
    """Deletes, and manages users and tokens."""


RANK: dict[str, int] = {role: rank for rank, role in enumerate(Role.values)}


class User(AbstractUser):
    """A person with a role."""

    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    class Meta(AbstractUser.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known")
        ]

    def may(self, role: str) -> bool:
        """Say whether the user's role includes another."""
        return self.is_active and RANK[self.role] >= RANK[role]


class ApiToken(models.Model):
    """A token for the API and the command line; its secret is shown once and only its SHA-256 is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    """First characters, to tell tokens apart."""
    digest = models.CharField(max_length=64)
    scope = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    """The most it may do, whatever its user's role."""
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["digest"], name="token_digest_unique"),
            models.CheckConstraint(condition=models.Q(scope__in=Role.values), name="token_scope_known"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"
