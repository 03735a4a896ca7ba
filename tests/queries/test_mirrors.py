"""What is said of an experiment on an MLflow server."""

from __future__ import annotations

import pytest

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.experiments import ExperimentRecord
from harnesslab.queries.mirrors import run_document
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def test_a_run_states_the_conditions_of_all_its_rollouts_and_none_of_a_single_case() -> None:
    row = store_record(ExperimentRecord("e", project="tests"))
    for case in ("one", "two"):
        conditions = {"model.name": "m-1", "panel.case": case}
        made = recording(case=case, experiment="e", project="tests", conditions=conditions)
        store_recording(made, None)
    refresh([row.pk])
    said = run_document(row.pk, "").params
    assert said["model.name"] == "m-1"
    assert "panel.case" not in said
