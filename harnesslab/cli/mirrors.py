"""`harnesslab mirror` and `harnesslab import-mlflow`."""

from __future__ import annotations

import click

from harnesslab.actions.projects import mirrors as actions
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.queries.mirrors import get_mirror, mirror_row
from harnesslab.queries.projects.bindings import get_project


@click.command("mirror")
@click.argument("project")
@click.option("--to", "address", default="", help="Address of an MLflow tracking server; turns the mirror on.")
@click.option("--experiment", default="", help="Name of the MLflow experiment; the project's own without it.")
@click.option("--off", is_flag=True, help="Stop keeping the copy; what is there stays.")
@click.option("--forget", is_flag=True, help="Forget what is on the server, which keeps it.")
@click.option("--json", "as_json", is_flag=True, help="Print how it stands as JSON.")
def mirror(project: str, address: str, experiment: str, *, off: bool, forget: bool, as_json: bool) -> None:
    """Keep a copy of a project on an MLflow server: experiments as runs, rollouts as traces. Workers do the copying."""
    ready_tables()
    row = get_project(project)
    if forget:
        actions.forget(row)
        click.echo("forgotten; nothing was removed from the server")
        return
    if address:
        actions.mirror_to(row, address, experiment=experiment)
    if off:
        actions.turn_off(row)
    shown = mirror_row(get_mirror(row))
    if as_json:
        click.echo(shown.model_dump_json(indent=2))
        return
    state = "on" if shown.enabled else "off"
    there = f"{shown.experiments} experiments and {shown.rollouts} rollouts are there, {shown.waiting} are missing"
    click.echo(printable(f"{shown.address}: {state}; {there}{'; ' + shown.sentence if shown.sentence else ''}"))


@click.command("import-mlflow")
@click.argument("address")
@click.option("--experiment", default="", help="One MLflow experiment by name; all of them without it.")
@click.option("--project", default="", help="Project to import into; the MLflow experiment's name without it.")
def import_mlflow(address: str, experiment: str, project: str) -> None:
    """Ask a worker to import the runs and traces of an MLflow server; the queue shows how far it is."""
    ready_tables()
    job = actions.order_import(address, experiment=experiment, project=project)
    click.echo(f"job {job.pk} is queued")
