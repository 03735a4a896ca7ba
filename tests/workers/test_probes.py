"""The probe of an engine: what it found is kept, and what a stop cut short is not."""

from __future__ import annotations

import pytest

from harnesslab.actions.engines import registration as engines
from harnesslab.actions.engines.slots import DatabaseSlots
from harnesslab.queries.engines import get_engine
from tests.runtime.driver.rig import model
from tests.workers.ordering import register
from workers.tasks.engines import run_probe
from workers.tasks.job_runs import JobRun

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("answered", [0, 1])
def test_a_probe_that_is_stopped_changes_nothing_that_was_known(answered: int) -> None:
    with model("x") as served:
        made = register(served.address, ceiling=1)
        engines.note_probe(made, {"sentences": ["known"]}, seed_honoured=True)
        if not answered:
            DatabaseSlots().ask(made, 1, "another request")
        stop = JobRun(1, {"engine": made}, lambda *_: True, lambda: len(served.bodies) >= answered)
        assert run_probe(stop) == {"cancelled": True}
    row = get_engine(made)
    assert (row.seed_honoured, row.probe) == (True, {"sentences": ["known"]})


def test_a_probe_keeps_what_it_found() -> None:
    with model("x") as served:
        made = register(served.address)
        result = run_probe(JobRun(1, {"engine": made}, lambda *_: True, lambda: False))
    assert result["up"] is True
    assert get_engine(made).probe["sentences"]
