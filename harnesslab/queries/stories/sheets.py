"""The numbers of a story as tables."""

from __future__ import annotations

from harnesslab.figures.sheets import Column, Entry, Sheet
from harnesslab.queries.rollouts.filters import RolloutFilter
from harnesslab.queries.stories.story import METRIC, Story
from harnesslab.queries.stories.words import MARKS


def story_sheets(story: Story) -> list[Sheet]:
    """Return all tables."""
    return [_series(story), _lineage(story), _cases(story)]


def _series(found: Story) -> Sheet:
    at = {step.place: step for step in found.steps}
    rows, baseline = [], None
    for place, row in enumerate(found.rows):
        baseline = at[place].value if place in at else baseline
        turn = at[place].turn.value if place in at and at[place].breaks else ""
        rows.append(
            (
                Entry(place + 1),
                Entry(row.name, query=f"@{row.id}"),
                Entry(MARKS[row.mark]),
                Entry(row.solved, of=row.total if row.solved is not None else None),
                Entry(row.common, of=len(found.common) if row.common is not None else None),
                *([Entry(row.value)] if found.by.startswith(METRIC) else []),
                Entry(baseline),
                Entry(turn),
            )
        )
    metric = [Column(found.by.removeprefix(METRIC), "x")] if found.by.startswith(METRIC) else []
    columns = (
        Column("#"),
        Column("experiment", numeric=False),
        Column("what it is", numeric=False),
        Column("solved"),
        Column("on the common panel"),
        *metric,
        Column("baseline then", "x"),
        Column("break", numeric=False),
    )
    return Sheet(
        "story", _title(found), columns, tuple(rows), _note(found), "No experiment was measured.", rows_on_page=400
    )


def _title(found: Story) -> str:
    if found.by.startswith(METRIC):
        return f"{found.by.removeprefix(METRIC)} by experiment"
    return f"Solved cases, on the common panel of {len(found.common)}" if found.by == "common" else "Solved cases"


def _note(found: Story) -> str:
    if found.by == "solved" and len({row.total for row in found.rows}) > 1:
        breaks = any(step.breaks for step in found.steps)
        more = " A break in the line is a baseline measured again or reset." if breaks else ""
        return f"Not all were measured over the same cases.{more}"
    gone = sum(row.value is None for row in found.rows) if found.by.startswith(METRIC) else 0
    return f"{gone} of {len(found.rows)} have no value and are not drawn." if gone else ""


def _lineage(found: Story) -> Sheet:
    names = ("epoch", "commit", "mechanism", "solved", "change", "decision", "reason", "attributable flips")
    rows = tuple(
        (
            Entry(None if row.epoch is None else row.epoch + 1),
            Entry(row.commit),
            Entry(row.mechanism),
            Entry(row.solved, of=row.total if row.solved is not None else None),
            Entry(row.delta),
            Entry(MARKS[row.mark]),
            Entry(row.why),
            Entry(row.explained, of=row.flips),
        )
        for row in found.candidates
    )
    return Sheet("lineage", "Candidates", tuple(Column(name) for name in names), rows)


def _cases(found: Story) -> Sheet:
    parts = found.recurrence
    rows = tuple(
        (Entry(each.case, query=_of_case(found.project, each.case)), Entry(name), Entry(each.k, of=each.n))
        for name, cases in (("never", parts.never), ("sometimes", parts.sometimes), ("always", parts.always))
        for each in cases
    )
    title = (
        f"{len(parts.never)} never, {len(parts.sometimes)} sometimes, {len(parts.always)} always solved"
        if rows
        else "Cases"
    )
    note = "In how many of the project's experiments a case was solved at every counted trial."
    columns = (Column("case", numeric=False), Column("solved", numeric=False), Column("in experiments"))
    return Sheet("cases", title, columns, rows, note, "No rollout of a case is here.", rows_on_page=60)


def _of_case(project: str, case: str) -> str:
    return RolloutFilter(project=project, case=case).url()
