"""The `harnesslab` command: one module a noun."""

from __future__ import annotations

import click


def register(group: click.Group) -> None:
    """Add all commands; called once Django is set up, since they import its models."""
    from harnesslab.cli import bundles, comparisons, imports, serve

    for command in (imports.import_files, comparisons.compare, bundles.export, bundles.verify, serve.serve):
        group.add_command(command)
