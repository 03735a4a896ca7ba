"""`harnesslab demo`."""

from __future__ import annotations

import click

from harnesslab.actions.demonstration import load_demonstration
from harnesslab.actions.tables import ready_tables


@click.command("demo")
def demo() -> None:
    """Run the demonstration project and store its rollouts, if the database is empty."""
    ready_tables()
    count = load_demonstration()
    if count:
        click.echo(f"{count} demonstration rollouts were run and stored")
    else:
        click.echo("there are rollouts already; no demonstration was run")
