"""One experiment of a story, looked at closely: what changed, why it was so decided, and the memo that followed it."""

from __future__ import annotations

import re

from harnesslab.core.comparing.line_changes import ChangedLine, diff_lines
from harnesslab.core.deciding.decision_reasons import reasons_of, sentences
from harnesslab.core.efficiency.cycle import Cycle, cycle
from harnesslab.core.errors import HarnessLabError
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.stories.story import Story, StoryRow
from harnesslab.queries.trainings.training import memo_text, repository_of
from harnesslab.store.models import Experiment, Iteration, Memo
from harnesslab.store.text import as_object, thawed

LINES = 300
"""Most lines of a diff that a page shows."""
_COMMIT = re.compile("[0-9a-f]{7,64}")


class Change(ReadModel):
    """What an experiment's revision changed."""

    lines: list[ChangedLine]
    more: int
    """Lines left out."""
    why_not: str
    """Why there is no difference to show; empty where there is."""


class Looked(ReadModel):
    """The selected experiment of a story."""

    row: StoryRow
    sentences: list[str]
    change: Change
    memo: str
    """Markdown of the memo that followed it, or empty."""
    memo_id: int | None
    cycle: Cycle
    proposer: dict[str, str]


def look(story: Story, chosen: int | None) -> Looked | None:
    """Return the chosen experiment, else the last promoted one, else the last; None in an empty story."""
    row = next((each for each in story.rows if each.id == chosen), None) or _default(story)
    if row is None:
        return None
    experiment = Experiment.objects.select_related("project").get(pk=row.id)
    iteration = Iteration.objects.filter(candidate=experiment).order_by("-pk").first()
    memos = Memo.objects.filter(project_id=story.id)
    memo = (
        (memos.filter(iteration=iteration) if iteration is not None else memos.filter(after=experiment))
        .order_by("-pk")
        .first()
    )
    return Looked(
        row=row,
        sentences=sentences(reasons_of(as_object(thawed(experiment.decision)))),
        change=change_of(experiment),
        memo=memo_text(memo) if memo is not None else "",
        memo_id=memo.pk if memo is not None else None,
        cycle=cycle_of(experiment),
        proposer=proposer_of(iteration),
    )


def _default(found: Story) -> StoryRow | None:
    promoted = [row for row in found.rows if row.mark == "promoted"]
    ended = [row for row in found.candidates if row.mark != "running"]
    rows = promoted or ended or found.rows
    return rows[-1] if rows else None


def change_of(experiment: Experiment) -> Change:
    """Return what an experiment's revision changed of its parent, from the repository that its project is bound to."""
    base, commit = experiment.parent_revision, experiment.revision
    if not base:
        return Change(lines=[], more=0, why_not="Its parent is not stated, so that there is no difference to show.")
    if base == commit:
        return Change(lines=[], more=0, why_not="Nothing was changed.")
    if not experiment.project.binding:
        why = "The diff is not here: an imported project brings no repository, only the commits' names."
        return Change(lines=[], more=0, why_not=why)
    if not (_COMMIT.fullmatch(base) and _COMMIT.fullmatch(commit)):
        return Change(lines=[], more=0, why_not="Its revision is no commit.")
    try:
        lines = diff_lines(repository_of(experiment.project).diff(base, commit))
    except HarnessLabError as error:
        return Change(lines=[], more=0, why_not=f"The diff can't be read: {error.sentence}.")
    return Change(lines=lines[:LINES], more=max(0, len(lines) - LINES), why_not="" if lines else "No file differs.")


def cycle_of(experiment: Experiment) -> Cycle:
    """Return where the time of an experiment's counted rollouts went."""
    begun, ended = experiment.started_at, experiment.ended_at
    wall = (ended - begun).total_seconds() if begun is not None and ended is not None else None
    return cycle(cells_of([experiment.pk], anatomies=True)[experiment.pk], wall)


def proposer_of(iteration: Iteration | None) -> dict[str, str]:
    """Return what a proposer stated of itself, as text by name."""
    stated = as_object(thawed(iteration.proposer)) if iteration is not None else {}
    shown = ("patch", "model", "effort", "cost", "input_tokens", "output_tokens", "seconds")
    return {name: str(stated[name]) for name in shown if isinstance(stated.get(name), str | int | float)}
