"""Reruns, and regression cases: a frozen prefix with a predicate on what must not happen again."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from harnesslab.store.models.projects import Project
from harnesslab.store.models.rollouts import Rollout


class RegressionCase(models.Model):
    """A step of a rollout at which something bad was decided, and how to tell that it happened again."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="regression_cases")
    name = models.CharField(max_length=200)
    parent = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="regression_cases")
    from_step = models.IntegerField()
    predicate = models.JSONField()
    """See `core.running.predicates.Predicate`."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="regression_name_unique")]

    def __str__(self) -> str:
        return self.name


class Rerun(models.Model):
    """A request to execute a rollout again; each attempt makes a rollout of its own."""

    parent = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="reruns")
    plan = models.JSONField()
    """See `core.running.rerun.RerunPlan`."""
    level = models.CharField(max_length=12)
    """Comparison level of its finding: the strictest that the parent supports."""
    regression = models.ForeignKey(RegressionCase, on_delete=models.CASCADE, null=True, related_name="measurements")
    key = models.CharField(max_length=80, null=True)  # noqa: DJ001 - null means no key, and is not unique
    """Idempotency key of the form that asked for it."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["key"], name="rerun_key_unique")]

    def __str__(self) -> str:
        return f"rerun {self.pk} of rollout {self.parent_id}"
