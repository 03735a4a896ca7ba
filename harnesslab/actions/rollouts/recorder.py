"""Recording a rollout while it runs: each event is stored, sealed and immutable at once.

A worker that is killed leaves a readable prefix, sealed so far; `interrupt` then closes it. When a rollout ends,
its loose events are packed into chunks; seals don't depend on storage, so packing changes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils import timezone

from harnesslab.actions.rollouts.storing import EVENT_COLUMNS, insert_chunks, new_row, store_path
from harnesslab.actions.rollouts.trace_statistics import count_columns, running_columns
from harnesslab.core.canonical import JSON
from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.contracts.requests import RequestDigests
from harnesslab.core.contracts.trace_reader import kind_of
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.trace_statistics import Tally, TraceStatistics, trace_statistics
from harnesslab.core.running.rollout import Outcome, Recording, crash_origin
from harnesslab.core.trace import packing, seals
from harnesslab.core.trace.events import ModelCall, RolloutEnded
from harnesslab.core.trace.trace import Trace, TraceBuilder
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Event, LooseEvent, Rollout
from harnesslab.store.models.events import KINDS, MAX_EVENTS, key
from harnesslab.store.text import as_object, frozen, thawed
from harnesslab.store.writing import insert


@dataclass(frozen=True, slots=True)
class Placement:
    """What a rollout of a worker belongs to, and what it takes to run it again."""

    recipe: JSON = None
    rerun: int | None = None
    attempt: int = 0
    job: int | None = None
    mode: str = ""

    def columns(self) -> dict[str, object]:
        """Return the columns of a rollout's row."""
        recipe = frozen(self.recipe) if self.recipe is not None else b""
        placed: dict[str, object] = {"rerun_id": self.rerun, "attempt": self.attempt, "job_id": self.job}
        return {**placed, "recipe": recipe, "mode": self.mode}


@dataclass(frozen=True, slots=True)
class RolloutEnding:
    """How a recorded rollout ended."""

    outcome: Outcome
    reward: float | None = None
    state: str | None = None
    diff: str | None = None
    error: str | None = None
    facts: Mapping[str, JSON] | None = None
    """What became known of the rollout as a whole while it ran."""


class Recorder:
    """Stores the events of one running rollout as its `builder` gets them; call `flush` after each step."""

    def __init__(self, facts: Recording, placement: Placement = Placement()) -> None:
        self._placement = placement
        self._tally = Tally()
        self.builder = TraceBuilder()
        self._sealer = seals.Sealer()
        self._sealed = 0
        self._rows: list[tuple[int | bytes | None, ...]] = []
        self._loose: list[tuple[int | bytes | None, ...]] = []
        self._named = 0
        self._requests = RequestDigests(self.builder.payloads)
        self.rollout = self._open(facts)

    @transaction.atomic
    def _open(self, facts: Recording) -> Rollout:
        rollout = new_row(
            replace(facts, outcome=Outcome.RUNNING, trace=self.builder.trace()),
            None,
            bound=bool(self._placement.recipe),
        )
        rollout.started_at = rollout.started_at or timezone.now()
        for name, value in {**self._placement.columns(), **running_columns(self._tally)}.items():
            setattr(rollout, name, value)
        rollout.save(force_insert=True)
        return rollout

    def flush(self) -> None:
        """Store the events that were added since the last time; where that fails, the next flush stores them too."""
        self._seal_added()
        if not self._rows:
            return
        with transaction.atomic():
            insert(Event, EVENT_COLUMNS, self._rows)
            insert(LooseEvent, ("key", "body"), self._loose)
            Rollout.objects.filter(pk=self.rollout.pk).update(**running_columns(self._tally))
        self._rows, self._loose = [], []

    def _seal_added(self) -> None:
        """Make the rows of the events added since the last time, each sealed exactly once."""
        for event in self.builder.events[self._sealed :]:
            place = key(self.rollout.pk, self._sealed)
            needed = packing.needs(event, self._named)
            body = packing.event_lines(event, self.builder.payloads, range(self._named, needed))
            request, answer = self._requests.of(event) if isinstance(event, ModelCall) else (None, None)
            seal = self._sealer.seal(event, self.builder.digests)
            self._rows.append((place, KINDS.index(kind_of(event)), event.step, seal, request, answer))
            self._loose.append((place, b"\n".join(body)))
            self._named = needed
            self._sealed += 1
            self._tally.add(event)

    @property
    def finished(self) -> bool:
        """Whether the trace is closed."""
        return bool(self.builder.events) and isinstance(self.builder.events[-1], RolloutEnded)

    @transaction.atomic
    def finish(self, ending: RolloutEnding) -> Rollout:
        """Close the trace, pack it and store the outcome; where that fails, this recorder is spent."""
        # A failure rolls back rows that `flush` below has already forgotten, so that nothing here can be tried again.
        # What was stored before stays open, and `interrupt` closes it.
        self.builder.close(ending.outcome, state=ending.state, diff=ending.diff, error=ending.error)
        self.flush()
        # every event was added to the tally once, when it was sealed: the trace is not read again to be counted
        return _pack(
            self.rollout.pk, self.builder.trace(), self._sealer.head, ending, self._tally.whole(ending.outcome)
        )


@transaction.atomic
def interrupt(rollout_id: int) -> Rollout:
    """Close a rollout whose recorder is gone, as interrupted; raises `Conflict` where it has ended."""
    # No lock is held: the closing event takes the next key. Of this and a recorder that is only slow, whoever inserts
    # that key second fails with IntegrityError, and all of its transaction is undone.
    rollout = get_rollout(rollout_id)
    if rollout.head is not None:
        raise Conflict("the rollout has already ended", where=f"rollout {rollout_id}")
    kept = StoredTraceReader(rollout).trace()
    count = len(kept.events) + 1
    step = kept.events[-1].step if kept.events else 0
    closing = RolloutEnded(outcome=Outcome.INTERRUPTED, count=count, step=step, error="its recorder was lost")
    trace = Trace((*kept.events, closing), kept.payloads, kept.digests)
    # from the first event on: the next seal also needs each agent's running list digests, which no row keeps
    head = seals.seals(trace)[-1]
    insert(Event, EVENT_COLUMNS, [(key(rollout_id, count - 1), KINDS.index(kind_of(closing)), step, head, None, None)])
    ending = RolloutEnding(Outcome.INTERRUPTED, error="its recorder was lost")
    return _pack(rollout_id, trace, head, ending, trace_statistics(trace, ending.outcome))


def _pack(rollout_id: int, trace: Trace, head: bytes, ending: RolloutEnding, statistics: TraceStatistics) -> Rollout:
    insert_chunks(rollout_id, trace)
    first = key(rollout_id, 0)
    LooseEvent.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS).delete()
    path = comparators.path(trace, RAW)
    store_path(rollout_id, path)
    row = Rollout.objects.filter(pk=rollout_id)
    began, facts = row.values_list("started_at", "facts").get()
    now = timezone.now()
    row.update(
        head=head,
        path=path.head,
        outcome=ending.outcome,
        crash_origin=crash_origin(ending.outcome, ending.facts or {}) or "",
        reward=ending.reward,
        ended_at=now,
        events=len(trace.events),
        facts=frozen({**as_object(thawed(facts)), **(ending.facts or {})}),
        **count_columns(statistics, began, now),
    )
    return get_rollout(rollout_id)
