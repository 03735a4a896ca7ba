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
        mirrors,
        preparation,
        record,
        reruns,
        serve,
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
        mirrors.import_mlflow,
        mirrors.mirror,
        preparation.prepare,
        record.record,
        reruns.rerun,
        serve.serve,
    ):
        group.add_command(command)
