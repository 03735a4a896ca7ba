"""An engine that dies in mid-experiment is shown down, and named where the result is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.measuring.experiments import State
from harnesslab.queries.experiments.progress import progress_of
from harnesslab.queries.jobs.groups import rollouts_group
from harnesslab.store.models import Engine, Experiment, Job, JobState, Project
from tests.runtime.driver.rig import case
from tests.workers.ordering import ENGINE, order, recipe, register
from workers.tasks import rollouts as task
from workers.tasks.job_runs import JobRun

pytestmark = pytest.mark.django_db


def test_an_engine_that_died_is_named_in_the_result_and_shown_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)
    monkeypatch.setattr(task, "PAUSE_S", 0.0)
    register("http://127.0.0.1:9")
    job = order(recipe(tmp_path, case()))
    with pytest.raises(task.RolloutFailed):
        task.run_rollout(JobRun(job.pk, job.payload, lambda *_: True, lambda: False))
    engine = Engine.objects.get()
    assert engine.up is False
    project = Project.objects.create(name="p")
    row = Experiment.objects.create(project=project, name="e", state=State.DONE, total=1)
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED, group=rollouts_group(row.pk))
    found = progress_of(row.pk)
    assert (found.lost, found.sentence.count(f"the engine {ENGINE} is down")) == (1, 1)
    assert "infrastructure lost 1" in found.sentence
