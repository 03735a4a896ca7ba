"""Experiments alone: what waits, what is no comparison, what a mirror is told, and what the sweeper asks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harnesslab.actions import progress
from harnesslab.actions.experiments import measurements
from harnesslab.actions.experiments.certifications import ask_audits
from harnesslab.actions.experiments.sources import refresh
from harnesslab.actions.projects.mirrors import note_made
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.actions.trainings import lifecycle as trainings
from harnesslab.core.measuring.experiments import ExperimentKind, MeasuringPlan, State
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.training.training import Proposer, ProposerKind
from harnesslab.queries.experiments.measurements import measured
from harnesslab.queries.mirrors import waiting_experiments
from harnesslab.store.models import Experiment, Iteration, Job, JobState, Mirror, SourceFile
from harnesslab.store.text import as_object, thawed
from tests.recordings import recording
from tests.runtime.training import rules
from tests.runtime.training.rules import drain, plan, project
from workers.tasks.certifications import run_certification
from workers.tasks.job_runs import JobRun

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def candidate_of(baseline: Experiment, row: Any, panel: Any, trials: int = 1) -> Experiment:
    purpose = measurements.Purpose(ExperimentKind.CANDIDATE, baseline)
    return measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE, trials), purpose)


def test_a_candidate_waits_for_its_baseline_to_be_measured(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        baseline = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE))
        made = candidate_of(baseline, row, panel)
        waiting = Job.objects.filter(group=f"experiment {baseline.pk}")
        waiting.update(state=JobState.DONE)
        drain()
        made.refresh_from_db()
        assert (made.state, bytes(made.decision)) == (State.DONE, b"")
        waiting.update(state=JobState.QUEUED)
        drain()
        progress.follow_up()
    made.refresh_from_db()
    assert (made.verdict, made.reason) == ("rejected", "no_net_improvement")


@pytest.mark.parametrize(("trials", "says"), [(2, "trials"), (1, "has not measured a at every trial")])
def test_what_can_not_be_compared_says_so_once(tmp_path: Path, trials: int, says: str) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        baseline = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE))
        if trials == 1:
            Job.objects.filter(payload__recipe__case__name="a").update(state=JobState.CANCELLED)
        drain()
        made = candidate_of(baseline, row, panel, trials)
        drain()
    made.refresh_from_db()
    assert says in str(as_object(thawed(made.decision))["refused"])
    assert made.verdict == ""


def test_one_that_fails_keeps_the_sweeper_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        made = [measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE)) for _ in range(2)]
        Job.objects.update(state=JobState.DONE)
        conclude = measurements.conclude
        monkeypatch.setattr(progress, "conclude", lambda pk: 1 / 0 if pk == made[0].pk else conclude(pk))
        progress.follow_up()
    assert list(Experiment.objects.order_by("pk").values_list("state", flat=True)) == ["running", "done"]


def test_looking_after_what_has_ended_asks_little(tmp_path: Path, django_assert_max_num_queries: Any) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        baseline = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE, cases=("a",)))
        for _ in range(3):
            candidate_of(baseline, row, panel)  # no comparison, which is said once
        drain()
        with django_assert_max_num_queries(4):
            progress.follow_up()


def test_a_decision_is_copied_to_a_mirror_that_had_the_experiment_without(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    mirror = Mirror.objects.create(project=row, address="http://localhost:1", enabled=False)
    with rules.engine():
        baseline = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE))
        made = candidate_of(baseline, row, panel)
        note_made(mirror.pk, "run", experiment=made.pk)
        drain()
        assert waiting_experiments(mirror.pk, row.pk) == [baseline.pk, made.pk]
        note_made(mirror.pk, "run", experiment=made.pk)
        note_made(mirror.pk, "other", experiment=baseline.pk)
        assert waiting_experiments(mirror.pk, row.pk) == []
        ask_audits(baseline.pk)
        drain()
    assert waiting_experiments(mirror.pk, row.pk) == [baseline.pk]


def test_a_worker_that_shuts_down_in_an_audit_gives_it_back(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        made = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE))
        drain()
    told = iter([False])
    asked = JobRun(0, {"experiment": made.pk, "case": "a"}, lambda *_: True, lambda: next(told, True))
    assert run_certification(asked) == {"cancelled": True}


def test_what_is_imported_under_the_name_of_a_measured_experiment_is_no_part_of_it(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        made = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE))
        drain()
    source = SourceFile.objects.create(digest="0" * 64, name="x", format="bundle", size=1)
    fields: dict[str, Any] = {"project": row.name, "panel": panel.panel.name, "experiment": made.name, "case": "b"}
    store_recording(recording(outcome=Outcome.SOLVED, **fields), source)
    refresh([made.pk])
    made.refresh_from_db()
    assert (made.solved, made.total, measured(made.pk).solved) == (1, 3, {"a"})


def test_what_a_program_says_of_itself_is_kept_whatever_it_is(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    said = r'{"mechanism": "a\u0000b \ud800", "model": "\u0000", "cost": NaN, "changes": ["\udcff"]}'
    code = f"import os; open(os.environ['HARNESSLAB_PROPOSAL'], 'w').write({said!r}); open('rules.json', 'w').write('')"
    proposer = Proposer(ProposerKind.COMMAND, command=(sys.executable, "-c", code))
    with rules.engine():
        trainings.train(row, panel, plan(proposer, 1))
        drain()
    (iteration,) = Iteration.objects.all()
    kept = as_object(thawed(iteration.proposer))
    assert (kept["model"], kept["changed"], iteration.mechanism) == ("\0", ["\udcff"], "a␀b ?")
    assert iteration.candidate is not None
