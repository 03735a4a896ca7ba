"""Recording a rollout while it runs: each event is stored, sealed and immutable at once.

A worker that is killed leaves a readable prefix, sealed so far; `interrupt` then closes it. When a rollout ends,
its loose events are packed into chunks; seals don't depend on storage, so packing changes none.
"""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from harnesslab.actions.rollouts import EVENT_COLUMNS, insert_chunks, new_row, store_path, totals
from harnesslab.core import comparators, packing, seals
from harnesslab.core.contract import RAW
from harnesslab.core.errors import Conflict
from harnesslab.core.events import ModelCall, RolloutEnded
from harnesslab.core.requests import RequestDigests
from harnesslab.core.rollout import Outcome, Recording
from harnesslab.core.tape import kind_of
from harnesslab.core.trace import Trace, TraceBuilder
from harnesslab.queries.rollouts import get_rollout
from harnesslab.queries.tapes import StoredTape
from harnesslab.store.models import Event, LooseEvent, Rollout
from harnesslab.store.models.events import KINDS, MAX_EVENTS, key
from harnesslab.store.writing import insert


class Recorder:
    """Stores the events of one running rollout as its `builder` gets them; call `flush` after each step."""

    def __init__(self, facts: Recording) -> None:
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
        rollout = new_row(replace(facts, outcome=Outcome.RUNNING, trace=self.builder.trace()), None)
        rollout.started_at = rollout.started_at or timezone.now()
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
            Rollout.objects.filter(pk=self.rollout.pk).update(**_counts(self.builder.trace()))
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

    @transaction.atomic
    def finish(self, outcome: Outcome, *, reward: float | None = None) -> Rollout:
        """Close the trace, pack it and store the outcome."""
        self.builder.close(outcome)
        self.flush()
        return _pack(self.rollout.pk, self.builder.trace(), self._sealer.head, outcome, reward)


@transaction.atomic
def interrupt(rollout_id: int) -> Rollout:
    """Close a rollout whose recorder is gone, as interrupted; raises `Conflict` where it has ended."""
    rollout = get_rollout(rollout_id)
    if rollout.head is not None:
        raise Conflict("the rollout has already ended", where=f"rollout {rollout_id}")
    kept = StoredTape(rollout).trace()
    count = len(kept.events) + 1
    step = kept.events[-1].step if kept.events else 0
    closing = RolloutEnded(outcome=Outcome.INTERRUPTED, count=count, step=step)
    trace = Trace((*kept.events, closing), kept.payloads, kept.digests)
    head = seals.seals(trace)[-1]
    insert(Event, EVENT_COLUMNS, [(key(rollout_id, count - 1), KINDS.index(kind_of(closing)), step, head, None, None)])
    return _pack(rollout_id, trace, head, Outcome.INTERRUPTED, None)


def _pack(rollout_id: int, trace: Trace, head: bytes, outcome: Outcome, reward: float | None) -> Rollout:
    insert_chunks(rollout_id, trace)
    first = key(rollout_id, 0)
    LooseEvent.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS).delete()
    path = comparators.path(trace, RAW)
    store_path(rollout_id, path)
    Rollout.objects.filter(pk=rollout_id).update(
        head=head, path=path.head, outcome=outcome, reward=reward, ended_at=timezone.now(), **_counts(trace)
    )
    return get_rollout(rollout_id)


def _counts(trace: Trace) -> dict[str, int | None]:
    used = totals(trace)
    return {
        "events": len(trace.events),
        "steps": len({event.step for event in trace.events if isinstance(event, ModelCall)}),
        "input_tokens": used.input,
        "output_tokens": used.output,
        "cached_tokens": used.cached,
    }
