"""`harnesslab panel-add`, `panels` and `panel-export`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harnesslab.actions.projects.panels import store_panel
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import Conflict, HarnessLabError, InvalidValue
from harnesslab.formats.panels.reading import PanelFolder, read_panel
from harnesslab.formats.panels.writing import panel_files, unpacked
from harnesslab.queries.panels import PanelRow, definition_of, panel_rows, revision_named


class CasesRefused(HarnessLabError):
    """A folder holds tasks that can't be run here."""


@click.command("panel-add")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--project", required=True, help="The project it belongs to; made where it isn't there.")
@click.option("--name", default="", help="Another name than the folder says.")
@click.option("--leave-out", is_flag=True, help="Keep the panel without the tasks that can't be run here.")
def panel_add(folder: Path, project: str, name: str, *, leave_out: bool) -> None:
    """Keep a folder of cases, or of Harbor tasks, as a revision of a panel; the same content is the same revision."""
    found = read_panel(folder)
    for case, why in found.refused.items():
        click.echo(printable(f"{case} can't be run here: {why}"), err=True)
    for case in found.unlisted:
        click.echo(printable(f"{case} is left out, since `cases` doesn't name it"))
    if found.refused and not leave_out:
        hint = "change them, or keep the others with --leave-out"
        raise CasesRefused(f"{len(found.refused)} cases can't be run here, and nothing was kept", hint=hint)
    ready_tables()
    revision = store_panel(project, name or found.name, found.definition)
    cases = f"{revision.cases} case{'s' * (revision.cases != 1)}"
    click.echo(printable(f"{revision.panel.name}: {cases}, revision {revision.digest[:12]}"))
    for case in _unjudged(found):
        click.echo(printable(f"note: {case} has no test, so that nothing will say whether it is solved"), err=True)


@click.command("panels")
@click.option("--project", default="", help="Those of one project.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def panels(project: str, *, as_json: bool) -> None:
    """List the panels with their revisions, the newest first."""
    ready_tables()
    rows = panel_rows(project)
    if as_json:
        click.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        return
    for row in rows:
        click.echo(printable(_line(row)))
    if not rows:
        click.echo("there is no runnable panel; harnesslab panel-add FOLDER adds one")


@click.command("panel-export")
@click.argument("panel")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--project", required=True)
def panel_export(panel: str, folder: Path, project: str) -> None:
    """Write a panel, or PANEL@DIGEST, into a new folder; adding that folder again gives the same revision."""
    ready_tables()
    name, _, digest = panel.rpartition("@")
    revision = revision_named(project, name or panel, digest if name else "")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Conflict("there is something already", where=str(folder), hint="name a new folder")
    files = list(unpacked(panel_files(revision.panel.name, definition_of(revision))))
    try:
        for path, data in files:
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    except OSError as error:
        raise InvalidValue(f"can't be written: {error.strerror}", where=str(folder)) from None
    click.echo(printable(f"{folder}: {revision.cases} cases, revision {revision.digest[:12]}"))


def _line(row: PanelRow) -> str:
    used = f", measured {row.experiments} times" if row.experiments else ""
    newest = "" if row.newest else " (older)"
    return f"{row.project}: {row.name}@{row.digest[:12]}{newest}: {row.cases} cases{used}"


def _unjudged(found: PanelFolder) -> list[str]:
    return [case.name for case in found.cases if not case.verifier.tests]
