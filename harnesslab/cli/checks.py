"""`harnesslab check`: read files without storing anything, and say what an import would make of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from harnesslab.cli.terminal import printable
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.running.rollout import offered
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.registry import experiments, recognise, recordings

BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass(frozen=True, slots=True)
class Checked:
    """What one unit holds, or why it can't be read."""

    name: str
    format: str
    experiments: int
    rollouts: int
    events: int
    grades: str
    left_out: str
    refused: str


@click.command("check")
@click.argument("paths", nargs=-1, required=True)
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Put the table into this file.")
def check(paths: tuple[str, ...], markdown: Path | None) -> None:
    """Read trace files and say what importing them would do; nothing is stored."""
    rows = [row for unit in discover(paths) for row in _checked(unit)]
    table = _table(rows)
    if markdown is None:
        click.echo(table)
        return
    text = markdown.read_text()
    if BEGIN not in text or END not in text:
        raise InvalidValue(f"no {BEGIN} … {END} to put the table between", where=str(markdown))
    changed = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL)
    markdown.write_text(changed)
    click.echo(f"{markdown}: {len(rows)} rows")


def _checked(unit: Unit) -> Iterator[Checked]:
    try:
        units = list(expand(unit))
    except HarnessLabError as error:
        yield Checked(unit.name, "", 0, 0, 0, "", "", error.what)
        return
    for inner in units:
        yield _one(inner)


def _one(unit: Unit) -> Checked:
    report, grades, events, stated = Report(), Counter[str](), 0, 0
    try:
        found = recognise(unit)
        stated = sum(1 for _ in experiments(found, report))
        for recording in recordings(found, report):
            grades[offered(recording.replayability, recording.missing, bound=False)[0].value] += 1
            events += len(recording.trace.events)
    except HarnessLabError as error:
        if stated:
            return Checked(unit.name, found.importer.NAME, stated, 0, 0, "", f"rollouts: {error.what}", "")
        return Checked(unit.name, "", 0, 0, 0, "", "", error.what)
    noted = [*report.skipped, *report.shortfalls, *report.remarks]
    left_out = f"{noted[0].where}: {noted[0].why}" if noted else ""
    more = f", and {len(noted) - 1} more" if len(noted) > 1 else ""
    if not grades and not stated:
        return Checked(unit.name, found.importer.NAME, 0, 0, 0, "", "", left_out or "it holds no rollout")
    shown = ", ".join(f"{count} {grade}" for grade, count in sorted(grades.items()))
    return Checked(unit.name, found.importer.NAME, stated, grades.total(), events, shown, left_out + more, "")


def _table(rows: list[Checked]) -> str:
    """Return a Markdown table: what is read first, by format; then what is refused, by reason."""
    read = sorted((row for row in rows if not row.refused), key=lambda row: (row.format, row.name))
    refused = sorted((row for row in rows if row.refused), key=lambda row: (row.refused, row.name))
    lines = [
        "| file | format | experiments | rollouts | events | can be rerun | left out |",
        "|---|---|---:|---:|---:|---|---|",
    ]
    lines += [
        f"| {_cell(row.name)} | {row.format} | {row.experiments or ''} | {row.rollouts} "
        f"| {row.events:,} | {row.grades} | {_cell(row.left_out)} |"
        for row in read
    ]
    lines += ["", "| refused | why |", "|---|---|"]
    lines += [f"| {_cell(row.name)} | {_cell(row.refused)} |" for row in refused]
    total = f"{sum(row.rollouts for row in read)} rollouts from {len(read)} files or folders; {len(refused)} refused."
    return "\n".join([*lines, "", total])


def _cell(text: str) -> str:
    clean = printable(text.replace("\n", " ")).replace("|", "\\|")
    return clean if len(clean) <= 160 else clean[:159] + "…"
