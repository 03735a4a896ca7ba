"""Writing recordings: one transaction puts a whole rollout into the store, or nothing of it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

from backports import zstd
from django.db import transaction

from harnesslab.actions.rollouts.trace_statistics import count_columns
from harnesslab.core.canonical import JSON, bytes_digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.contracts.requests import RequestDigests
from harnesslab.core.contracts.trace_reader import kind_of
from harnesslab.core.errors import InvalidValue, LimitExceeded
from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import STATED, Recording, Replayability, crash_origin, offered
from harnesslab.core.trace import packing, seals
from harnesslab.core.trace.events import ModelCall
from harnesslab.core.trace.trace import Trace
from harnesslab.store.models import (
    Blob,
    Case,
    Chunk,
    Event,
    Experiment,
    Panel,
    Project,
    Rollout,
    SourceFile,
    StoredManifest,
    StoredPath,
)
from harnesslab.store.models.events import KINDS, MAX_EVENTS, key
from harnesslab.store.text import frozen, storable
from harnesslab.store.writing import insert

SHARED_BYTES = 4096
"""Payloads from this size are kept once for all rollouts if they open a transcript or are tool schemas."""
EVENT_COLUMNS = ("key", "kind", "step", "seal", "request", "answer")
_NUMBERS = 2**31
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


@transaction.atomic
def store_recording(recording: Recording, source: SourceFile | None) -> Rollout:
    """Store a finished recording and return its row; raises `LimitExceeded` for a trace that is too long.

    Raises `InvalidValue` for numbers of a trial or step that can't be ones.
    """
    trace = recording.trace
    _check(recording)
    path = comparators.path(trace, RAW)
    chain = seals.seals(trace)
    rollout = new_row(recording, source)
    rollout.head, rollout.path = chain[-1], path.head
    statistics = trace_statistics(trace, recording.outcome)
    for name, value in count_columns(statistics, recording.started_at, recording.ended_at).items():
        setattr(rollout, name, value)
    rollout.save(force_insert=True)
    insert(Event, EVENT_COLUMNS, event_rows(rollout.pk, trace, chain))
    insert_chunks(rollout.pk, trace)
    store_path(rollout.pk, path)
    return rollout


def _check(recording: Recording) -> None:
    events = recording.trace.events
    if len(events) > MAX_EVENTS:
        raise LimitExceeded(f"{len(events):,} events, more than the limit of {MAX_EVENTS:,}")
    if not 0 <= recording.trial < _NUMBERS:
        raise InvalidValue("the trial is no number from 0 below 2^31")
    wrong = next(
        (place for place, event in enumerate(events) if not -1 <= event.step < _NUMBERS), None
    )  # -1: before any
    if wrong is not None:
        raise InvalidValue("the step is no number below 2^31", where=f"event {wrong}")


def insert_chunks(rollout_id: int, trace: Trace) -> None:
    """Pack an ended trace."""
    insert(
        Chunk,
        ("key", "first_event", "first_payload", "data"),
        (
            (key(rollout_id, chunk.number), chunk.first_event, chunk.first_payload, chunk.data)
            for chunk in packing.pack(trace.events, trace.payloads, _Shared(trace).keep)
        ),
    )


def store_path(rollout_id: int, path: comparators.Path) -> None:
    """Keep a computed path for later comparisons."""
    StoredPath.objects.get_or_create(
        rollout_id=rollout_id,
        contract=path.contract.key,
        defaults={
            "indices": zstd.compress(array("I", path.indices).tobytes(), 3),
            "own": path.own,
            "path": path.path,
            "removed": {
                "counts": dict(path.removed.counts),
                "examples": {
                    rule: [storable(piece, 200) for piece in pieces] for rule, pieces in path.removed.examples.items()
                },
            },
        },
    )


def store_unsupported(rollout_id: int, contract: Contract) -> None:
    """Remember that a rollout can't be compared under a contract."""
    StoredPath.objects.get_or_create(
        rollout_id=rollout_id,
        contract=contract.key,
        defaults={"indices": b"", "own": b"", "path": b"", "removed": {"unsupported": True}},
    )


