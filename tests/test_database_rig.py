"""The database of the tests is as strict as the real one, also after a test that emptied it."""

from __future__ import annotations

import pytest
from django.db import connection

from harnesslab.store.append_only import TABLES, existing_triggers
from harnesslab.store.models import Project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("turn", [1, 2])
def test_triggers_are_there_and_rows_are_not(turn: int) -> None:
    triggers = existing_triggers(connection)
    assert all(any(name.startswith(table) for name in triggers) for table in TABLES)
    assert not Project.objects.exists()
    Project.objects.create(name=f"of turn {turn}")
