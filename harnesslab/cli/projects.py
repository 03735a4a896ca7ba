"""`harnesslab project-bind` and `project-price`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harnesslab.actions.projects.bindings import bind, set_price
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.options import options_of, read
from harnesslab.cli.terminal import printable
from harnesslab.queries.projects.bindings import get_project
from harnesslab.requests.projects import BindingRequest


@click.command("project-bind")
@click.argument("project")
@options_of(BindingRequest, surface="--editable --surface")
def project_bind(project: str, repository: str, **stated: Any) -> None:
    """Say which harness a project measures; it is made where it isn't there."""
    ready_tables()
    place = Path(repository)
    there = "://" not in repository and "\0" not in repository and place.is_dir()
    asked = read(BindingRequest, {**stated, "repository": str(place.resolve()) if there else repository})
    made = bind(project, asked.to_binding(project))
    click.echo(printable(f"{made.name} measures {asked.repository}, branch {asked.branch}"))


@click.command("project-price")
@click.argument("project")
@click.argument("model")
@click.option("--input", "fresh", type=float, required=True, help="Price of a million input tokens.")
@click.option("--cached", type=float, help="Of a million cached ones; as the others without it.")
@click.option("--output", type=float, required=True, help="Of a million output tokens, reasoning included.")
def project_price(project: str, model: str, fresh: float, cached: float | None, output: float) -> None:
    """Say what a model's tokens cost, in any currency, so that efficiency pages show costs."""
    ready_tables()
    price = {"input": fresh, "output": output} | ({} if cached is None else {"cached": cached})
    set_price(get_project(project), model, price)
    click.echo(printable(f"{model}: {fresh:g} in, {output:g} out a million tokens"))
