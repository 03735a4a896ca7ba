"""Two to eight experiments side by side."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.core.natural import natural
from harnesslab.figures.sheets import Column, Entry, Sheet
from harnesslab.pages.experiments.efficiency import csv_of
from harnesslab.pages.render import render
from harnesslab.queries.experiments.comparison import Against, ExperimentComparison, experiment_ids
from harnesslab.queries.experiments.comparison import compare_experiments as numbers

ROWS = 200
"""Cases in a window."""


def contrast(request: HttpRequest) -> HttpResponse:
    """The page; `all=1` shows cases that don't differ too, `anyway=1` tests what is no comparison."""
    found = numbers(experiment_ids(request.GET.getlist("e")))
    if request.GET.get("format") == "csv":
        return csv_of([_sheet(found)], request.GET.get("table", "cases"), "compare")
    every, anyway, start = (request.GET.get(name, "") for name in ("all", "anyway", "from"))
    cases = [case for case in found.cases if case.differs or every]
    first = natural(start) or 0
    ids = "&".join(f"e={each.id}" for each in found.contenders)
    context = {
        "found": found,
        "pairs": [(each, found.contenders[place + 1]) for place, each in enumerate(found.against)],
        "sentence": _sentence(found, anyway=bool(anyway)),
        "cases": cases[first : first + ROWS],
        "shown": len(cases),
        "windows": range(0, len(cases), ROWS),
        "start": first,
        "ids": ids,
        "several": any(each.rate.any_of_k is not None for each in found.contenders),
        "every": every,
        "anyway": anyway,
    }
    return render(request, "experiments/compare.html", context)


def _sentence(found: ExperimentComparison, *, anyway: bool) -> str:
    """Say of each experiment what it gains and loses against the first."""
    parts = []
    for each in found.against:
        test = each.test
        counts = f"{test.gained} that A doesn't and loses {test.lost}"
        said = f"{each.letter} solves {counts}, of {test.n} cases that both measured"
        if not test.n:
            said = f"{each.letter} has no counted case in common with A"
        elif not each.refused or anyway:
            said += f" ({test.method}, p = {test.p:.3g})"
        parts.append(said + _warned(each))
    return f"{'; '.join(parts)}."


def _warned(each: Against) -> str:
    return f"; it is no comparison: {', '.join(each.refused)} differ" if each.refused else ""


def _sheet(found: ExperimentComparison) -> Sheet:
    columns = (Column("case"), *(Column(f"{each.letter} {each.name}") for each in found.contenders), Column("differs"))
    rows = tuple(
        (
            Entry(case.case),
            *(Entry(", ".join(cell.outcome for cell in cells)) for cells in case.cells),
            Entry("yes" if case.differs else "no"),
        )
        for case in found.cases
    )
    return Sheet("cases", "Cases", columns, rows)
