"""What a project measures: its binding to a harness repository."""

from __future__ import annotations

from harnesslab.core.errors import Conflict, HarnessLabError, NotFound
from harnesslab.core.measuring.experiments import Binding
from harnesslab.core.running.recipe import HarnessKind
from harnesslab.queries.read_model import ReadModel
from harnesslab.runtime.training.revisions import Revision, revisions
from harnesslab.store.models import Project
from harnesslab.store.text import storable, thawed


class BoundProject(ReadModel):
    """A project with the harness that it measures, where it is bound to one."""

    id: int
    name: str
    repository: str
    branch: str
    kind: str
    entry: str
    command: list[str]
    surface: list[str]
    bound: bool


class Revisions(ReadModel):
    """The revisions of a harness that are near at hand, and why none is where there is none."""

    rows: list[Revision]
    why: str = ""


def get_project(project: int | str) -> Project:
    """Return a project by id or name; raises `NotFound`."""
    chosen = (
        Project.objects.filter(pk=project)
        if isinstance(project, int)
        else Project.objects.filter(name=storable(project))
    )
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


def projects_to_measure() -> list[BoundProject]:
    """Return all projects, those that are bound first."""
    rows = [bound_project(project) for project in Project.objects.order_by("name")]
    return sorted(rows, key=lambda row: not row.bound)


def bound_project(project: Project) -> BoundProject:
    """Return a project with what it is bound to; a new binding's values where it is not."""
    binding = binding_of(project) if project.binding else None
    harness = binding.harness if binding is not None else None
    return BoundProject(
        id=project.pk,
        name=project.name,
        repository=harness.repository if harness is not None else "",
        branch=binding.branch if binding is not None else "main",
        kind=harness.kind.value if harness is not None else HarnessKind.LOOP.value,
        entry=harness.entry if harness is not None else "harness",
        command=list(harness.command) if harness is not None else [],
        surface=list(binding.surface) if binding is not None else ["*.py"],
        bound=binding is not None,
    )


def revisions_of(project: Project) -> Revisions:
    """Return the revisions of a project's harness that a form offers; any other can be typed."""
    binding = binding_of(project)
    try:
        return Revisions(rows=revisions(binding.harness.repository, binding.branch))
    except HarnessLabError as error:
        return Revisions(rows=[], why=error.sentence)
