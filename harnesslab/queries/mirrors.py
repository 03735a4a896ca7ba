"""What of a project is not on its MLflow server yet, and how it is said there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Known, Manifest
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.experiments import State
from harnesslab.formats.mlflow.spans import MlflowSpan, instruction, spans
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.measurements import get_measured
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.manifests import manifests_of
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Experiment, Mirror, Mirrored, Project, Rollout
from harnesslab.store.text import as_object, thawed


class MirrorRow(ReadModel):
    """A project's copy on an MLflow server."""

    project: str
    address: str
    enabled: bool
    experiment: str
    sentence: str
    mirrored_at: datetime | None
    experiments: int
    rollouts: int
    waiting: int
    """Experiments and rollouts that are not there yet."""


@dataclass(frozen=True, slots=True)
class MirrorTarget:
    """Where a project is copied to."""

    id: int
    project: int
    address: str
    name: str
    """Name of the MLflow experiment."""


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What an MLflow run says of an experiment."""

    name: str
    start: float
    """Seconds since 1970."""
    end: float
    params: Mapping[str, JSON]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    documents: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class TraceDocument:
    """What an MLflow trace says of a rollout."""

    root: MlflowSpan
    start: float
    tags: Mapping[str, str]
    seal: str
    experiment: int | None
    failed: bool


def get_mirror(project: Project) -> Mirror:
    """Return a project's mirror; raises `NotFound`."""
    row = Mirror.objects.select_related("project").filter(project=project).first()
    if row is None:
        raise NotFound(f"the project {project.name!r} has no mirror", hint="harnesslab mirror PROJECT --to ADDRESS")
    return row


def mirror_of(project_id: int) -> MirrorRow | None:
    """Return a project's mirror where it has one."""
    row = Mirror.objects.select_related("project").filter(project=project_id).first()
    return mirror_row(row) if row is not None else None


def mirror_row(mirror: Mirror) -> MirrorRow:
    """Return a mirror with what is on it."""
    there = Mirrored.objects.filter(mirror=mirror, complete=True)
    return MirrorRow(
        project=mirror.project.name,
        address=mirror.address,
        enabled=mirror.enabled,
        experiment=mirror.experiment or mirror.project.name,
        sentence=mirror.sentence,
        mirrored_at=mirror.mirrored_at,
        experiments=there.exclude(experiment=None).count(),
        rollouts=there.exclude(rollout=None).count(),
        waiting=_missing(mirror),
    )


def get_target(mirror_id: int) -> MirrorTarget:
    """Return where a mirror copies to; raises `NotFound`."""
    row = Mirror.objects.select_related("project").filter(pk=mirror_id).first()
    if row is None:
        raise NotFound(f"there is no mirror {mirror_id}", hint="it was forgotten")
    return MirrorTarget(row.pk, row.project_id, row.address, row.experiment or row.project.name)


def mirrored_run(mirror_id: int, experiment_id: int | None) -> str:
    """Return the run on a server of one of our experiments, or nothing."""
    if experiment_id is None:
        return ""
    rows = Mirrored.objects.filter(mirror=mirror_id, experiment=experiment_id)
    return rows.values_list("remote", flat=True).first() or ""


def waiting_experiments(mirror: int, project: int) -> Sequence[int]:
    """Return the ended experiments that are not on the server, in the order they were made."""
    return list(_experiments(mirror, project).order_by("pk").values_list("pk", flat=True))


def waiting_rollouts(mirror: int, project: int) -> Sequence[int]:
    """Return the ended rollouts that are not on the server."""
    return list(_rollouts(mirror, project).order_by("pk").values_list("pk", flat=True))


def lacks(mirror: Mirror) -> bool:
    """Say whether anything is not on the server yet."""
    ids = (mirror.pk, mirror.project_id)
    return _experiments(*ids).exists() or _rollouts(*ids).exists()


def _missing(mirror: Mirror) -> int:
    ids = (mirror.pk, mirror.project_id)
    return _experiments(*ids).count() + _rollouts(*ids).count()


