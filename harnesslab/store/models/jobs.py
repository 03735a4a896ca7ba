"""Jobs: the row is the truth; Celery and its broker only wake workers."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models


class JobState(models.TextChoices):
    """Where a job is."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


ENDED = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class JobQuerySet(models.QuerySet["Job"]):
    """The words of the queue."""

    def waiting(self, queue: str) -> JobQuerySet:
        """Queued jobs of a queue, oldest first."""
        return self.filter(state=JobState.QUEUED, queue=queue).order_by("id")

    def expired(self, now: datetime) -> JobQuerySet:
        """Running jobs whose lease ran out: their worker is gone."""
        return self.filter(state=JobState.RUNNING, lease_until__lt=now)


class Job(models.Model):
    """A piece of background work."""

    kind = models.CharField(max_length=40)
    queue = models.CharField(max_length=20, default="cpu")
    group = models.CharField(max_length=60, blank=True)
    """What it is part of, such as `rerun 12`."""
    engine = models.CharField(max_length=200, blank=True)
    """Name of the engine that it asks, whose ceiling bounds how many run at once; empty where it asks none."""
    state = models.CharField(max_length=12, choices=JobState.choices, default=JobState.QUEUED)
    payload = models.JSONField(default=dict)
    idempotency_key = models.CharField(max_length=80, null=True)  # noqa: DJ001 - null means no key, and is not unique
    attempt = models.IntegerField(default=0)
    max_attempts = models.IntegerField(default=3)
    lease = models.CharField(max_length=40, blank=True)
    """Token of the worker that holds it."""
    lease_until = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True)
    message = models.TextField(blank=True)
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["idempotency_key"], name="job_idempotency_unique"),
            models.CheckConstraint(condition=models.Q(state__in=JobState.values), name="job_state_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["state", "queue"], name="job_state_queue"),
            models.Index(fields=["group"], name="job_group", condition=~models.Q(group="")),
            models.Index(fields=["engine", "state"], name="job_engine_state", condition=~models.Q(engine="")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} ({self.state})"
