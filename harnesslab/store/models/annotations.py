"""What people add: notes, overridden causes, saved views."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from harnesslab.store.models.rollouts import Rollout


class Note(models.Model):
    """A person's remark on a rollout, or on one of its steps."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="notes")
    step = models.IntegerField(null=True)
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.text[:60]


class CauseOverride(models.Model):
    """A reviewer's own finding of why two rollouts part; the latest one counts, and all are kept."""

    a = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="+")
    b = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="+")
    contract = models.CharField(max_length=300)
    cause = models.CharField(max_length=40)
    reason = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["a", "b", "contract"], name="override_pair")]

    def __str__(self) -> str:
        return f"{self.a_id} / {self.b_id}: {self.cause}"


class SavedView(models.Model):
    """A named list query of a user."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="views")
    name = models.CharField(max_length=80)
    query = models.TextField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "name"], name="view_name_unique")]

    def __str__(self) -> str:
        return self.name
