"""The probe of a registered engine: what fails it is what the engine's page says."""

from __future__ import annotations

import pytest

from harnesslab.actions.engines.registration import register
from harnesslab.core.errors import HarnessLabError
from harnesslab.queries.engines import engine_row
from harnesslab.requests.engines import EngineRequest
from workers.tasks.engines import run_probe
from workers.tasks.job_runs import JobRun


@pytest.mark.django_db(transaction=True)
def test_an_engine_whose_probe_failed_is_no_longer_one_that_was_never_asked() -> None:
    made = register(
        EngineRequest(
            name="Box", kind="openai", address="http://127.0.0.1:9/v1", model="m", options={"api_key_env": "NOT_SET"}
        )
    )
    with pytest.raises(HarnessLabError):
        run_probe(JobRun(1, {"engine": made.pk}, lambda done, said: True, lambda: False))
    row = engine_row(made.pk)
    assert row.up is False
    assert "NOT_SET" in row.sentence
