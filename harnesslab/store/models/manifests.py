"""Stored manifests."""

from __future__ import annotations

from django.db import models


class StoredManifest(models.Model):
    """A manifest by its digest; `body` is its canonical JSON, compressed."""

    digest = models.CharField(max_length=64, primary_key=True)
    body = models.BinaryField()

    def __str__(self) -> str:
        return self.digest
