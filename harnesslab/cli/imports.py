"""`harnesslab import`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from harnesslab.actions.imports import ImportResult, import_unit
from harnesslab.formats.inputs import InputFile, Unit


@click.command("import")
@click.argument("paths", nargs=-1, required=True)
@click.option("--project", default="", help="Project to import into, instead of the one the format names.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file.")
def import_files(paths: tuple[str, ...], project: str, *, as_json: bool) -> None:
    """Import trace files, folders and globs."""
    units = [Unit(Path(p).name, {Path(p).name: InputFile.of_path(Path(p))}) for p in paths]
    results = []
    with click.progressbar(units, label="importing", file=None, hidden=as_json) as bar:
        for unit in bar:
            result = import_unit(unit, project=project)
            results.append(result)
            if as_json:
                click.echo(json.dumps(asdict(result)))
    if not as_json:
        _table(results)


def _table(results: list[ImportResult]) -> None:
    for result in results:
        count = f"{len(result.rollouts)} rollouts" if len(result.rollouts) != 1 else "1 rollout"
        click.echo(f"{result.status:10} {result.format:18} {count:>13}  {result.file}")
        if result.reason and result.status != "duplicate":
            click.echo(f"{'':10} {result.reason}")
    totals = Counter(result.status for result in results)
    click.echo(", ".join(f"{count} {status}" for status, count in sorted(totals.items())))
