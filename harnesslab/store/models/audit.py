"""Who did what that can't be undone."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One action of a person or token, kept for ever."""

    at = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class Purge(models.Model):
    """Names a rollout whose events may be deleted; written only by the audited deletion."""

    rollout_id = models.BigIntegerField(primary_key=True)
    entry = models.ForeignKey(AuditEntry, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"rollout {self.rollout_id}"