def store_manifest(manifest: Manifest) -> str:
    """Keep a manifest once and return its digest."""
    body = manifest.canonical()
    digest = bytes_digest(body)
    if not StoredManifest.objects.filter(pk=digest).exists():
        StoredManifest.objects.get_or_create(digest=digest, defaults={"body": packing.compress(body)})
    return digest


class _Shared:
    """Decides which payloads are kept once for all rollouts, and keeps them."""

    def __init__(self, trace: Trace) -> None:
        opening: set[int] = set()
        for event in trace.events:
            if isinstance(event, ModelCall):
                opening.update(event.input.add[:1] if event.input.keep == 0 else ())
                opening.update(() if event.tools is None else (event.tools,))
        self._opening = opening
        self._trace = trace

    def keep(self, position: int, body: bytes) -> str | None:
        """Keep a shared payload and return its digest, or None where it stays in its chunk."""
        if len(body) < SHARED_BYTES or position not in self._opening:
            return None
        digest = self._trace.digests[position].hex()
        if not Blob.objects.filter(pk=digest).exists():
            Blob.objects.get_or_create(digest=digest, defaults={"data": packing.compress(body)})
        return digest


def event_rows(rollout_id: int, trace: Trace, chain: list[bytes]) -> Iterator[tuple[int | bytes | None, ...]]:
    """Yield the row of each event, in the order of `EVENT_COLUMNS`."""
    requests = RequestDigests(trace.payloads)
    for index, event in enumerate(trace.events):
        request = answer = None
        if isinstance(event, ModelCall):
            request, answer = requests.of(event)
        yield (
            key(rollout_id, index),
            _KIND_NUMBERS[kind_of(event)],
            event.step,
            chain[index],
            request,
            answer,
        )


def new_row(recording: Recording, source: SourceFile | None, *, bound: bool = False) -> Rollout:
    """Make the unsaved row of a recording, with the rows it refers to; its trace is not counted yet.

    `bound` says that a worker can run its harness.
    """
    replayability, missing = offered(recording.replayability, recording.missing, bound=bound)
    project, _ = Project.objects.get_or_create(name=storable(recording.project, 200) or "imported")
    panel, _ = Panel.objects.get_or_create(project=project, name=storable(recording.panel, 200))
    case, _ = Case.objects.get_or_create(panel=panel, name=storable(recording.case, 400))
    experiment = _experiment(project, recording) if recording.experiment else None
    return Rollout(
        project=project,
        case=case,
        experiment=experiment,
        manifest_id=store_manifest(recording.manifest),
        source=source,
        position=recording.source.position,
        trial=recording.trial,
        outcome=recording.outcome,
        crash_origin=crash_origin(recording.outcome, recording.facts) or "",
        reward=_finite(recording.reward),
        origin=recording.origin,
        grade=replayability,
        missing=storable(missing),
        model=storable(recording.model, 200),
        engine=storable(recording.engine, 200),
        harness=storable(recording.harness, 200),
        revision=storable(recording.revision, 200),
        tags=[storable(tag, 200) for tag in recording.tags],
        search=_search_text(recording),
        events=len(recording.trace.events),
        budgets={storable(name): value for name, value in recording.budgets.items() if math.isfinite(value)},
        facts=frozen(_facts(recording, bound=bound)),
        started_at=recording.started_at,
        ended_at=recording.ended_at,
    )


def _experiment(project: Project, recording: Recording) -> Experiment:
    facts = recording.facts.get("experiment")
    row, _ = Experiment.objects.get_or_create(
        project=project, name=storable(recording.experiment, 200), defaults={"facts": frozen(facts or {})}
    )
    return row


def _facts(recording: Recording, *, bound: bool) -> dict[str, JSON]:
    facts = {name: value for name, value in recording.facts.items() if name != "experiment"}
    if recording.replayability is not Replayability.VIEW_ONLY and not bound:
        facts[STATED] = recording.replayability.value
    return facts


def _search_text(recording: Recording) -> str:
    words = (
        recording.project,
        recording.panel,
        recording.case,
        recording.experiment,
        recording.harness,
        recording.revision,
        recording.model,
        recording.engine,
        recording.source.name,
        *recording.tags,
    )
    return storable(" ".join(word for word in words if word).lower())


def _finite(value: float | None) -> float | None:
    """Leave out what no JSON can hold; the trace keeps it as it was recorded."""
    return value if value is not None and math.isfinite(value) else None
