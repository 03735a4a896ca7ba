"""Storing a recording: everything or nothing, whatever odd text is in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import ToolCall
from harnesslab.queries.rollouts.listing import facts_of, get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Event, Rollout, StoredManifest
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def test_the_row_holds_what_lists_show() -> None:
    row = store_recording(recording(budgets={"steps": 9}), None)
    assert (row.steps, row.outcome, row.reward) == (3, "solved", 1.0)
    assert (row.input_tokens, row.output_tokens, row.cached_tokens) == (303, 30, 150)
    assert row.budgets == {"steps": 9}


def test_tokens_that_nobody_stated_are_unknown_not_zero() -> None:
    made = recording(commands=[])
    assert store_recording(made, None).output_tokens is None


@pytest.mark.parametrize("odd", ["a\x00b", "\udcb2 ok", "\\u0000 literal", "🙂 \ud83d", "x" * 300_000])
def test_odd_text_is_stored_whole_and_its_digest_is_of_the_original(odd: str) -> None:
    made = recording(results={1: odd}, case=odd[:50], tags=(odd[:20],), model=odd[:30], facts={"note": odd})
    reader = StoredTraceReader(get_rollout(store_recording(made, None).pk))
    call = next(event for event in reader.trace().events if isinstance(event, ToolCall) and event.step == 1)
    assert call.result == odd
    assert facts_of(reader.rollout) == {"note": odd}
    seals.verify(reader.trace(), reader.seals())


def test_numbers_that_json_can_not_hold_are_kept() -> None:
    odd = {"loss": float("inf"), "big": 2**70}
    row = store_recording(recording(facts={"metrics": odd}), None)
    assert facts_of(get_rollout(row.pk)) == {
        "metrics": {"loss": {"$number": "Infinity"}, "big": {"$number": str(2**70)}}
    }


def test_names_that_only_differ_beyond_the_column_stay_apart() -> None:
    long = "case " * 200
    first, second = store_recording(recording(case=long + "a"), None), store_recording(recording(case=long + "b"), None)
    assert first.case_id != second.case_id


def test_equal_manifests_are_stored_once() -> None:
    store_recording(recording(trial=0), None)
    store_recording(recording(trial=1), None)
    assert StoredManifest.objects.count() == 1


def test_a_failure_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr("harnesslab.actions.rollouts.storing.store_path", fail)
    with pytest.raises(RuntimeError):
        store_recording(recording(), None)
    assert not Rollout.objects.exists()
    assert not Event.objects.exists()


def test_equal_behaviour_has_equal_paths_and_other_behaviour_has_not() -> None:
    same = [store_recording(recording(trial=trial), None) for trial in range(2)]
    other = store_recording(recording(trial=2, results={2: "else"}), None)
    assert bytes(same[0].path or b"") == bytes(same[1].path or b"")
    assert bytes(same[0].path or b"") != bytes(other.path or b"")


def test_an_error_is_stored_as_such() -> None:
    made = replace(recording(outcome=Outcome.CRASH), reward=None)
    row = store_recording(made, None)
    assert (row.outcome, row.reward) == ("crash", None)
