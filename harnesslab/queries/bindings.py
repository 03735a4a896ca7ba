"""What a project measures: its binding to a harness repository."""

from __future__ import annotations

from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.experiments import Binding
from harnesslab.store.models import Project
from harnesslab.store.text import thawed


def get_project(project: int | str) -> Project:
    """Return a project by id or name; raises `NotFound`."""
    chosen = Project.objects.filter(pk=project) if isinstance(project, int) else Project.objects.filter(name=project)
    row = chosen.first()
    if row is None:
        raise NotFound(f"there is no project {project!r}")
    return row


def binding_of(project: Project) -> Binding:
    """Return a project's binding; raises `Conflict` where it has none."""
    if not project.binding:
        hint = "harnesslab project-bind NAME --repository PATH"
        raise Conflict(f"the project {project.name!r} is bound to no harness repository", hint=hint)
    return Binding.from_json(thawed(project.binding))
