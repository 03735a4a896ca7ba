"""Panels and their revisions."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import datetime

from backports.zstd import zipfile
from django.db.models import Count

from harnesslab.core.errors import NotFound
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.formats.panels.writing import panel_files, unpacked
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment, PanelRevision, Training
from harnesslab.store.text import storable, thawed

SHOWN = 100
"""Experiments of a revision that its page names."""
_AT = (1980, 1, 1, 0, 0, 0)


class PanelRow(ReadModel):
    """One revision of a panel."""

    id: int
    project: str
    project_id: int
    name: str
    digest: str
    cases: int
    newest: bool
    """Whether it is its panel's newest revision."""
    experiments: int
    created_at: datetime
    created_by: str

    @property
    def argument(self) -> str:
        """How it is named where a panel is asked for."""
        return f"{self.name}@{self.digest[:16]}"


class PanelUse(ReadModel):
    """An experiment that was measured on a revision."""

    id: int
    name: str
    kind: str
    state: str
    solved: int | None
    total: int | None
    revision: str


class PanelView(ReadModel):
    """A revision with its cases and what used it."""

    row: PanelRow
    cases: list[CaseDefinition]
    used: list[PanelUse]
    trainings: list[int]
    others: list[PanelRow]
    """The panel's other revisions, newest first."""


def get_revision(revision_id: int) -> PanelRevision:
    """Return a panel's revision; raises `NotFound`."""
    row = PanelRevision.objects.select_related("panel__project").filter(pk=revision_id).first()
    if row is None:
        raise NotFound(f"there is no panel revision {revision_id}")
    return row


def revision_named(project: str, panel: str, digest: str = "") -> PanelRevision:
    """Return a panel's newest revision, or the one whose digest begins so; raises `NotFound`."""
    rows = PanelRevision.objects.select_related("panel__project").filter(
        panel__project__name=storable(project), panel__name=storable(panel), digest__startswith=storable(digest)
    )
    row = rows.order_by("-pk").first()
    if row is None:
        what = f"no revision {digest}" if digest else "no runnable panel"
        raise NotFound(f"{what} {panel!r} in project {project!r}", hint="add one: harnesslab panel-add FOLDER")
    return row


def definition_of(revision: PanelRevision) -> PanelDefinition:
    """Return what a revision holds."""
    return PanelDefinition.from_json(thawed(revision.body))


def panel_rows(project: str = "", project_id: int | None = None, panel_id: int | None = None) -> list[PanelRow]:
    """Return the revisions of all panels, or of a project's, or of one: panels by name, revisions newest first."""
    rows = PanelRevision.objects.select_related("panel__project", "created_by").defer("body")
    if project:
        rows = rows.filter(panel__project__name=storable(project))
    if project_id is not None:
        rows = rows.filter(panel__project=project_id)
    if panel_id is not None:
        rows = rows.filter(panel=panel_id)
    counted = rows.annotate(measured=Count("experiments"))
    return _rows(counted.order_by("panel__project__name", "panel__name", "-pk"))


def panel_view(revision_id: int) -> PanelView:
    """Return a revision with its cases and what used it; raises `NotFound`."""
    revision = get_revision(revision_id)
    rows = panel_rows(panel_id=revision.panel_id)
    used = Experiment.objects.filter(panel=revision_id).light().order_by("-pk")[:SHOWN]
    return PanelView(
        row=next(row for row in rows if row.id == revision_id),
        cases=list(definition_of(revision).cases),
        used=[_use(experiment) for experiment in used],
        trainings=list(Training.objects.filter(panel=revision_id).order_by("-pk").values_list("pk", flat=True)),
        others=[row for row in rows if row.id != revision_id],
    )


def panel_archive(revision: PanelRevision) -> bytes:
    """Return a revision as a zip file of the folder that `harnesslab panel-add` takes: always the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in unpacked(panel_files(revision.panel.name, definition_of(revision))):
            archive.writestr(zipfile.ZipInfo(path, _AT), data)
    return made.getvalue()


def _use(experiment: Experiment) -> PanelUse:
    return PanelUse(
        id=experiment.pk,
        name=experiment.name,
        kind=experiment.kind,
        state=experiment.state,
        solved=experiment.solved,
        total=experiment.total,
        revision=experiment.revision,
    )


def _rows(revisions: Iterable[PanelRevision]) -> list[PanelRow]:
    """Make rows; the first of each panel is its newest."""
    seen: set[int] = set()
    found = []
    for row in revisions:
        found.append(
            PanelRow(
                id=row.pk,
                project=row.panel.project.name,
                project_id=row.panel.project_id,
                name=row.panel.name,
                digest=row.digest,
                cases=row.cases,
                newest=row.panel_id not in seen,
                experiments=getattr(row, "measured", 0),
                created_at=row.created_at,
                created_by=row.created_by.get_username() if row.created_by is not None else "",
            )
        )
        seen.add(row.panel_id)
    return found
