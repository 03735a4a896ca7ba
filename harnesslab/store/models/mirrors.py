"""Mirrors: projects that are copied to an MLflow server, and what is there already."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from harnesslab.store.models.experiments import Experiment
from harnesslab.store.models.projects import Project
from harnesslab.store.models.rollouts import Rollout


class Mirror(models.Model):
    """A project's copy on an MLflow server."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="mirror")
    address = models.CharField(max_length=500)
    """Tracking URI."""
    enabled = models.BooleanField(default=False)
    experiment = models.CharField(max_length=200, blank=True)
    """Name of the MLflow experiment; empty for the project's own name."""
    sentence = models.TextField(blank=True)
    """What the last pass did, or why it failed."""
    mirrored_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.project_id} at {self.address}"


class Mirrored(models.Model):
    """One thing that is on the server; it is made once."""

    mirror = models.ForeignKey(Mirror, on_delete=models.CASCADE, related_name="items")
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, null=True, related_name="+")
    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, null=True, related_name="+")
    remote = models.CharField(max_length=100)
    """Id of the run or trace."""
    complete = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["mirror", "experiment"], name="mirrored_experiment_unique"),
            models.UniqueConstraint(fields=["mirror", "rollout"], name="mirrored_rollout_unique"),
        ]

    def __str__(self) -> str:
        return self.remote
