"""Events and chunks can't be changed, not even in raw SQL; a whole rollout can be deleted by one audited action."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from harnesslab.accounts.models import User
from harnesslab.actions.annotations import delete_rollout
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import InvalidValue
from harnesslab.store.append_only import existing_triggers
from harnesslab.store.models import AuditEntry, Chunk, Event, Rollout
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def refused(statement: str, *values: int | str | bytes) -> bool:
    """Say whether the database refuses a statement."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, values)
    except DatabaseError as error:
        return "append-only" in str(error)
    return False


@pytest.fixture
def rollout() -> Rollout:
    return store_recording(recording(), None)


@pytest.mark.parametrize("table", ["store_event", "store_chunk"])
def test_update_and_delete_are_refused(rollout: Rollout, table: str) -> None:
    column = "step" if table == "store_event" else "first_event"
    assert refused(f"UPDATE {table} SET {column} = 7")
    assert refused(f"DELETE FROM {table}")


def test_replacing_a_row_is_refused(rollout: Rollout) -> None:
    first = Event.objects.order_by("key").first()
    assert first is not None
    columns, values = "key, kind, step, seal", (first.key, 0, 9, b"x" * 32)
    if connection.vendor == "sqlite":
        assert refused(f"INSERT OR REPLACE INTO store_event ({columns}) VALUES (%s, %s, %s, %s)", *values)
    else:
        update = "ON CONFLICT (key) DO UPDATE SET step = 9"
        assert refused(f"INSERT INTO store_event ({columns}) VALUES (%s, %s, %s, %s) {update}", *values)


def test_orm_updates_and_deletes_are_refused(rollout: Rollout) -> None:
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Event.objects.update(step=3)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Chunk.objects.all().delete()


def test_the_triggers_exist_after_all_migrations() -> None:
    if connection.vendor == "sqlite":
        expected = {
            f"store_{table}_no_{verb}" for table in ("event", "chunk") for verb in ("update", "delete", "replace")
        }
    else:
        expected = {"store_event_append_only", "store_chunk_append_only"}
    assert existing_triggers(connection) == expected


def test_deleting_a_rollout_leaves_an_audit_entry_with_its_seal(rollout: Rollout, admin: User) -> None:
    seal = bytes(rollout.head or b"").hex()
    delete_rollout(admin, rollout.pk, "recorded by mistake")
    assert not Rollout.objects.exists()
    assert not Event.objects.exists()
    assert not Chunk.objects.exists()
    entry = AuditEntry.objects.get(action="delete rollout")
    assert entry.detail["seal"] == seal
    assert entry.detail["reason"] == "recorded by mistake"


def test_deleting_one_rollout_leaves_the_others_protected(rollout: Rollout, admin: User) -> None:
    other = store_recording(recording(trial=1), None)
    delete_rollout(admin, rollout.pk, "one of two")
    assert Event.objects.count() == other.events
    assert refused("DELETE FROM store_event")


def test_deleting_needs_a_reason(rollout: Rollout, admin: User) -> None:
    with pytest.raises(InvalidValue, match="reason"):
        delete_rollout(admin, rollout.pk, "  ")