def _experiments(mirror: int, project: int) -> QuerySet[Experiment]:
    there = Mirrored.objects.filter(mirror=mirror, experiment=OuterRef("pk"), complete=True)
    return Experiment.objects.filter(~Exists(there), project=project).exclude(state=State.RUNNING)


def _rollouts(mirror: int, project: int) -> QuerySet[Rollout]:
    there = Mirrored.objects.filter(mirror=mirror, rollout=OuterRef("pk"), complete=True)
    return Rollout.objects.filter(~Exists(there), project=project, head__isnull=False)


def enabled_mirrors() -> list[Mirror]:
    """Return the mirrors that are kept up."""
    return list(Mirror.objects.filter(enabled=True).select_related("project"))


def run_document(experiment_id: int, link: str) -> RunDocument:
    """Say what an experiment is: its conditions as parameters, its counts as metrics, its decision as tags.

    Raises `NotFound` for one that was deleted.
    """
    row = get_measured(experiment_id)
    cells = cells_of([experiment_id])[experiment_id]
    manifests = list(manifests_of({str(cell.rollout): cell.rollout for cell in cells}).values())
    params: dict[str, JSON] = {"kind": row.kind, "revision": row.revision, "trials": row.trials}
    params |= _shared(manifests)
    metrics = {
        "solved": row.solved,
        "total": row.total,
        "rollouts": len(cells),
        "input_tokens": _sum([cell.input for cell in cells]),
        "output_tokens": _sum([cell.output for cell in cells]),
        "steps": sum(cell.steps for cell in cells),
    }
    tags = {"verdict": row.verdict, "reason": row.reason, "mechanism": row.mechanism, "baseline": row.baseline_name}
    documents: dict[str, JSON] = {}
    if manifests:
        documents["manifest.json"] = manifests[0].to_json()
    for name in ("decision", "certification"):
        if kept := as_object(thawed(getattr(row, name))):
            documents[f"{name}.json"] = kept
    started = row.started_at or row.created_at
    return RunDocument(
        name=row.name,
        start=started.timestamp(),
        end=(row.ended_at or started).timestamp(),
        params={name: value for name, value in params.items() if value not in (None, "")},
        metrics={name: float(value) for name, value in metrics.items() if value is not None},
        tags={f"harnesslab.{name}": value for name, value in {**tags, "link": link}.items() if value},
        documents=documents,
    )


def trace_document(rollout_id: int, link: str) -> TraceDocument:
    """Say what a rollout did, step by step; raises `NotFound` for one that was deleted."""
    row = get_rollout(rollout_id)
    trace = StoredTraceReader(row).trace()
    inside = tuple(spans(trace))
    end = max([span.end for span in inside], default=0.0)
    root = MlflowSpan(
        name=f"{row.case.name} #{row.trial + 1}",
        kind="AGENT",
        start=0.0,
        end=max(end, row.seconds or 0.0),
        inputs={"case": row.case.name, "instruction": instruction(trace)},
        outputs={"outcome": row.outcome, "reward": row.reward},
        inside=inside,
    )
    experiment = row.experiment.name if row.experiment is not None else ""
    tags = {"outcome": row.outcome, "case": row.case.name, "trial": str(row.trial), "experiment": experiment}
    seal = bytes(row.head or b"").hex()
    tags |= {"manifest": row.manifest_id, "seal": seal, "link": link}
    return TraceDocument(
        root=root,
        start=(row.started_at or row.created_at).timestamp(),
        tags={f"harnesslab.{name}": value for name, value in tags.items() if value},
        seal=seal[:16],
        experiment=row.experiment_id,
        failed=row.outcome in ("crash", "infra_error", "interrupted"),
    )


def _shared(manifests: Sequence[Manifest]) -> dict[str, JSON]:
    """Return the conditions that all rollouts had, not what is of one case or of one seed."""
    first, *others = [_conditions(each) for each in manifests] or [{}]
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _conditions(manifest: Manifest) -> dict[str, JSON]:
    return {name: known.value for name, known in manifest.conditions.items() if isinstance(known, Known)}


def _sum(values: Sequence[int | None]) -> int | None:
    stated = [value for value in values if value is not None]
    return sum(stated) if stated else None
