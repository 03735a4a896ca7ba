"""Binding a project to the git repository of its harness."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from django.db import transaction

from harnesslab.accounts.models import User
from harnesslab.actions.repositories import commit_of
from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.experiments import Binding
from harnesslab.store.models import AuditEntry, Project
from harnesslab.store.text import frozen, storable


def bind(name: str, binding: Binding, user: User | None = None) -> Project:
    """Say what a project measures, making it where it isn't there; raises `InvalidValue`."""
    shown = storable(name.strip(), 200)
    if not shown:
        raise InvalidValue("a project needs a name", where="project")
    repository = binding.harness.repository
    if "://" not in repository and Path(repository).exists() and not Path(repository).is_absolute():
        raise InvalidValue(f"not an absolute path: {repository!r}", where="repository", hint="workers run elsewhere")
    if repository:
        try:
            commit_of(repository, binding.branch)
        except InvalidValue as error:
            where = "branch" if error.where == "revision" else error.where
            raise InvalidValue(error.what, where=where, hint=error.hint) from None
    with transaction.atomic():
        project, _ = Project.objects.get_or_create(name=shown)
        project.binding = frozen(binding.to_json())
        project.save(update_fields=["binding"])
        if user is not None:
            AuditEntry.objects.create(user=user, action="bind project", subject=shown, detail={"to": repository})
    return project


@transaction.atomic
def set_price(project: Project, model: str, price: Mapping[str, float]) -> None:
    """Say what a million of a model's tokens cost: `input`, `output` and, where they differ, `cached`."""
    for name, value in price.items():
        if not math.isfinite(value) or value < 0:
            raise InvalidValue(f"no price: {value}", where=name, hint="a number from 0")
    row = Project.objects.select_for_update().get(pk=project.pk)
    row.prices = {**row.prices, storable(model, 200): dict(price)}
    row.save(update_fields=["prices"])
