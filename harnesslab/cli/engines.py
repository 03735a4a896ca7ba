"""`harnesslab engines` and `harnesslab engine-add`."""

from __future__ import annotations

import json

import click

from harnesslab.actions.engines import registration as actions
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import InvalidValue
from harnesslab.queries.engines import engines as registered


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
@click.option("--kind", type=click.Choice(actions.KINDS), required=True)
@click.option("--address", default="", help="http://host:port; none for an embedded one.")
@click.option("--model", default="", help="The model as the server names it.")
@click.option("--options", default="{}", help="Options of the client, as a JSON object.")
@click.option("--api-key-env", default="", help="Variable that holds the API key; the key itself is never stored.")
@click.option("--ceiling", type=int, default=1, show_default=True, help="Most requests at a time, over all workers.")
def engine_add(name: str, kind: str, address: str, model: str, options: str, api_key_env: str, ceiling: int) -> None:
    """Register an engine and queue its first probe."""
    ready_tables()
    try:
        given = json.loads(options)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not JSON: {error}", where="options") from None
    if not isinstance(given, dict):
        raise InvalidValue("not an object", where="options")
    named = {**given, "api_key_env": api_key_env} if api_key_env else given
    made = actions.register(name, kind, address=address, model=model, options=named, ceiling=ceiling)
    job = actions.ask_probe(made.pk)
    click.echo(f"{printable(made.name)} is registered; job {job.pk} probes it")
