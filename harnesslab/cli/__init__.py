"""The `harnesslab` command: one module a noun."""

from __future__ import annotations

import click


def register(group: click.Group) -> None:
    """Add all commands; called once Django is set up, since they import its models."""
    for command in (*_of_recordings(), *_of_workers()):
        group.add_command(command)


def _of_recordings() -> tuple[click.Command, ...]:
    from harnesslab.cli import bundles, checks, comparisons, experiments, imports, mirrors, record, recount

    return (
        bundles.export,
        bundles.verify,
        checks.check,
        comparisons.compare,
        experiments.experiments,
        imports.import_files,
        mirrors.import_mlflow,
        mirrors.mirror,
        record.record,
        recount.recount,
    )


def _of_workers() -> tuple[click.Command, ...]:
    from harnesslab.cli import demonstration, engines, measurements, moving, panels, projects, reruns
    from harnesslab.cli import trainings as training
    from harnesslab.cli.server import preparation, serve

    return (
        demonstration.demo,
        engines.engine_add,
        engines.engines,
        measurements.experiment,
        panels.panel_add,
        panels.panel_export,
        panels.panels,
        preparation.prepare,
        moving.move_rollouts,
        projects.project_bind,
        projects.project_price,
        reruns.rerun,
        serve.serve,
        training.train,
        training.train_resume,
        training.train_stop,
        training.trainings,
    )
