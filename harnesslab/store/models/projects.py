"""Projects, the panels and cases they measure on, and experiments."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Project(models.Model):
    """One harness repository and one line of work."""

    name = models.CharField(max_length=200)
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


class Case(models.Model):
    """One item of a panel."""

    panel = models.ForeignKey(Panel, on_delete=models.PROTECT, related_name="cases")
    name = models.CharField(max_length=400)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["panel", "name"], name="case_unique")]

    def __str__(self) -> str:
        return self.name


class Experiment(models.Model):
    """One measured pass of one harness revision over a panel."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="experiments")
    name = models.CharField(max_length=200)
    facts = models.BinaryField(default=bytes)
    """What its source states of it, verbatim; see `store.text.frozen`."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="experiment_unique")]

    def __str__(self) -> str:
        return self.name
