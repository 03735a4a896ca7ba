"""Token efficiency and failure anatomy of one to eight experiments."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from harnesslab.actions.rollouts.trace_statistics import prepare
from harnesslab.core.efficiency.factors import Answers, Cases, TokenKind
from harnesslab.core.errors import NotFound
from harnesslab.figures.efficiency import levers_figure, spend_figure, split_figure, tools_figure
from harnesslab.figures.sheets import Sheet, sheet_of
from harnesslab.figures.survival import solves_figure, survival_figure, times_figure
from harnesslab.pages.render import render
from harnesslab.queries.efficiency.page import Efficiency, uncounted
from harnesslab.queries.efficiency.page import efficiency as numbers
from harnesslab.queries.efficiency.words import PLAIN
from harnesslab.queries.experiments.sums import EfficiencyQuery

FEW = 2
"""With more experiments than these, legends name them by letter."""
KINDS = ((TokenKind.OUTPUT, "output tokens"), (TokenKind.INPUT, "input tokens"), (TokenKind.TOTAL, "both"))
ANSWERS = ((Answers.BILLED, "billed answers"), (Answers.USED, "served answers too"))
CASES = ((Cases.ALL, "all cases"), (Cases.COMMON, "measured in all"), (Cases.SOLVED, "solved in all"))


def efficiency(request: HttpRequest) -> HttpResponse:
    """The page; with `format=csv&table=NAME` one of its tables."""
    asked = EfficiencyQuery.of(request.GET.getlist("e"), request.GET)
    found = numbers(asked, prepare(uncounted(asked)))
    if request.GET.get("format") == "csv":
        return csv_of(found.sheets, request.GET.get("table", ""), "efficiency")
    query = request.GET.copy()
    query.pop("table", None)
    sheets = {sheet.name: sheet for sheet in found.sheets}
    context = {
        "found": found,
        "sheets": sheets,
        "figures": _figures(found),
        "query": query.urlencode(),
        "used": _with(request, "answers", Answers.USED),
        "choices": [
            _choice(request, "kind", "Tokens", KINDS, found.kind),
            _choice(request, "answers", "Answers", ANSWERS, found.answers),
            *([_choice(request, "cases", "Cases", CASES, found.which)] if len(found.sides) > 1 else []),
        ],
    }
    return render(request, "efficiency/efficiency.html", context)


def csv_of(sheets: list[Sheet], name: str, page: str) -> HttpResponse:
    """Return a table as a CSV download; raises `NotFound` for a name that no table has."""
    sheet = sheet_of(sheets, name)
    if sheet is None:
        raise NotFound(f"no such table: {name[:40]!r}", hint=f"one of {', '.join(item.name for item in sheets)}")
    body = "\ufeff" + sheet.csv()  # the mark by which spreadsheets know UTF-8
    answer = HttpResponse(body.encode("utf-8", "backslashreplace"), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{page}-{sheet.name}.csv"'
    return answer


def _choice(
    request: HttpRequest, name: str, title: str, options: tuple[tuple[str, str], ...], chosen: str
) -> dict[str, Any]:
    """Return a choice with the address of each option; the first one is the default and left out."""
    links = []
    for place, (value, label) in enumerate(options):
        links.append((label, _with(request, name, value if place else ""), value == chosen))
    return {"title": title, "options": links}


def _with(request: HttpRequest, name: str, value: str) -> str:
    """Return the page's query with one value changed; an empty one is left out."""
    query = request.GET.copy()
    query.pop(name, None)
    if value:
        query[name] = value
    return query.urlencode()


def _figures(found: Efficiency) -> dict[str, dict[str, Any]]:
    """Draw the figures that have data."""
    sides = found.sides
    names = {side.letter: side.title if len(sides) <= FEW else side.letter for side in sides}
    used = [(names[side.letter], side.tools) for side in sides]
    figures = {
        "totals": split_figure([(side.letter, side.split) for side in sides]),
        "spend": spend_figure([(side.letter, side.spending) for side in sides], PLAIN[found.kind]),
        "survival": survival_figure([(names[side.letter], side.survival) for side in sides if side.survival.rollouts]),
        "solves": solves_figure([(names[side.letter], side.solves) for side in sides]),
        "model-time": times_figure([(side.letter, item) for side in sides for item in side.times]),
    }
    if found.levers:
        figures["levers"] = levers_figure(
            [(names[side.letter], moved) for side, moved in zip(sides[1:], found.levers, strict=True)]
        )
    if any(use.asked for side in sides for use in side.tools.values()):
        figures["tools"] = tools_figure(used, seconds=False)
    if any(use.timed for side in sides for use in side.tools.values()):
        figures["tool-seconds"] = tools_figure(used, seconds=True)
    return {name: figure for name, figure in figures.items() if figure["data"]}
