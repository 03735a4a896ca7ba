"""Projects, and the panels and cases they measure on."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class Project(models.Model):
    """One harness repository and one line of work."""

    name = models.CharField(max_length=200)
    origin = models.CharField(max_length=16, blank=True)
    """Digest of the place that what was imported into it came from; empty for one that somebody named."""
    binding = models.BinaryField(default=bytes)
    """See `core.measuring.experiments.Binding`; empty for a project that nothing is measured in."""
    prices = models.JSONField(default=dict)
    """Prices by model, in a currency unit per million tokens: `{model: {"input": , "cached": , "output": }}`."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["name"], name="project_name_unique")]

    def __str__(self) -> str:
        return self.name


class Panel(models.Model):
    """A set of cases."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="panels")
    name = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="panel_unique")]

    def __str__(self) -> str:
        return self.name


class PanelRevision(models.Model):
    """What a panel held at one time: its runnable cases in order, by digest."""

    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="revisions")
    digest = models.CharField(max_length=64)
    body = models.BinaryField()
    """See `core.running.panels.PanelDefinition`."""
    cases = models.IntegerField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["panel", "digest"], name="panel_revision_unique")]

    def __str__(self) -> str:
        return f"{self.panel_id} {self.digest[:8]}"


class Case(models.Model):
    """One item of a panel."""

    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="cases")
    name = models.CharField(max_length=400)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["panel", "name"], name="case_unique")]

    def __str__(self) -> str:
        return self.name
