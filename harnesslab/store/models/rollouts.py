"""Rollouts: one row each, with everything a list shows, so that a list reads no trace."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.core.running import rollout as domain
from harnesslab.store.models.experiments import Experiment
from harnesslab.store.models.manifests import StoredManifest
from harnesslab.store.models.projects import Case, Project
from harnesslab.store.models.sources import SourceFile


class RolloutQuerySet(models.QuerySet["Rollout"]):
    """The words that filters are made of."""

    def listed(self) -> RolloutQuerySet:
        """With what a row of a list shows."""
        return self.select_related("case__panel", "project", "experiment")

    def behind(self) -> RolloutQuerySet:
        """Ended ones whose counts are an older counter's; those that run are counted as they go."""
        return self.filter(counted_by__in=range(1, VERSION), head__isnull=False)  # by equality, so by the index


class Rollout(models.Model):
    """One recorded episode of one case."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="rollouts", db_index=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="rollouts", db_index=False)
    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, null=True, related_name="rollouts")
    manifest = models.ForeignKey(StoredManifest, on_delete=models.PROTECT, related_name="rollouts", db_index=False)
    source = models.ForeignKey(SourceFile, on_delete=models.PROTECT, null=True, related_name="rollouts", db_index=False)
    position = models.IntegerField(default=0)
    """Zero-based position among the source's rollouts."""
    trial = models.IntegerField(default=0)
    outcome = models.CharField(max_length=24)
    crash_origin = models.CharField(max_length=12, blank=True)
    """What made it crash, see `core.running.rollout.CrashOrigin`; empty where it did not."""
    reward = models.FloatField(null=True)
    origin = models.CharField(max_length=12)
    mode = models.CharField(max_length=12, blank=True)
    """Mode of the rerun that made it; empty for anything else."""
    grade = models.CharField(max_length=24)
    missing = models.TextField(blank=True)
    model = models.CharField(max_length=200, blank=True)
    engine = models.CharField(max_length=200, blank=True)
    harness = models.CharField(max_length=200, blank=True)
    revision = models.CharField(max_length=200, blank=True)
    tags = models.JSONField(default=list)
    anatomy = models.BinaryField(default=bytes)
    """See `core.measuring.trace_statistics`; empty until the trace has ended and was counted."""
    counted_by = models.SmallIntegerField(default=1)
    """Version of the counter that steps, tokens, seconds and `anatomy` are of."""
    search = models.TextField(blank=True)
    """Lower-case text that the search box looks in."""
    steps = models.IntegerField(default=0)
    events = models.IntegerField(default=0)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    cached_tokens = models.BigIntegerField(null=True)
    seconds = models.FloatField(null=True)
    budgets = models.JSONField(default=dict)
    facts = models.BinaryField(default=bytes)
    """What its source states of it, verbatim; see `store.text.frozen`."""
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    recipe = models.BinaryField(default=bytes)
    """What it takes to run it again, see `core.running.recipe`; empty where nobody can."""
    rerun = models.ForeignKey("store.Rerun", on_delete=models.SET_NULL, null=True, related_name="rollouts")
    """The rerun that made it."""
    attempt = models.IntegerField(default=0)
    """Zero-based attempt of its rerun."""
    job = models.ForeignKey("store.Job", on_delete=models.SET_NULL, null=True, related_name="rollouts")
    """The job that ran it; a job that was tried again has several, of which the last counts."""
    head = models.BinaryField(max_length=32, null=True)
    """The seal of the last event; null while recording."""
    path = models.BinaryField(max_length=16, null=True)
    """Digest of the whole path at level text without rules: equal paths behaved equally to the last character."""

    objects = RolloutQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["source", "position"], name="rollout_source_position_unique"),
            models.CheckConstraint(
                condition=models.Q(outcome__in=[item.value for item in domain.Outcome]), name="rollout_outcome_known"
            ),
            models.CheckConstraint(
                condition=models.Q(crash_origin__in=["", *(item.value for item in domain.CrashOrigin)]),
                name="rollout_crash_origin_known",
            ),
            models.CheckConstraint(
                condition=models.Q(origin__in=[item.value for item in domain.Origin]), name="rollout_origin_known"
            ),
            models.CheckConstraint(
                condition=models.Q(grade__in=[item.value for item in domain.Replayability]), name="rollout_grade_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["project", "outcome"], name="rollout_project_outcome"),
            models.Index(fields=["case", "trial", "outcome", "path"], name="rollout_case_outcome"),
            models.Index(fields=["model"], name="rollout_model"),
            models.Index(fields=["harness", "revision"], name="rollout_harness"),
            models.Index(fields=["outcome"], name="rollout_outcome"),
            models.Index(fields=["manifest"], name="rollout_manifest"),
            models.Index(fields=["steps"], name="rollout_steps"),
            models.Index(fields=["output_tokens"], name="rollout_output_tokens"),
            models.Index(fields=["seconds"], name="rollout_seconds"),
            models.Index(fields=["counted_by"], name="rollout_counted_by"),
        ]

    def __str__(self) -> str:
        return f"{self.case_id} #{self.trial}"
