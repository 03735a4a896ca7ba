"""Experiments: measured passes, with what was decided of them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from harnesslab.core.measuring import experiments as domain
from harnesslab.store.models.projects import PanelRevision, Project
from harnesslab.store.models.trainings import Training


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    """The words that lists of experiments are made of."""

    def light(self) -> ExperimentQuerySet:
        """Without the documents."""
        return self.defer("facts", "decision", "certification", "plan")

    def in_order(self) -> ExperimentQuerySet:
        """As they were measured."""
        return self.order_by(models.F("started_at").asc(nulls_last=True), "pk")


class Experiment(models.Model):
    """One measured pass of one harness revision over a panel."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="experiments")
    name = models.CharField(max_length=200)
    """Its external id: as its source names it, else as it was named here."""
    kind = models.CharField(max_length=12, blank=True)
    """See `core.measuring.experiments.ExperimentKind`; empty where the source doesn't say."""
    state = models.CharField(max_length=12, default=domain.State.IMPORTED)
    revision = models.CharField(max_length=200, blank=True)
    parent_revision = models.CharField(max_length=200, blank=True)
    baseline_name = models.CharField(max_length=200, blank=True)
    """External id of its baseline, which may not be here."""
    baseline = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="candidates")
    verdict = models.CharField(max_length=16, blank=True)
    """See `core.measuring.experiments.Verdict`; empty where nothing was decided."""
    reason = models.CharField(max_length=200, blank=True)
    mechanism = models.CharField(max_length=400, blank=True)
    """The change in one line."""
    identity = models.CharField(max_length=64, blank=True)
    """Digest of its measurement identity."""
    panel = models.ForeignKey(PanelRevision, on_delete=models.PROTECT, null=True, related_name="experiments")
    trials = models.IntegerField(default=1)
    solved = models.IntegerField(null=True)
    """Cases solved, of `total`; null until something was measured."""
    total = models.IntegerField(null=True)
    training = models.ForeignKey(Training, on_delete=models.SET_NULL, null=True, related_name="experiments")
    plan = models.BinaryField(default=bytes)
    """See `core.measuring.experiments.MeasuringPlan`."""
    decision = models.BinaryField(default=bytes)
    """The decision with all its reasons; an imported one verbatim."""
    certification = models.BinaryField(default=bytes)
    """By case, the verdict of its certification; an imported one verbatim."""
    facts = models.BinaryField(default=bytes)
    """What its source states of it, verbatim; see `store.text.frozen`."""
    key = models.CharField(max_length=80, null=True)  # noqa: DJ001 - null means no key, and is not unique
    """Idempotency key of the form that asked for it."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="experiment_unique"),
            models.UniqueConstraint(fields=["key"], name="experiment_key_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=[item.value for item in domain.State]), name="experiment_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=["", *(item.value for item in domain.ExperimentKind)]),
                name="experiment_kind_known",
            ),
            models.CheckConstraint(
                condition=models.Q(verdict__in=["", *(item.value for item in domain.Verdict)]),
                name="experiment_verdict_known",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state"], name="experiment_state")]

    def __str__(self) -> str:
        return self.name
