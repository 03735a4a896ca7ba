"""A stored trace reads back exactly as it was recorded, from any position."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harnesslab.actions.rollouts.storing import store_recording, store_unsupported
from harnesslab.core.contracts.comparators import path
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.errors import NotComparable, NotFound
from harnesslab.core.trace import packing, seals
from harnesslab.core.trace.trace import messages_at
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Blob
from tests.recordings import recording, trace

pytestmark = pytest.mark.django_db


def test_events_payloads_and_seals_come_back_as_recorded() -> None:
    made = recording()
    reader = StoredTraceReader(store_recording(made, None))
    assert reader.trace() == made.trace
    seals.verify(reader.trace(), reader.seals())


def test_one_event_and_its_messages_are_read_without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 400)
    made = recording(commands=[f"command {number}" for number in range(40)])
    reader = StoredTraceReader(store_recording(made, None))
    assert len(reader._index) > 10
    for index in (2, 30, 78):
        assert reader.event(index) == made.trace.events[index]
        if reader.kinds[index] == "model_call":
            assert reader.messages(index) == messages_at(made.trace, index)
    assert len(reader._opened) <= 8


def test_the_raw_path_is_kept_and_equals_the_computed_one() -> None:
    made = recording()
    reader = StoredTraceReader(store_recording(made, None))
    kept, computed = reader.path(RAW), path(made.trace, RAW)
    assert (list(kept.indices), kept.own, kept.path) == (list(computed.indices), computed.own, computed.path)


def test_a_path_that_is_not_kept_is_computed() -> None:
    made = recording()
    reader = StoredTraceReader(store_recording(made, None))
    contract = Contract.parse("json")
    assert reader.path(contract).head == path(made.trace, contract).head


def test_a_level_without_its_record_is_not_comparable() -> None:
    reader = StoredTraceReader(store_recording(recording(), None))
    with pytest.raises(NotComparable):
        reader.path(Contract.parse("token-ids"))


def test_an_event_outside_the_trace_is_not_found() -> None:
    reader = StoredTraceReader(store_recording(recording(), None))
    with pytest.raises(NotFound):
        reader.event(999)


def test_large_openings_are_kept_once_for_all_rollouts() -> None:
    system = "rule. " * 2000
    first = recording()
    for trial in range(3):
        made = trace(system=system, digest=first.manifest.digest)
        stored = store_recording(replace(first, trace=made, trial=trial), None)
        assert StoredTraceReader(stored).trace() == made
    assert Blob.objects.count() == 1


def test_a_path_is_read_or_computed_once_also_where_there_is_none(django_assert_num_queries: Any) -> None:
    reader, absent, kept = StoredTraceReader(store_recording(recording(), None)), Contract.parse("token-ids"), RAW
    computed = Contract.parse("text")
    first = reader.path(kept), reader.path(computed)
    with pytest.raises(NotComparable, match="does not record token-ids"):
        reader.path(absent)
    with django_assert_num_queries(0):
        assert (reader.path(kept), reader.path(computed)) == first
        with pytest.raises(NotComparable, match="does not record token-ids"):
            reader.path(absent)


def test_kept_paths_are_read_in_one_query_and_what_is_not_kept_is_said(django_assert_num_queries: Any) -> None:
    rollout, absent = store_recording(recording(), None), Contract.parse("token-ids")
    store_unsupported(rollout.pk, absent)
    reader, other = StoredTraceReader(rollout), Contract.parse("text")
    with django_assert_num_queries(1):
        assert reader.read_paths([RAW, absent, other]) == [other]
    with django_assert_num_queries(0):
        assert reader.path(RAW).path == path(recording().trace, RAW).path
        with pytest.raises(NotComparable):
            reader.path(absent)
        assert reader.read_paths([RAW, absent]) == []
