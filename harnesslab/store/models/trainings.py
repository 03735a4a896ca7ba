"""Trainings: the loop of measuring, proposing, judging; its iterations, and the learning memo."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from harnesslab.core.training.training import IterationState, TrainingState
from harnesslab.store.models.projects import PanelRevision, Project


class Training(models.Model):
    """A loop of iterations on one branch, panel and engine."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="trainings")
    panel = models.ForeignKey(PanelRevision, on_delete=models.PROTECT, related_name="trainings")
    state = models.CharField(max_length=12, default=TrainingState.RUNNING)
    plan = models.BinaryField()
    """See `core.training.training.TrainingPlan`."""
    sentence = models.TextField(blank=True)
    """Where it is, or why it stopped."""
    key = models.CharField(max_length=80, null=True)  # noqa: DJ001 - null means no key, and is not unique
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key"], name="training_key_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=[item.value for item in TrainingState]), name="training_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"training {self.pk}"


class Iteration(models.Model):
    """One turn of the loop: a baseline, a proposed change, and what became of it."""

    training = models.ForeignKey(Training, on_delete=models.CASCADE, related_name="iterations")
    number = models.IntegerField()
    """Zero-based."""
    state = models.CharField(max_length=12, default=IterationState.BASELINE)
    base_commit = models.CharField(max_length=40, blank=True)
    commit = models.CharField(max_length=40, blank=True)
    """The candidate; empty where none was proposed."""
    mechanism = models.CharField(max_length=400, blank=True)
    reason = models.TextField(blank=True)
    """Why it was skipped, or the decision's reason."""
    baseline = models.ForeignKey("store.Experiment", on_delete=models.SET_NULL, null=True, related_name="+")
    candidate = models.ForeignKey("store.Experiment", on_delete=models.SET_NULL, null=True, related_name="iterations")
    proposer = models.BinaryField(default=bytes)
    """What the proposer stated of itself: kind, model, effort, tokens, cost, seconds, and the changed mechanisms."""
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["training", "number"], name="iteration_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=[item.value for item in IterationState]), name="iteration_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"iteration {self.number} of training {self.training_id}"


class Memo(models.Model):
    """One version of a project's learning memo."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="memos")
    iteration = models.ForeignKey(Iteration, on_delete=models.SET_NULL, null=True, related_name="memos")
    """The iteration it followed; null for one that was imported or written by hand."""
    after = models.ForeignKey("store.Experiment", on_delete=models.SET_NULL, null=True, related_name="memos")
    """The newest experiment that it knew of."""
    digest = models.CharField(max_length=64)
    body = models.BinaryField()
    """Markdown, compressed."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "digest"], name="memo_unique")]

    def __str__(self) -> str:
        return f"memo {self.pk}"
