"""What sources state of experiments is stored once, is never lost, and is counted from the rollouts beside it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.imports.importing import import_unit
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, State, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.formats.reading.inputs import Unit
from harnesslab.store.models import Experiment, Memo, Project
from harnesslab.store.text import thawed
from tests.formats.harness_training.test_harness_training import experiment, result
from tests.formats.making import file_unit, folder_unit
from tests.recordings import recording

pytestmark = pytest.mark.django_db
LEDGER = "commit\tstatus\tdescription\na1\tkeep\tbaseline\nb2\tdiscard\tworse\n"


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


def facts(row: Experiment) -> Any:
    row.refresh_from_db()
    return thawed(row.facts)


def test_a_record_that_comes_again_changes_nothing() -> None:
    record = ExperimentRecord("e", kind=ExperimentKind.CANDIDATE, verdict=Verdict.REJECTED, reason="r", facts={"a": 1})
    first, second = store_record(record), store_record(record)
    assert first.pk == second.pk
    assert (second.kind, second.verdict, second.reason, facts(second)) == ("candidate", "rejected", "r", {"a": 1})


def test_a_record_that_says_less_loses_nothing_and_one_that_says_more_adds() -> None:
    store_record(ExperimentRecord("e", kind=ExperimentKind.BASELINE, mechanism="m", decision={"x": 1}, solved=3))
    row = store_record(ExperimentRecord("e", verdict=Verdict.PROMOTED, facts={"indexed": True}))
    assert (row.kind, row.mechanism, row.solved, row.verdict) == ("baseline", "m", 3, "promoted")
    assert (thawed(row.decision), facts(row)) == ({"x": 1}, {"indexed": True})


@pytest.mark.parametrize("baseline_first", [True, False])
def test_a_baseline_is_found_whichever_of_the_two_comes_first(*, baseline_first: bool) -> None:
    records = [ExperimentRecord("base"), ExperimentRecord("candidate", baseline="base")]
    for record in records if baseline_first else reversed(records):
        store_record(record)
    assert Experiment.objects.get(name="candidate").baseline == Experiment.objects.get(name="base")


def test_an_experiment_that_was_measured_here_is_not_overwritten() -> None:
    project = Project.objects.create(name="imported")
    own = Experiment.objects.create(project=project, name="e", state=State.DONE, reason="ours")
    store_record(ExperimentRecord("e", reason="theirs"))
    own.refresh_from_db()
    assert own.reason == "ours"


def test_cases_are_counted_once_whether_they_ran_or_not() -> None:
    outcomes = {
        ("a", 0): Outcome.SOLVED,
        ("a", 1): Outcome.SOLVED,
        ("b", 0): Outcome.SOLVED,
        ("b", 1): Outcome.TIMEOUT,
        ("c", 0): Outcome.NOT_RUN,
    }
    for (case, trial), outcome in outcomes.items():
        store_recording(recording(case=case, trial=trial, outcome=outcome, experiment="e"), None)
    row = Experiment.objects.get(name="e")
    refresh([row.pk])
    row.refresh_from_db()
    assert (row.solved, row.total, row.trials) == (1, 3, 2)


def test_without_rollouts_what_was_stated_stays() -> None:
    row = store_record(ExperimentRecord("e", solved=4, total=9))
    refresh([row.pk])
    row.refresh_from_db()
    assert (row.solved, row.total) == (4, 9)


def test_a_memo_is_kept_once_and_follows_the_newest_experiment_that_it_names() -> None:
    memo = "# Learning memo\n- `aaa` x: y\n- `bbb` run-2: crashed\n"
    for name, revision, hour in (("run-2", "bbb", 2), ("run-3", "ccc", 3), ("run-1", "aaa", 1)):
        store_record(ExperimentRecord(name, revision=revision, memo=memo, started_at=at(hour)))
    kept = Memo.objects.get()
    assert kept.after is not None
    assert kept.after.name == "run-2"


def test_names_of_any_length_and_text_that_no_column_takes_are_stored() -> None:
    row = store_record(ExperimentRecord("n" * 900 + "\x00\udcff", mechanism="<b>\x00" * 300, facts={"x": "\x00\udcff"}))
    row.refresh_from_db()
    assert (len(row.name), facts(row)) == (200, {"x": "\x00\udcff"})


def run(**more: Any) -> Unit:
    document = experiment({"t": result("solved"), "u": None}, **more)
    return folder_unit("run-1", {"experiment.json": document})


def test_a_run_is_imported_with_its_experiment_counted() -> None:
    found = import_unit(run())
    row = Experiment.objects.get()
    assert (found.experiments, len(found.rollouts)) == (1, 2)
    assert (row.name, row.verdict, row.solved, row.total) == ("run-1", "rejected", 1, 2)


def test_importing_a_known_file_adds_what_a_database_from_before_does_not_have() -> None:
    import_unit(run(), project="mine")
    Experiment.objects.update(kind="", verdict="", solved=None, facts=b"")
    again = import_unit(run())
    row = Experiment.objects.get()
    assert (again.status, row.project.name) == ("duplicate", "mine")
    assert (row.kind, row.verdict, row.solved) == ("candidate", "rejected", 1)


def test_a_run_that_crashed_before_any_rollout_is_an_experiment() -> None:
    found = import_unit(folder_unit("r", {"experiment.json": experiment({}, crash_reason="worker died")}))
    assert (found.status, found.experiments, found.rollouts) == ("partial", 1, [])
    assert "worker died" in found.reason
    assert facts(Experiment.objects.get())["crash_reason"] == "worker died"


def test_a_ledger_is_experiments_alone_and_stays_in_its_project() -> None:
    first = import_unit(file_unit("results.tsv", LEDGER), project="mine")
    assert (first.status, first.experiments) == ("imported", 2)
    again = import_unit(file_unit("results.tsv", LEDGER))
    assert again.status == "duplicate"
    assert list(Experiment.objects.values_list("name", "project__name", "baseline__name").order_by("pk")) == [
        ("a1", "mine", None),
        ("b2", "mine", "a1"),
    ]


def test_a_ledger_that_grew_adds_its_new_rows() -> None:
    import_unit(file_unit("results.tsv", LEDGER))
    import_unit(file_unit("results.tsv", f"{LEDGER}c3\tkeep\tbetter\n"))
    assert Experiment.objects.count() == 3


def test_an_experiment_file_that_is_broken_keeps_the_rollouts() -> None:
    unit = folder_unit(
        "r", {"experiment.json": b"{", "tasks/t/agent/steps.jsonl": json.dumps({"event": "policy_rule"})}
    )
    found = import_unit(unit)
    assert (found.status, len(found.rollouts), found.experiments) == ("partial", 1, 0)
