"""`harnesslab import`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import click

from harnesslab.actions.imports.importing import ImportResult, import_unit
from harnesslab.actions.imports.refusals import together
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading.inputs import Report, Unit

BALANCED = 12
"""Most rollouts of a file whose balance is printed; JSON has them all."""


@click.command("import")
@click.argument("paths", nargs=-1, required=True)
@click.option("--project", default="", help="Project to import into, instead of the one the format names.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file.")
@click.pass_context
def import_files(context: click.Context, paths: tuple[str, ...], project: str, *, as_json: bool) -> None:
    """Import trace files, folders and globs; a refused file never stops the rest."""
    ready_tables()
    report = Report()
    units = list(discover(paths, report))
    results: list[ImportResult] = []
    with click.progressbar(units, label="importing", hidden=as_json, item_show_func=_name) as bar:
        for result in together(result for unit in bar for result in _imported(unit, project)):
            results.append(result)
            if as_json:
                click.echo(json.dumps(asdict(result)))
    if not as_json:
        _print_table(results, report)
    if all(result.status == "refused" for result in results):
        context.exit(1)


def _imported(unit: Unit, project: str) -> Iterator[ImportResult]:
    try:
        for inner in expand(unit):
            yield import_unit(inner, project=project)
    except HarnessLabError as error:
        yield ImportResult(unit.name, "refused", reason=error.sentence)


def _name(unit: Unit | None) -> str:
    return printable(unit.name[:40]) if unit is not None else ""


def _held(result: ImportResult) -> str:
    """Say what a unit holds: rollouts, or where it has none, the experiments that it states."""
    if result.experiments and not result.rollouts:
        return f"{result.experiments} experiments"
    return f"{len(result.rollouts)} rollouts"


def _balance(result: ImportResult) -> list[str]:
    """Say how the source's totals stand against what is stored, by each rollout of which less is stored."""
    lines: dict[JSON, list[Mapping[str, JSON]]] = {}
    for line in result.balance:
        lines.setdefault(line["rollout"], []).append(line)
    short = [rollout for rollout, found in lines.items() if any(line["short"] for line in found)]
    named = short[:BALANCED]
    said = [
        f"balance of rollout {rollout}: {'; '.join(str(line['said']) for line in lines[rollout])}" for rollout in named
    ]
    even = len(lines) - len(short)
    more = [f"the source's totals agree with what is stored of {even} of {len(lines)}"] if even else []
    more += [f"{len(short) - len(named)} more are short: see --json"] if len(short) > len(named) else []
    return [*said, *more]


def _print_table(results: list[ImportResult], report: Report) -> None:
    for result in results:
        line = f"{result.status:10} {result.format:18} {_held(result):>16}  {result.file}"
        click.echo(printable(line))
        if result.reason and (result.status != "duplicate" or "to move it" in result.reason):
            click.echo(printable(f"{'':10} {result.reason}"))
        for said in _balance(result):
            click.echo(printable(f"{'':10} {said}"))
    for item in report.skipped:
        click.echo(printable(f"{'left out':10} {item.where}: {item.why}"))
    if not results:
        click.echo("there is no file to import")
        return
    totals = Counter(result.status for result in results)
    rollouts = sum(len(result.rollouts) for result in results)
    click.echo(f"{rollouts} rollouts; " + ", ".join(f"{count} {status}" for status, count in sorted(totals.items())))
