"""What of a project is on an MLflow server, what is not yet, and what is said there."""

from __future__ import annotations

import pytest

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.projects.mirrors import mirror_to, note_made, turn_off
from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.experiments import ExperimentRecord, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.mirrors import (
    enabled_mirrors,
    get_mirror,
    get_target,
    lacks,
    mirror_of,
    mirror_row,
    mirrored_run,
    run_document,
    trace_document,
    waiting_experiments,
    waiting_rollouts,
)
from harnesslab.store.models import Rollout
from tests.pages.experiments import FAILED, SOLVED, measured
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


def test_what_is_not_on_the_server_yet_is_counted_and_nothing_that_still_runs(no_wake_up: None) -> None:
    row = measured("a", {"one": SOLVED, "two": FAILED})
    measured("b", {"one": SOLVED}, project="another")
    Recorder(recording(project="tests"))
    mirror = mirror_to(row.project, "http://127.0.0.1:9")
    view = mirror_of(row.project_id)
    assert view is not None
    assert (view.experiments, view.rollouts, view.waiting, view.experiment) == (0, 0, 3, "tests")
    assert lacks(mirror)
    ids = (mirror.pk, row.project_id)
    assert (list(waiting_experiments(*ids)), len(waiting_rollouts(*ids))) == ([row.pk], 2)
    note_made(mirror.pk, "run-1", experiment=row.pk)
    for number in waiting_rollouts(*ids):
        note_made(mirror.pk, f"trace-{number}", rollout=number)
    view = mirror_row(get_mirror(row.project))
    assert (view.experiments, view.rollouts, view.waiting, lacks(mirror)) == (1, 2, 0, False)
    assert (mirrored_run(mirror.pk, row.pk), mirrored_run(mirror.pk, None), mirrored_run(mirror.pk, 999)) == (
        "run-1",
        "",
        "",
    )


def test_a_project_without_a_mirror_and_a_mirror_that_was_forgotten_are_one_sentence(no_wake_up: None) -> None:
    row = measured("a", {"one": SOLVED})
    assert mirror_of(row.project_id) is None
    with pytest.raises(NotFound, match="has no mirror"):
        get_mirror(row.project)
    with pytest.raises(NotFound, match="there is no mirror 999"):
        get_target(999)
    mirror = mirror_to(row.project, "http://127.0.0.1:9", experiment="other")
    assert get_target(mirror.pk).name == "other"
    assert [each.pk for each in enabled_mirrors()] == [mirror.pk]
    turn_off(row.project)
    assert enabled_mirrors() == []


def test_a_run_says_only_what_is_known_and_what_all_its_rollouts_share() -> None:
    row = measured("a", {"one": SOLVED, "two": FAILED}, mechanism="", verdict=Verdict.REJECTED)
    found = run_document(row.pk, "http://here/1")
    assert found.metrics["solved"] == 1.0
    assert found.metrics["rollouts"] == 2.0
    assert found.metrics["output_tokens"] == 60.0
    assert found.params["model.name"] == "m-1"
    assert "panel.case" not in found.params
    assert found.tags == {"harnesslab.verdict": "rejected", "harnesslab.link": "http://here/1"}
    Rollout.objects.update(output_tokens=None)
    assert "output_tokens" not in run_document(row.pk, "").metrics


def test_a_trace_says_its_outcome_and_whether_it_failed_for_no_fault_of_its_case() -> None:
    for outcome, failed in ((SOLVED, False), (FAILED, False), (Outcome.CRASH, True), (Outcome.INFRA_ERROR, True)):
        row = store_recording(recording(outcome=outcome, case=outcome.value), None)
        found = trace_document(row.pk, "")
        assert (found.failed, found.tags["harnesslab.outcome"]) == (failed, outcome.value)
        assert found.seal == bytes(row.head or b"").hex()[:16]
        assert "harnesslab.link" not in found.tags
