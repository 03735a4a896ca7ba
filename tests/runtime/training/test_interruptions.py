"""Trainings that are stopped, taken up, killed between two writes, or asked about by several at a time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harnesslab.actions import progress
from harnesslab.actions.experiments import measurements
from harnesslab.actions.experiments.certifications import ask_audits
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.projects.memos import write_memo
from harnesslab.actions.trainings import iterations
from harnesslab.actions.trainings import lifecycle as trainings
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.experiments import State
from harnesslab.core.training.training import TrainingState
from harnesslab.queries.experiments.measurements import certificates_of, measured
from harnesslab.queries.trainings.training import latest_memo
from harnesslab.runtime.training.git import GitFailed
from harnesslab.runtime.training.repository import Repository
from harnesslab.store.models import Engine, Experiment, Iteration, Job, JobState, Rollout, Training
from harnesslab.store.text import as_object, frozen, thawed
from tests.runtime.training import rules
from tests.runtime.training.rules import drain, plan, project, queue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def begun(folder: Path, *changes: dict[str, str], **fields: Any) -> Training:
    """Begin a training over a patch queue."""
    row, panel = project(folder)
    return trainings.train(row, panel, plan(queue(folder, *changes), len(changes), **fields))


def once(training: Training) -> bool:
    """Say whether every rollout was made once."""
    made = Rollout.objects.filter(experiment__training=training)
    return set(Counter(made.values_list("experiment__revision", "case_id", "trial")).values()) == {1}


def test_a_rollout_that_still_runs_when_its_training_goes_on_is_not_lost(tmp_path: Path) -> None:
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        claimed = jobs.claim(Job.objects.order_by("pk")[0].pk)
        assert claimed is not None
        trainings.stop(training.pk)
        assert jobs.heartbeat(claimed[0].pk, claimed[1]) is False  # its worker is told, and winds down
        trainings.resume(training.pk)
        jobs.stop(claimed[0].pk, claimed[1])
        progress.after(claimed[0].group)
        drain()
    training.refresh_from_db()
    assert [iteration.state for iteration in Iteration.objects.all()] == ["promoted"]
    assert once(training)


def test_a_stopped_training_ends_no_experiment_whoever_looks(tmp_path: Path) -> None:
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        drain(1)
        trainings.stop(training.pk)
        progress.follow_up()
    made = Experiment.objects.get()
    assert (made.state, Job.objects.filter(state=JobState.CANCELLED).count()) == (State.RUNNING, 2)


def test_going_on_measures_nothing_again_of_what_has_ended(tmp_path: Path) -> None:
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        drain(3)
        baseline = Experiment.objects.get()
        failed = Job.objects.filter(group=f"experiment {baseline.pk}").order_by("pk")[0]
        Job.objects.filter(pk=failed.pk).update(state=JobState.FAILED)  # as where infrastructure failed it
        trainings.stop(training.pk)
        trainings.resume(training.pk)
        assert Job.objects.get(pk=failed.pk).state == JobState.FAILED
        drain()
    assert once(training)


def test_a_baseline_cancelled_while_its_training_is_stopped_is_measured_anew(tmp_path: Path) -> None:
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        drain(1)
        trainings.stop(training.pk)
        first = Experiment.objects.get()
        measurements.cancel(first.pk)
        trainings.resume(training.pk)
        assert not Job.objects.filter(group=f"experiment {first.pk}", state=JobState.QUEUED).exists()
        trainings.resume(training.pk)
        drain()
    training.refresh_from_db()
    assert [iteration.state for iteration in Iteration.objects.all()] == ["promoted"]
    assert Rollout.objects.filter(experiment=first).count() == 1


def test_a_training_that_skipped_two_iterations_goes_on_with_the_next(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        training = trainings.train(row, panel, plan(queue(tmp_path, "nothing", "nothing", {"b": "touch b"}), 3))
        drain()
        training.refresh_from_db()
        assert training.state == TrainingState.STOPPED
        trainings.resume(training.pk)
        drain()
    training.refresh_from_db()
    assert training.state == TrainingState.DONE
    assert [iteration.state for iteration in Iteration.objects.order_by("number")] == ["skipped", "skipped", "promoted"]


def test_one_project_never_trains_twice_at_a_time(tmp_path: Path) -> None:
    with rules.engine():
        first = begun(tmp_path, {"b": "touch b"})
        trainings.stop(first.pk)
        proposer = queue(tmp_path, {"c": "touch c"})
        second = trainings.train(first.project, first.panel, plan(proposer, 1))
        with pytest.raises(Conflict, match=f"training {second.pk} of the project is running"):
            trainings.resume(first.pk)
    first.refresh_from_db()
    assert first.state == TrainingState.STOPPED


@pytest.mark.parametrize("after", [0, 3])
def test_a_kill_after_ordering_orders_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """A baseline (after 0 jobs) and a candidate (after the baseline's 3, its audits and the proposal)."""
    killed: list[str] = []
    keep = Repository.keep_experiment

    def fails_once(self: Repository, name: str, commit: str) -> str:
        if len(killed) == (1 if after else 0):
            killed.append(name)
            raise GitFailed("killed here")
        killed.append(name)
        return keep(self, name, commit)

    monkeypatch.setattr(Repository, "keep_experiment", fails_once)
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        drain()
        training.refresh_from_db()
        assert (training.state, training.sentence) == (TrainingState.STOPPED, "killed here")
        trainings.resume(training.pk)
        drain()
    assert [iteration.state for iteration in Iteration.objects.all()] == ["promoted"]
    assert Experiment.objects.count() == 2
    assert once(training)


def test_notes_of_a_proposer_survive_a_kill_as_its_iteration_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []

    def fails_once(iteration: Iteration, notes: str | None) -> Any:
        if not failed:
            failed.append(iteration.pk)
            raise GitFailed("killed here")
        return write_memo(iteration, notes)

    monkeypatch.setattr(iterations, "write_memo", fails_once)
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        drain(7)
        Iteration.objects.update(proposer=_with_memo(Iteration.objects.get()))
        drain()
        trainings.resume(training.pk)
        drain()
    assert latest_memo(training.project).startswith("# Mine")


def _with_memo(iteration: Iteration) -> bytes:
    return frozen({**as_object(thawed(iteration.proposer)), "memo": "# Mine"})


def test_an_engine_retired_in_mid_training_makes_a_decision_provisional_not_impossible(tmp_path: Path) -> None:
    with rules.engine():
        begun(tmp_path, {"a": "true"})
        drain(9)
        Engine.objects.update(certified=True)
        rules.work(Job.objects.get(state=JobState.QUEUED))
        Engine.objects.update(retired=True)
        progress.follow_up()
    (iteration,) = Iteration.objects.all()
    assert iteration.candidate is not None
    assert (iteration.state, as_object(thawed(iteration.candidate.decision))["provisional"]) == ("rejected", True)


def test_a_program_error_fails_a_training_with_its_name_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rules.engine():
        training = begun(tmp_path, {"b": "touch b"})
        monkeypatch.setattr(iterations, "measured", lambda *_: 1 / 0)
        drain()
        progress.follow_up()
        training.refresh_from_db()
        assert (training.state, training.sentence) == (TrainingState.FAILED, "ZeroDivisionError: division by zero")
        monkeypatch.setattr(iterations, "measured", measured)
        trainings.resume(training.pk)
        drain()
    assert [iteration.state for iteration in Iteration.objects.all()] == ["promoted"]


def test_audits_group_a_candidate_that_a_training_is_done_with_are_gathered(tmp_path: Path) -> None:
    with rules.engine():
        begun(tmp_path, {"a": "true"})
        drain()
        (iteration,) = Iteration.objects.all()
        assert iteration.candidate is not None
        assert ask_audits(iteration.candidate.pk) is False
        drain()
    assert set(certificates_of(Experiment.objects.get(pk=iteration.candidate.pk))) == {"a", "b", "c"}
