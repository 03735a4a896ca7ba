"""A rollout is readable while it runs, survives its recorder, and packing changes no seal."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from harnesslab.actions.rollouts.recorder import Recorder, RolloutEnding, interrupt
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import Conflict
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace import seals
from harnesslab.core.trace.trace import messages_at
from harnesslab.queries.rollouts.events import event_window
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Chunk, Event, LooseEvent
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def record(recorder: Recorder, upto: int) -> None:
    """Feed the first events of the sample trace, flushing after each."""
    made = recording().trace
    for payload in made.payloads:
        recorder.builder.payload(payload)
    for event in made.events[:upto]:
        recorder.builder.add(event)
        recorder.flush()


def test_each_event_is_readable_and_immutable_at_once() -> None:
    recorder = Recorder(recording())
    record(recorder, 5)
    reader = StoredTraceReader(get_rollout(recorder.rollout.pk))
    assert reader.rollout.outcome == "running"
    assert [reader.event(index) for index in range(5)] == list(recording().trace.events[:5])
    assert reader.messages(4) == messages_at(recording().trace, 4)
    assert len(event_window(reader, 0).rows) == 5
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Event.objects.update(step=9)


def test_finishing_packs_the_events_and_keeps_their_seals() -> None:
    recorder = Recorder(recording())
    record(recorder, len(recording().trace.events) - 1)
    before = list(Event.objects.order_by("key").values_list("seal", flat=True))
    rollout = recorder.finish(RolloutEnding(Outcome.SOLVED, reward=1.0))
    assert not LooseEvent.objects.exists()
    assert Chunk.objects.exists()
    reader = StoredTraceReader(rollout)
    assert reader.seals()[:-1] == [bytes(seal) for seal in before]
    seals.verify(reader.trace(), reader.seals())
    assert (rollout.outcome, rollout.steps, rollout.output_tokens) == ("solved", 3, 30)


def test_a_live_rollout_ends_up_as_the_same_trace_as_an_imported_one() -> None:
    recorder = Recorder(recording())
    record(recorder, len(recording().trace.events) - 1)
    live = recorder.finish(RolloutEnding(Outcome.SOLVED, reward=1.0))
    imported = store_recording(recording(trial=1), None)
    assert bytes(live.head or b"") == bytes(imported.head or b"")
    assert bytes(live.path or b"") == bytes(imported.path or b"")


def test_a_recorder_that_is_gone_leaves_a_sealed_prefix_that_can_be_closed() -> None:
    recorder = Recorder(recording())
    record(recorder, 6)
    rollout = interrupt(recorder.rollout.pk)
    reader = StoredTraceReader(rollout)
    assert (rollout.outcome, rollout.events) == ("interrupted", 7)
    seals.verify(reader.trace(), reader.seals())
    with pytest.raises(Conflict):
        interrupt(rollout.pk)


def test_a_rollout_without_any_event_can_be_closed() -> None:
    rollout = interrupt(Recorder(recording()).rollout.pk)
    assert rollout.events == 1


def test_a_flush_that_failed_is_made_good_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(recording())
    record(recorder, 4)

    def fail(*args: object) -> None:
        raise DatabaseError("the database is locked")

    events = recording().trace.events[:-1]
    recorder.builder.add(events[4])
    with monkeypatch.context() as broken:
        broken.setattr("harnesslab.actions.rollouts.recorder.insert", fail)
        with pytest.raises(DatabaseError):
            recorder.flush()
    for event in events[5:]:
        recorder.builder.add(event)
    reader = StoredTraceReader(recorder.finish(RolloutEnding(Outcome.SOLVED, reward=1.0)))
    seals.verify(reader.trace(), reader.seals())
    assert reader.trace().events[:-1] == events
