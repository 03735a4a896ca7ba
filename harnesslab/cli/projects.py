"""`harnesslab project-bind` and `project-price`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from harnesslab.actions.projects.bindings import bind, set_price
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.experiments import Binding
from harnesslab.core.running.recipe import HarnessKind, HarnessSource
from harnesslab.queries.projects.bindings import get_project


@click.command("project-bind")
@click.argument("project")
@click.option("--repository", required=True, help="A git repository: a folder on this machine, or an address.")
@click.option("--branch", default="main", show_default=True, help="The branch that promotions fast-forward.")
@click.option("--kind", type=click.Choice([kind.value for kind in HarnessKind]), default=HarnessKind.LOOP.value)
@click.option("--entry", default="harness", show_default=True, help="Of a loop harness: the module to run.")
@click.option("--command", default="", help="Of a command harness: the program and its arguments, in one string.")
@click.option(
    "--editable",
    "--surface",
    "editable",
    multiple=True,
    metavar="PATTERN",
    help="Files that a candidate may change; may be repeated. *.py",
)
def project_bind(
    project: str, repository: str, branch: str, kind: str, entry: str, command: str, editable: Sequence[str]
) -> None:
    """Say which harness a project measures; it is made where it isn't there."""
    ready_tables()
    place = Path(repository)
    there = "://" not in repository and place.is_dir()
    source = HarnessSource(
        name=place.name.removesuffix(".git") or project,
        repository=str(place.resolve()) if there else repository,
        kind=HarnessKind(kind),
        entry=entry,
        command=tuple(words(command)),
    )
    if source.kind is HarnessKind.COMMAND and not source.command:
        raise InvalidValue("a command harness needs a command", where="--command")
    made = bind(project, Binding(source, branch, tuple(editable) or ("*.py",)))
    click.echo(printable(f"{made.name} measures {source.repository}, branch {branch}"))


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


def words(command: str) -> list[str]:
    """Split a command as a shell does; raises `InvalidValue`."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidValue(f"{error}: {command[:80]!r}", where="command") from None
