"""The evaluation grid of a project."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode

from harnesslab.figures.sheets import Column, Entry, Sheet
from harnesslab.pages.experiments.efficiency import csv_of
from harnesslab.pages.render import render
from harnesslab.queries.experiments.grids import Grid
from harnesslab.queries.experiments.grids import grid as numbers
from harnesslab.queries.projects.home import project_asked


def grid(request: HttpRequest) -> HttpResponse:
    """The page; `r` chooses revisions, `subtract=1` leaves out the cases that candidates were judged on."""
    if not request.GET.get("project"):
        return redirect("projects")
    project, revisions = project_asked(request.GET["project"]), request.GET.getlist("r")
    subtract = request.GET.get("subtract") == "1"
    found = numbers(project, revisions, subtract=subtract)
    if request.GET.get("format") == "csv":
        return csv_of([_sheet(found)], request.GET.get("table", "grid"), "evaluation")
    context = {
        "grid": found,
        "choices": [(each, _with(found, each.revision)) for each in found.revisions],
        "toggled": _query(found, [each.revision for each in found.chosen], subtract=not subtract),
        "query": _query(found, [each.revision for each in found.chosen], subtract=subtract),
    }
    return render(request, "experiments/grid.html", context)


def _query(found: Grid, revisions: list[str], *, subtract: bool) -> str:
    pairs = [("project", str(found.project_id)), *(("r", each) for each in revisions)]
    return urlencode([*pairs, *([("subtract", "1")] if subtract else [])])


def _with(found: Grid, revision: str) -> str:
    """Return the query with a revision put in, or taken out."""
    chosen = [each.revision for each in found.chosen]
    changed = [each for each in chosen if each != revision] if revision in chosen else [*chosen, revision]
    return _query(found, changed, subtract=found.subtracted)


def _sheet(found: Grid) -> Sheet:
    names = ("model", "revision", "role", "experiment", "solved", "low", "high", "cases", "refused", "not run")
    rows = tuple(
        (
            Entry(row.model),
            Entry(each.revision),
            Entry(each.role),
            Entry(cell.name),
            Entry(cell.rate.trials.k, of=cell.rate.trials.n),
            Entry(cell.rate.trials.low),
            Entry(cell.rate.trials.high),
            Entry(cell.rate.cases),
            Entry(cell.rate.refused),
            Entry(cell.rate.not_run),
        )
        for row in found.rows
        for each, cell in zip(found.chosen, row.cells, strict=True)
        if cell is not None
    )
    return Sheet("grid", "Evaluation grid", tuple(Column(name) for name in names), rows)
