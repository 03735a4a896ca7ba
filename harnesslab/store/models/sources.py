"""The files that recordings were read from."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class SourceFile(models.Model):
    """An imported file by the digest of its original bytes: importing it again finds it here."""

    digest = models.CharField(max_length=64)
    name = models.CharField(max_length=400)
    format = models.CharField(max_length=40)
    size = models.BigIntegerField()
    skipped = models.JSONField(default=list)
    """What could not be imported, as [where, why] pairs."""
    complete = models.BooleanField(default=False)
    """False while its import runs, or after it was killed: importing again then goes on where it stopped."""
    imported_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="source_digest_unique")]

    def __str__(self) -> str:
        return self.name
