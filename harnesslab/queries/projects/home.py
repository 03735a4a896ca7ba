"""The projects home: counts and recent activity."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime

from django.db.models import Count, Max, Min, Q

from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.statistics import Rate, wilson
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import CrashOrigin, Outcome, is_sample
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Case, Experiment, Project, Rollout, SourceFile
from harnesslab.store.text import storable


class ProjectRow(ReadModel):
    """One project with what is in it."""

    id: int
    name: str
    experiments: int
    rollouts: int
    cases: int
    models: int
    """Models that are known."""
    rate: Rate
    newest: datetime | None


class Activity(ReadModel):
    """One import."""

    name: str
    format: str
    rollouts: int
    first_rollout: int | None
    skipped: int
    at: datetime


class Home(ReadModel):
    """All projects, and what happened last."""

    projects: list[ProjectRow]
    activity: list[Activity]
    rollouts: int
    cases: int


def home() -> Home:
    """Return the home page's content in a fixed number of queries; rates leave the rollouts of reruns out."""
    outcomes: dict[int, Counter[str]] = defaultdict(Counter)
    own: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    made_by_reruns = Count("pk", filter=~Q(mode=""))  # also where the rerun is gone
    columns = Rollout.objects.values_list("project_id", "outcome", "crash_origin")
    for project, outcome, crash, count, again in columns.annotate(n=Count("pk"), again=made_by_reruns):
        outcomes[project][outcome] += count
        own[project][(outcome, crash)] = count - again
    grouped = Rollout.objects.values_list("project_id").annotate(
        models=Count("model", distinct=True, filter=~Q(model="")), newest=Max("created_at")
    )
    facts = {project: (models, newest) for project, models, newest in grouped}
    cases = dict(Case.objects.values_list("panel__project_id").annotate(n=Count("pk")))
    measured = dict(Experiment.objects.order_by().values_list("project_id").annotate(n=Count("pk")))
    projects = [
        ProjectRow(
            id=project.pk,
            name=project.name,
            experiments=measured.get(project.pk, 0),
            rollouts=outcomes[project.pk].total(),
            cases=cases.get(project.pk, 0),
            models=facts.get(project.pk, (0, None))[0],
            rate=_rate(+own[project.pk]),
            newest=facts.get(project.pk, (0, None))[1],
        )
        for project in Project.objects.order_by("name")
    ]
    return Home(
        projects=projects,
        activity=_activity(),
        rollouts=sum(row.rollouts for row in projects),
        cases=sum(row.cases for row in projects),
    )


def project_named(name: str) -> int:
    """Return the project of a name; raises `NotFound`."""
    row = Project.objects.filter(name=storable(name)).values_list("pk", flat=True).first()
    if row is None:
        raise NotFound(f"there is no project {name[:80]!r}")
    return row


def project_asked(text: str) -> int:
    """Return the project that an address names by its id, or else by its name; raises `NotFound`."""
    number = natural(text)
    return project_named(text) if number is None else number


def _rate(outcomes: Counter[tuple[str, str]]) -> Rate:
    excluded: Counter[str] = Counter()
    for (name, crash), count in outcomes.items():
        if not is_sample(Outcome(name), CrashOrigin(crash) if crash else None):
            excluded[name] += count
    n = outcomes.total() - excluded.total()
    k = outcomes[(Outcome.SOLVED.value, "")]
    low, high = wilson(k, n)
    return Rate(k, n, low, high, dict(excluded))


def _activity() -> list[Activity]:
    recent = SourceFile.objects.order_by("-id")[:12]
    grouped = (
        Rollout.objects.filter(source__in=[source.pk for source in recent])
        .values_list("source_id")
        .annotate(n=Count("pk"), first=Min("pk"))
    )
    counts = {source: (count, first) for source, count, first in grouped}
    return [
        Activity(
            name=source.name,
            format=source.format,
            rollouts=counts.get(source.pk, (0, None))[0],
            first_rollout=counts.get(source.pk, (0, None))[1],
            skipped=len(source.skipped),
            at=source.imported_at,
        )
        for source in recent
    ]
