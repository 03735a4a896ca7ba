"""What else is stored of a rollout: its manifest, whether its seals hold, its counts, notes, and saved views."""

from __future__ import annotations

import pytest
from django.db import connection

from harnesslab.accounts.models import User
from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.queries.rollouts.annotations import notes_of, views_of
from harnesslab.queries.rollouts.consistency import check_consistency
from harnesslab.queries.rollouts.counts import behind, counting, numbers_of
from harnesslab.queries.rollouts.manifests import find_manifest, load_manifest, manifest_bytes, manifests_of, users_of
from harnesslab.store.append_only import drop_triggers
from harnesslab.store.models import Chunk, Note, Rollout, SavedView
from harnesslab.store.text import frozen, thawed
from tests.recordings import recording, served

pytestmark = pytest.mark.django_db


def test_a_manifest_reads_back_and_is_found_by_the_beginning_of_its_digest() -> None:
    made = recording(conditions={"model.name": "<b>\x00ü"})
    row = store_recording(made, None)
    assert load_manifest(row.manifest_id) == made.manifest
    assert Manifest.from_json(made.manifest.to_json()).digest == row.manifest_id
    assert find_manifest(row.manifest_id[:8]) == row.manifest_id
    assert manifest_bytes(row.manifest_id)


@pytest.mark.parametrize("text", ["", "x", "%", "_", "\x00", "ABC", "0" * 65, "f" * 64, "' or 1=1"])
def test_what_begins_no_manifest_is_one_sentence(text: str) -> None:
    store_recording(recording(), None)
    with pytest.raises(NotFound, match="no such manifest"):
        find_manifest(text)


def test_a_beginning_that_several_manifests_have_names_none() -> None:
    digests = [store_recording(recording(case=f"{n}"), None).manifest_id for n in range(17)]
    shared = next(first for first in "0123456789abcdef" if sum(each.startswith(first) for each in digests) > 1)
    with pytest.raises(NotFound, match="several manifests begin like this"):
        find_manifest(shared)


def test_rollouts_under_a_manifest_and_manifests_of_rollouts() -> None:
    rows = [store_recording(recording(trial=trial), None) for trial in range(3)]
    assert users_of(rows[0].manifest_id) == [(row.pk, "case-1", row.trial) for row in rows]
    found = manifests_of({"a": rows[0].pk, "gone": 999})
    assert list(found) == ["a"]
    assert found["a"].digest == rows[0].manifest_id


def test_an_untouched_trace_is_consistent_and_says_that_nothing_ran() -> None:
    row = store_recording(recording(), None)
    found = check_consistency(row.pk)
    assert (found.consistent, found.events) == (True, row.events)
    assert found.sentence.startswith(f"Consistent: all {row.events} events match their seals")
    assert found.sentence.endswith("Nothing was run.")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"head": b"x" * 32}, "the last seal is not the head"),
        ({"path": b"x" * 16}, "the path computed anew is not the one"),
    ],
)
def test_what_was_changed_afterwards_is_named(changes: dict[str, bytes], why: str) -> None:
    row = store_recording(recording(), None)
    Rollout.objects.filter(pk=row.pk).update(**changes)
    found = check_consistency(row.pk)
    assert not found.consistent
    assert found.sentence.startswith(f"Not consistent: {why}")


def test_a_trace_under_another_manifest_is_not_consistent() -> None:
    row, other = (store_recording(recording(case=case), None) for case in "ab")
    Rollout.objects.filter(pk=row.pk).update(manifest=other.manifest_id)
    assert "the manifest is not the one" in check_consistency(row.pk).sentence


def test_what_still_runs_or_is_not_there_is_one_sentence() -> None:
    recorder = Recorder(recording())
    with pytest.raises(Conflict, match="it still runs"):
        check_consistency(recorder.rollout.pk)
    with pytest.raises(NotFound, match="there is no rollout 999"):
        check_consistency(999)


def test_counts_say_what_they_leave_out() -> None:
    whole, part = store_recording(recording(), None), store_recording(served(recording(trial=1)), None)
    assert counting(whole) == []
    assert counting(part) == ["2 of 3 answers were served, not spent"]
    assert behind() == 0
    Rollout.objects.filter(pk=whole.pk).update(counted_by=1, anatomy=b"")
    assert counting(Rollout.objects.get(pk=whole.pk)) == [f"counted by version 1, not yet by {VERSION}"]
    assert behind() == 1
    numbers = numbers_of(thawed(part.anatomy))
    assert (numbers["calls"], numbers["served"]) == (1, 2)
    assert "steps" not in numbers


def test_notes_come_oldest_first_and_views_by_name_each_of_its_own(viewer: User, operator: User) -> None:
    row, other = (store_recording(recording(case=case), None) for case in "ab")
    for step, text in ((None, "<b>first"), (2, "second")):
        Note.objects.create(rollout=row, author=operator, step=step, text=text)
    assert [(note.step, note.text, note.author) for note in notes_of(row.pk)] == [
        (None, "<b>first", "olga"),
        (2, "second", "olga"),
    ]
    assert notes_of(other.pk) == []
    for name in ("z", "a"):
        SavedView.objects.create(user=viewer, name=name, query=f"tag={name}")
    assert views_of(viewer.pk) == [("a", "tag=a"), ("z", "tag=z")]
    assert views_of(operator.pk) == []


@pytest.mark.parametrize("data", [b"", b"no zstd", frozen({"not": "a chunk"})])
def test_a_chunk_that_can_not_be_read_is_named_and_nothing_breaks(data: bytes) -> None:
    row = store_recording(recording(), None)
    drop_triggers(connection)  # as one would who means to change a sealed trace; the test's end takes it back
    Chunk.objects.update(data=data)
    found = check_consistency(row.pk)
    assert not found.consistent
    assert found.sentence.startswith("Not consistent: ")
