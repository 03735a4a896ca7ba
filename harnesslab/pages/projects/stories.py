"""The story of a project: its candidates in order, and the one that is looked at."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from harnesslab.core.natural import natural
from harnesslab.core.training.story import Mark
from harnesslab.figures.sheets import sheet_of
from harnesslab.figures.story import Spot, story_figure
from harnesslab.pages.access import asks_for_part
from harnesslab.pages.experiments.efficiency import csv_of
from harnesslab.pages.markdown import rendered
from harnesslab.pages.render import render
from harnesslab.queries.mirrors import mirror_of
from harnesslab.queries.stories import words
from harnesslab.queries.stories.candidate import look
from harnesslab.queries.stories.sheets import story_sheets
from harnesslab.queries.stories.story import COMMON, METRIC, SOLVED, Story, StoryRow
from harnesslab.queries.stories.story import story as told


def project(request: HttpRequest, project_id: int) -> HttpResponse:
    """The page; htmx asks for the selected candidate alone; with `format=csv&table=NAME` one of its tables."""
    found = told(project_id, request.GET.get("by", ""))
    sheets = story_sheets(found)
    if request.GET.get("format") == "csv":
        return csv_of(sheets, request.GET.get("table", ""), "story")
    looked = look(found, natural(request.GET.get("c", "")))
    context: dict[str, Any] = {
        "story": found,
        "looked": looked,
        "memo": rendered(looked.memo) if looked is not None else "",
        "word": words.MARKS[looked.row.mark] if looked is not None else "",
    }
    if asks_for_part(request):
        return render(request, "stories/_selected.html", context)
    context |= {
        "headline": words.headline(found),
        "excluded": words.excluded(found),
        "rests": words.rests(found),
        "unchanged": words.unchanged(found),
        "mirror": mirror_of(found.id),
        "figure": _figure(found),
        "sheet": sheet_of(sheets, "story"),
        "cases": sheet_of(sheets, "cases"),
        "choices": _choices(found, looked.row.id if looked is not None else None),
        "metric": found.by.removeprefix(METRIC) if found.by.startswith(METRIC) else "",
        "rows": [(row, words.MARKS[row.mark]) for row in reversed(found.candidates)],
        "selected": looked.row.id if looked is not None else None,
    }
    return render(request, "stories/story.html", context)


def _choices(found: Story, selected: int | None) -> list[tuple[str, str, bool]]:
    """Return what the figure can tell: label, value, whether it does."""
    names = {SOLVED: "solved of its own panel", COMMON: f"solved of the {len(found.common)} common cases"}
    return [(names.get(name, name.removeprefix(METRIC)), name, name == found.by) for name in found.choices]


def _figure(found: Story) -> dict[str, Any] | None:
    unit = {SOLVED: "cases solved", COMMON: f"cases solved of the common {len(found.common)}"}
    spots = [Spot(row.id, row.mark, row.value, _lines(found, row), _label(row)) for row in found.rows]
    figure = story_figure(spots, found.steps, unit.get(found.by, found.by.removeprefix(METRIC)))
    return figure if figure["data"] else None


def _lines(found: Story, row: StoryRow) -> list[str]:
    iteration = f", iteration {row.epoch + 1}" if row.epoch is not None and row.training else ""
    lines = [f"{words.MARKS[row.mark]}{iteration}: {row.commit[:8] or row.name}", row.mechanism]
    if row.solved is not None:
        lines.append(f"{row.solved}/{row.total} solved")
    if row.common is not None:
        lines.append(f"{row.common}/{len(found.common)} on the common panel")
    if found.by.startswith(METRIC):
        lines.append(f"{found.by.removeprefix(METRIC)} {row.value:,.6g}" if row.value is not None else "")
    return [line for line in (*lines, row.why) if line]


def _label(row: StoryRow) -> str:
    """Say in short what a promotion gained."""
    if row.mark is not Mark.PROMOTED:
        return ""
    return f"+{row.delta} {', '.join(row.gained)}" if row.delta else row.why
