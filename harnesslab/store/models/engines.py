"""Registered engines, and the tickets that hold requests to an engine below its limit."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Engine(models.Model):
    """A model server that workers talk to."""

    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20)
    """Which client speaks to it: sglang, openai or embedded."""
    address = models.CharField(max_length=500, blank=True)
    model = models.CharField(max_length=200, blank=True)
    options = models.JSONField(default=dict)
    """Settings of the client, such as the variable that holds the key; never a secret itself."""
    ceiling = models.IntegerField(default=1)
    """Most requests at a time, over all workers."""
    certified = models.BooleanField(default=False)
    """Whether a gate measured the ceiling, rather than a person stating it."""
    up = models.BooleanField(null=True)
    """Whether it answered when it was last asked; null where nobody has asked."""
    sentence = models.TextField(blank=True)
    """What its last health check or probe said."""
    checked_at = models.DateTimeField(null=True)
    facts = models.BinaryField(default=bytes)
    """Conditions it reported when it was last asked; see `store.text.frozen`."""
    probe = models.JSONField(default=dict)
    """What was probed of it."""
    seed_honoured = models.BooleanField(null=True)
    retired = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name"], name="engine_name_unique"),
            models.CheckConstraint(condition=models.Q(ceiling__gte=1), name="engine_ceiling_positive"),
        ]

    def __str__(self) -> str:
        return self.name


class EngineTicket(models.Model):
    """One request that waits for an engine or is being answered; without renewal it runs out."""

    engine = models.ForeignKey(Engine, on_delete=models.CASCADE, related_name="tickets")
    holder = models.CharField(max_length=40)
    granted = models.BooleanField(default=False)
    until = models.DateTimeField()
    asked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["holder"], name="ticket_holder_unique")]

    def __str__(self) -> str:
        return f"{self.holder} at {self.engine_id}"
