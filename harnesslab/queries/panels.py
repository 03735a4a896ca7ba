"""Panels and their revisions."""

from __future__ import annotations

from harnesslab.core.errors import NotFound
from harnesslab.core.panels import PanelDefinition
from harnesslab.store.models import PanelRevision
from harnesslab.store.text import thawed


def get_revision(revision_id: int) -> PanelRevision:
    """Return a panel's revision; raises `NotFound`."""
    row = PanelRevision.objects.select_related("panel__project").filter(pk=revision_id).first()
    if row is None:
        raise NotFound(f"there is no panel revision {revision_id}")
    return row


def revision_named(project: str, panel: str, digest: str = "") -> PanelRevision:
    """Return a panel's newest revision, or the one whose digest begins so; raises `NotFound`."""
    rows = PanelRevision.objects.select_related("panel__project").filter(
        panel__project__name=project, panel__name=panel, digest__startswith=digest
    )
    row = rows.order_by("-pk").first()
    if row is None:
        what = f"no revision {digest}" if digest else "no runnable panel"
        raise NotFound(f"{what} {panel!r} in project {project!r}", hint="add one: harnesslab panel-add FOLDER")
    return row


def definition_of(revision: PanelRevision) -> PanelDefinition:
    """Return what a revision holds."""
    return PanelDefinition.from_json(thawed(revision.body))
