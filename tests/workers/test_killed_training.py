"""`kill -9` of worker and sweeper in mid-iteration: the training goes on, and no rollout is lost or doubled."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from harnesslab.actions import progress
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.trainings import lifecycle as trainings
from harnesslab.core.training.training import TrainingState
from harnesslab.store.models import Experiment, Iteration, Job, JobState, Rollout, Training
from tests.rig import wait_until
from tests.runtime.training import rules
from tests.runtime.training.rules import plan, project, queue
from tests.workers.conftest import Start

pytestmark = [pytest.mark.serial, pytest.mark.django_db(transaction=True)]


def test_a_worker_killed_in_mid_iteration_costs_only_what_it_was_doing(
    start: Start, tmp_path: Path, worker_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # this process is the sweeper, whose locks lie where the workers' do
    monkeypatch.setattr(settings, "CONFIG", dataclasses.replace(settings.CONFIG, home=worker_home))
    row, panel = project(tmp_path)
    with rules.engine(ceiling=2):
        training = trainings.train(row, panel, plan(queue(tmp_path, {"b": "touch b"}, {"a": "true"}), 2))
        kills = 0
        while kills < 3:
            worker = start()
            seen = Rollout.objects.exclude(head=None).count()
            wait_until(lambda seen=seen: _moved(training, seen), 60, "the training to move")  # type: ignore[misc]
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
            kills += 1
            Job.objects.filter(state=JobState.RUNNING).update(lease_until=timezone.now() - timedelta(seconds=1))
            jobs.sweep()
            progress.follow_up()
        start()
        wait_until(lambda: _followed(training), 90, "the training to end")
    assert training.state == TrainingState.DONE
    assert [iteration.state for iteration in Iteration.objects.order_by("number")] == ["promoted", "rejected"]
    ended = Rollout.objects.exclude(outcome="interrupted").values_list("experiment_id", "case_id", "trial")
    assert set(Counter(ended).values()) == {1}
    assert len(ended) == 3 * Experiment.objects.count() == 9
    assert not Rollout.objects.filter(head=None).exists()


def _moved(training: Training, seen: int) -> bool:
    training.refresh_from_db()
    return training.state != TrainingState.RUNNING or Rollout.objects.exclude(head=None).count() > seen


def _followed(training: Training) -> bool:
    """Do what the sweeper does, and say whether the training is over."""
    progress.follow_up()
    training.refresh_from_db()
    return training.state != TrainingState.RUNNING
