"""What reaches a row: by the recorder as it goes, by an import at once, by a recount later; always the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnesslab.actions.rollouts import recount as recounts
from harnesslab.actions.rollouts.recorder import Recorder, RolloutEnding, interrupt
from harnesslab.actions.rollouts.recount import Recounting, recount, recount_all
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.actions.rollouts.trace_statistics import count_all, counted_anew, prepare, write
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.trace_statistics import VERSION, trace_statistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import AnyEvent, ModelCall, Usage
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.append_only import create_triggers, drop_triggers
from harnesslab.store.models import Chunk, Rollout
from harnesslab.store.text import frozen, thawed
from tests.recordings import recording, served
from tests.traces import EVENTS

pytestmark = pytest.mark.django_db
COUNTED = ("steps", "events", "input_tokens", "output_tokens", "cached_tokens", "seconds", "counted_by")


def counts(row: Rollout) -> dict[str, Any]:
    return {**{name: getattr(row, name) for name in COUNTED}, "anatomy": thawed(row.anatomy)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EVENTS, st.sets(st.integers(0, 24)), st.booleans())
def test_running_sums_end_as_the_packed_trace_counts(
    db: None, events: list[AnyEvent], flushes: set[int], lost: bool
) -> None:
    recorder = Recorder(recording())
    for place, event in enumerate(events):
        recorder.builder.add(event)
        if place in flushes:
            recorder.flush()
            running = Rollout.objects.get(pk=recorder.rollout.pk)
            assert (running.events, running.counted_by, bytes(running.anatomy)) == (place + 1, VERSION, b"")
    if lost:
        recorder.flush()
        row = interrupt(recorder.rollout.pk)
    else:
        row = recorder.finish(RolloutEnding(Outcome.SOLVED))
    trace = StoredTraceReader(row).trace()
    assert thawed(row.anatomy) == thawed(frozen(trace_statistics(trace, Outcome(row.outcome)).to_json()))
    before = counts(row)
    assert row.events == len(trace.events)
    assert write(row, counted_anew(row))
    assert counts(Rollout.objects.get(pk=row.pk)) == before


def test_a_flush_costs_what_is_new_and_reads_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredTraceReader, "_read_chunk", lambda *_: pytest.fail("the trace was read again"))
    recorder = Recorder(recording())
    for step in range(5):
        recorder.builder.add(ModelCall(step=step, usage=Usage(1, 2)))
        recorder.flush()
    recorder.finish(RolloutEnding(Outcome.SOLVED))
    assert Rollout.objects.get().output_tokens == 10


@pytest.fixture
def old() -> list[Rollout]:
    """Rows as the first version left them: served answers among the tokens, one without statistics."""
    rows = [store_recording(served(recording(trial=trial)), None) for trial in range(4)]
    Rollout.objects.update(counted_by=1, input_tokens=303, output_tokens=30)
    Rollout.objects.filter(pk=rows[0].pk).update(anatomy=b"")
    return rows


def test_old_rows_come_to_what_is_counted_at_once_and_nothing_changes_twice(old: list[Rollout]) -> None:
    results = list(recount_all())
    assert [each.rollout for each in results] == [row.pk for row in old]
    for each in results:
        changes = {change.name: (change.before, change.after) for change in each.changes}
        assert changes == {"input_tokens": (303, 102), "output_tokens": (30, 10)}
    assert [counts(row) for row in Rollout.objects.order_by("pk")] == [counts(row) for row in old]
    assert list(recount_all()) == []
    assert [each.changes for each in recount([row.pk for row in old])] == [()] * 4


def test_a_sweep_counts_a_bounded_number_and_goes_on(old: list[Rollout], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recounts, "EVENTS_A_TICK", old[0].events * 2)
    sweep = Recounting()
    left = []
    for _ in range(3):
        sweep.some()
        left.append(Rollout.objects.behind().count())
    assert left == [2, 0, 0]


def damage(row: Rollout) -> None:
    drop_triggers(connection)
    Chunk.objects.filter(key__gte=row.pk << 20, key__lt=(row.pk + 1) << 20).update(data=b"\x00damaged")
    create_triggers(connection)


@pytest.mark.parametrize(
    "sweep",
    [
        lambda: list(recount_all()),
        lambda: Recounting().some(),
        lambda: count_all(Rollout.objects.values_list("pk", flat=True)),
    ],
)
def test_a_damaged_trace_keeps_nobody_from_the_others(old: list[Rollout], sweep: Callable[[], object]) -> None:
    damage(old[1])
    sweep()
    assert list(Rollout.objects.behind().values_list("pk", flat=True)) == [old[1].pk]
    failed = next(recount([old[1].pk]))
    assert failed.error
    assert Rollout.objects.get(pk=old[1].pk).output_tokens == 30


def test_what_can_not_be_counted_is_left_to_the_end_of_what_is_asked_for(old: list[Rollout]) -> None:
    damage(old[0])
    damage(old[2])
    assert prepare(row.pk for row in old) == [old[0].pk, old[2].pk]


def test_a_row_that_falls_behind_after_the_sweep_went_past_it_is_counted_too(old: list[Rollout]) -> None:
    sweep = Recounting()
    sweep.some()
    Rollout.objects.filter(pk=old[0].pk).update(counted_by=1)
    sweep.some()
    assert not Rollout.objects.behind().exists()


def test_a_count_by_a_newer_version_is_left_as_it_is(old: list[Rollout]) -> None:
    Rollout.objects.filter(pk=old[2].pk).update(counted_by=VERSION + 1)
    assert old[2].pk not in {each.rollout for each in recount_all()}
    assert list(recount([old[2].pk])) == []
    assert Rollout.objects.get(pk=old[2].pk).output_tokens == 30


def test_what_runs_or_is_gone_is_not_recounted(old: list[Rollout]) -> None:
    running = Recorder(recording(trial=9)).rollout
    Rollout.objects.filter(pk=running.pk).update(counted_by=1)
    assert running.pk not in {each.rollout for each in recount_all()}
    assert "still runs" in next(recount([running.pk])).error
    with pytest.raises(NotFound):
        next(recount([10_000]))


def test_a_rollout_that_is_deleted_while_it_is_read_is_passed_over(
    old: list[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleted(row: Rollout) -> dict[str, Any]:
        columns = counted_anew(row)
        if row.pk == old[0].pk:
            Rollout.objects.filter(pk=row.pk).delete()
        return columns

    monkeypatch.setattr(recounts, "counted_anew", deleted)
    assert [each.rollout for each in recount_all()] == [row.pk for row in old[1:]]
