"""The `harnesslab` command: one module a noun."""

from __future__ import annotations

import click


def register(group: click.Group) -> None:
    """Add all commands; called once Django is set up, since they import its models."""
    from harnesslab.cli import (
        bundles,
        checks,
        comparisons,
        demonstration,
        engines,
        experiments,
        imports,
        measurements,
        panels,
        preparation,
        projects,
        record,
        reruns,
        serve,
        trainings,
    )

    for command in (
        bundles.export,
        bundles.verify,
        checks.check,
        comparisons.compare,
        demonstration.demo,
        engines.engine_add,
        engines.engines,
        experiments.experiments,
        imports.import_files,
        measurements.experiment,
        panels.panel_add,
        panels.panel_export,
        panels.panels,
        preparation.prepare,
        projects.project_bind,
        record.record,
        reruns.rerun,
        serve.serve,
        trainings.train,
        trainings.train_resume,
        trainings.train_stop,
        trainings.trainings,
    ):
        group.add_command(command)
