"""The learning memo as read models: versions, differences, staleness, and what each iteration's proposal cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from harnesslab.core.comparing.line_changes import ChangedLine, changed_lines
from harnesslab.core.errors import NotFound
from harnesslab.queries.projects.bindings import get_project
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.stories.candidate import proposer_of
from harnesslab.queries.trainings.training import memo_text
from harnesslab.store.models import Experiment, Iteration, Memo, Project


class MemoVersion(ReadModel):
    """One version of a memo."""

    id: int
    number: int
    """Zero-based, in the order in which they were kept."""
    epoch: int | None
    """Zero-based iteration that it followed; None for one that was imported."""
    training: int | None
    after: str
    """The newest experiment that it knew of; empty where that isn't known."""
    after_id: int | None
    at: datetime


class Proposed(ReadModel):
    """One iteration's proposal."""

    training: int
    epoch: int
    """Zero-based."""
    state: str
    mechanism: str
    candidate: int | None
    stated: dict[str, str]
    """What the proposer stated of itself."""
    wall: float | None
    """Seconds from the iteration's begin to its end."""


class MemoView(ReadModel):
    """A project's memo at one version."""

    project_id: int
    project: str
    versions: list[MemoVersion]
    """Newest first."""
    version: MemoVersion | None
    before: MemoVersion | None
    text: str
    changes: list[ChangedLine]
    newer: int
    """Experiments that began after the newest one that the newest version knew of."""
    proposals: list[Proposed]


def memo_view(project_id: int, chosen: int | None = None, before: int | None = None) -> MemoView:
    """Return a version and what it changed of another, by default of the one before; raises `NotFound`."""
    project = get_project(project_id)
    rows = list(Memo.objects.filter(project=project).select_related("iteration", "after").defer("body").order_by("pk"))
    versions = [_version(number, row) for number, row in enumerate(rows)]
    version = _chosen(versions, chosen) if chosen is not None or versions else None
    older = [each for each in versions if version is not None and each.number < version.number]
    other = _chosen(versions, before) if before is not None else (older[-1] if older else None)
    texts = {
        row.pk: memo_text(row) for row in Memo.objects.filter(pk__in=[each.id for each in (version, other) if each])
    }
    text = texts[version.id] if version is not None else ""
    return MemoView(
        project_id=project.pk,
        project=project.name,
        versions=versions[::-1],
        version=version,
        before=other,
        text=text,
        changes=changed_lines(texts[other.id], text) if other is not None else [],
        newer=_newer(project, rows),
        proposals=_proposals(project),
    )


def _version(number: int, row: Memo) -> MemoVersion:
    return MemoVersion(
        id=row.pk,
        number=number,
        epoch=row.iteration.number if row.iteration is not None else None,
        training=row.iteration.training_id if row.iteration is not None else None,
        after=row.after.name if row.after is not None else "",
        after_id=row.after_id,
        at=row.created_at,
    )


def _chosen(versions: Sequence[MemoVersion], chosen: int | None) -> MemoVersion:
    if chosen is None:
        return versions[-1]
    found = next((each for each in versions if each.id == chosen), None)
    if found is None:
        raise NotFound(f"the memo has no version {chosen}")
    return found


def _newer(project: Project, rows: Sequence[Memo]) -> int:
    known = rows[-1].after if rows else None
    if known is None:
        return 0
    order = list(Experiment.objects.filter(project=project).in_order().values_list("pk", flat=True))
    return len(order) - 1 - order.index(known.pk)


def _proposals(project: Project) -> list[Proposed]:
    rows = Iteration.objects.filter(training__project=project).order_by("training_id", "number")
    return [
        Proposed(
            training=row.training_id,
            epoch=row.number,
            state=row.state,
            mechanism=row.mechanism,
            candidate=row.candidate_id,
            stated=proposer_of(row),
            wall=(row.ended_at - row.started_at).total_seconds() if row.ended_at is not None else None,
        )
        for row in rows
    ]
