"""A lease outlives a database that is away for a moment, and no longer than another worker would wait."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError

from harnesslab.actions.jobs import leases
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.jobs.leases import HeldLease


def test_a_lease_is_kept_while_the_database_is_away_and_lost_once_it_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> bool:
        raise OperationalError("the database is away")

    monkeypatch.setattr(jobs, "heartbeat", away)
    monkeypatch.setattr(leases, "PROGRESS_S", 0.0)
    lease = HeldLease(1, "token", lambda: False)
    assert lease.progress(1, "one")
    assert not lease.stopped()
    monkeypatch.setattr(jobs, "LEASE", timedelta(0))
    assert lease.stopped()
    assert lease.refused
