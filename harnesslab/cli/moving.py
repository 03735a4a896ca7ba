"""`harnesslab move`."""

from __future__ import annotations

import click

from harnesslab.actions.projects.moving import move, of_same_file
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable


@click.command("move")
@click.argument("rollouts", type=int, nargs=-1, required=True)
@click.option("--project", required=True, help="Project to move to; it is made where it isn't there.")
@click.option("--file", "whole_file", is_flag=True, help="Move all rollouts that were read from the same files.")
def move_rollouts(rollouts: tuple[int, ...], project: str, *, whole_file: bool) -> None:
    """Move rollouts to another project, with their reruns; an experiment goes whole or not at all."""
    ready_tables()
    wanted = {pk for each in rollouts for pk in (of_same_file(each) if whole_file else [each])}
    moved = move(wanted, project)
    click.echo(printable(f"{len(moved)} rollout{'s' * (len(moved) != 1)} moved to {project.strip()}"))
