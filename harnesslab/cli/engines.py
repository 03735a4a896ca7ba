"""`harnesslab engines` and `harnesslab engine-add`."""

from __future__ import annotations

import json
from typing import Any

import click

from harnesslab.actions.engines import registration as actions
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.options import options_of, read
from harnesslab.cli.terminal import printable
from harnesslab.queries.engines import engines as registered
from harnesslab.requests.engines import EngineRequest


@click.command("engines")
@click.option("--json", "as_json", is_flag=True, help="Print the engines as JSON.")
def engines(*, as_json: bool) -> None:
    """List the registered engines."""
    ready_tables()
    rows = registered()
    if as_json:
        click.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        return
    for row in rows:
        health = {True: "answers", False: "away", None: "not asked yet"}[row.up]
        seed = {True: "seed honoured", False: "seed not honoured", None: "seed not probed"}[row.seed_honoured]
        place = row.address or "in the lab"
        click.echo(
            printable(f"{row.name}: {row.kind}, {row.model}, {place}; {health}, {seed}, {row.ceiling} at a time")
        )
    if not rows:
        click.echo("no engine is registered; harnesslab engine-add registers one")


@click.command("engine-add")
@click.argument("name")
@options_of(EngineRequest, name=None)
def engine_add(**stated: Any) -> None:
    """Register an engine and queue its first probe."""
    ready_tables()
    made = actions.register(read(EngineRequest, stated))
    job = actions.ask_probe(made.pk)
    click.echo(f"{printable(made.name)} is registered; job {job.pk} probes it")
