"""Keeping panels: each content is one revision."""

from __future__ import annotations

from django.db import transaction

from harnesslab.accounts.models import User
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.store.models import Panel, PanelRevision, Project
from harnesslab.store.text import frozen, storable


@transaction.atomic
def store_panel(project: str, name: str, definition: PanelDefinition, user: User | None = None) -> PanelRevision:
    """Keep a panel's content as a revision; the same content is the revision that is already there."""
    shown = storable(name.strip(), 200)
    if not shown:
        raise InvalidValue("a panel needs a name", where="name")
    row, _ = Project.objects.get_or_create(name=storable(project.strip(), 200) or "imported")
    panel, _ = Panel.objects.get_or_create(project=row, name=shown)
    revision, _ = PanelRevision.objects.get_or_create(
        panel=panel,
        digest=definition.digest,
        defaults={"body": frozen(definition.to_json()), "cases": len(definition.cases), "created_by": user},
    )
    return revision
