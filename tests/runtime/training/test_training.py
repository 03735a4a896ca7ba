"""The loop as a whole: measure, certify, propose, measure, judge, promote, remember; stopped and taken up anywhere."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harnesslab.actions import progress
from harnesslab.actions.experiments import measurements
from harnesslab.actions.trainings import lifecycle as trainings
from harnesslab.core.errors import Conflict
from harnesslab.core.measuring.attribution import DifferenceOrigin
from harnesslab.core.measuring.certification import CertificateVerdict
from harnesslab.core.measuring.experiments import ExperimentKind, MeasuringPlan
from harnesslab.core.training.training import Proposer, ProposerKind, TrainingState
from harnesslab.queries.experiments.measurements import certificates_of
from harnesslab.queries.trainings.training import latest_memo
from harnesslab.store.models import Engine, Experiment, Iteration, Job, Rollout, Training
from harnesslab.store.text import as_object, thawed
from tests.runtime.training import rules
from tests.runtime.training.repositories import run_git
from tests.runtime.training.rules import CASES, case, drain, plan, project, queue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def trained(folder: Path, *changes: dict[str, str] | str, cases: Any = CASES, **fields: Any) -> Training:
    """Run a training over a patch queue to its end."""
    row, panel = project(folder, *cases)
    with rules.engine():
        training = trainings.train(row, panel, plan(queue(folder, *changes), len(changes), **fields))
        drain()
    training.refresh_from_db()
    return training


def states(training: Training) -> list[tuple[str, str]]:
    return [
        (iteration.state, iteration.reason)
        for iteration in Iteration.objects.filter(training=training).order_by("number")
    ]


def decision(iteration: Iteration) -> dict[str, Any]:
    assert iteration.candidate is not None
    return as_object(thawed(iteration.candidate.decision))


def test_a_training_promotes_what_helps_and_rejects_what_harms(tmp_path: Path) -> None:
    training = trained(tmp_path, {"b": "touch b"}, {"a": "true"}, "no patch at all")
    assert (training.state, training.sentence) == ("done", "all 3 iterations are over")
    assert [state for state, _ in states(training)] == ["promoted", "rejected", "skipped"]
    promoted, rejected, skipped = Iteration.objects.order_by("number")
    place = rules.place_of(tmp_path)
    assert run_git(place, "rev-parse", "main") == promoted.commit
    assert '"b"' in (place / "rules.json").read_text()
    assert run_git(place, "status", "--porcelain") == ""
    kept = run_git(place, "for-each-ref", "--format=%(objectname)", "refs/harnesslab/candidates").split()
    assert set(kept) == {promoted.commit, rejected.commit}
    assert decision(promoted)["new_solves"] == ["b"]
    assert decision(rejected)["regressions"] == ["a"]
    assert decision(promoted)["provisional"] is True
    assert rejected.baseline == promoted.candidate
    assert "does not apply" in skipped.reason
    memo = latest_memo(training.project)
    assert "promoted (strict_improvement_without_regression); solved 2/3, baseline 1; new: b; lost: none" in memo


def test_every_rollout_is_made_once(tmp_path: Path) -> None:
    training = trained(tmp_path, {"c": "touch c"}, {"b": "touch b"})
    counted = Counter(Rollout.objects.values_list("experiment__name", "case__name", "trial"))
    assert set(counted.values()) == {1}
    assert len(counted) == 3 * Experiment.objects.filter(training=training).count()


def test_a_flip_is_attributed_to_the_change_that_made_it(tmp_path: Path) -> None:
    trained(tmp_path, {"b": "touch b", "guard": "c"})
    (found,) = Iteration.objects.all()
    by_case = {each["case"]: each for each in decision(found)["attribution"]}
    assert by_case["b"]["origin"] == DifferenceOrigin.HARNESS
    assert by_case["b"]["flipped"] is True
    assert by_case["c"]["origin"] == DifferenceOrigin.MECHANISM
    assert by_case["c"]["mechanism"] == "guard"
    assert "a" not in by_case


def test_under_a_certified_engine_a_case_that_parts_by_itself_is_a_fault_of_the_measurement(tmp_path: Path) -> None:
    odd = case("c", setup=("touch x-$(cut -c1-8 /proc/sys/kernel/random/uuid)",))
    row, panel = project(tmp_path, case("a"), case("b"), odd)
    with rules.engine():
        Engine.objects.update(certified=True)
        trainings.train(row, panel, plan(queue(tmp_path, {"b": "touch b"}), 1, certify=False))
        drain()
    (iteration,) = Iteration.objects.all()
    kept = decision(iteration)
    assert (kept["measurement_faults"], kept["provisional"]) == (["c"], False)
    (found,) = [each for each in kept["attribution"] if each["case"] == "c"]
    assert (found["origin"], found["cause"]) == (DifferenceOrigin.INCIDENTAL, "environment")


def test_a_case_whose_environment_forks_is_excluded_and_says_where(tmp_path: Path) -> None:
    odd = case("b", setup=("touch x-$(cut -c1-8 /proc/sys/kernel/random/uuid)",))
    slow = case("c", made="sleep 20")
    training = trained(tmp_path, {"b": "touch b"}, cases=(case("a"), odd, slow))
    (iteration,) = Iteration.objects.filter(training=training)
    assert iteration.baseline is not None
    found = certificates_of(iteration.baseline)
    assert {name: each.verdict for name, each in found.items()} == {
        "a": CertificateVerdict.DETERMINISTIC,
        "b": CertificateVerdict.FORKED,
        "c": CertificateVerdict.NO_CHAIN,
    }
    fork = found["b"].fork
    assert fork is not None
    assert (fork.place, fork.command) == (0, "ls")
    assert fork.recorded != fork.live
    assert iteration.candidate is not None
    assert (iteration.candidate.total, iteration.state) == (1, "rejected")
    assert decision(iteration)["excluded"] == {"b": "forked", "c": "no_chain"}


def test_certificates_are_inherited_where_nothing_changed(tmp_path: Path) -> None:
    training = trained(tmp_path, {"b": "touch b"}, {"a": "true"})
    last = Iteration.objects.get(training=training, number=1)
    assert last.baseline is not None
    found = certificates_of(last.baseline)
    assert {case: bool(each.inherited) for case, each in found.items()} == {"a": True, "b": False, "c": True}


def test_the_baseline_measured_again_unchanged_flips_nothing(tmp_path: Path) -> None:
    training = trained(tmp_path, {"a": "true"}, unchanged=True)
    again = Experiment.objects.get(training=training, baseline__isnull=False, kind=ExperimentKind.BASELINE)
    assert again.baseline is not None
    assert (again.revision, again.solved, again.verdict) == (again.baseline.revision, again.baseline.solved, "")


def test_two_iterations_without_a_candidate_stop_it_and_it_can_go_on(tmp_path: Path) -> None:
    training = trained(tmp_path, "nothing", "nothing", {"b": "touch b"})
    assert training.state == TrainingState.STOPPED
    assert training.sentence.startswith("2 iterations in a row measured no candidate")


def test_a_training_stopped_in_mid_iteration_goes_on_where_it_was(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        training = trainings.train(row, panel, plan(queue(tmp_path, {"b": "touch b"}), 1))
        drain(2)
        trainings.stop(training.pk)
        assert drain() == 0
        assert Job.objects.filter(state="cancelled").count() == 1
        with pytest.raises(Conflict, match="not running"):
            trainings.stop(training.pk)
        trainings.resume(training.pk)
        for _ in range(40):
            if not drain(1):
                break
            training.refresh_from_db()
            if training.state == TrainingState.RUNNING:
                trainings.stop(training.pk)
                trainings.resume(training.pk)
    training.refresh_from_db()
    assert training.state == TrainingState.DONE
    assert [state for state, _ in states(training)] == ["promoted"]
    counted = Counter(Rollout.objects.values_list("experiment_id", "case_id"))
    assert set(counted.values()) == {1}


def test_a_dirty_working_tree_stops_a_promotion_which_is_made_once_it_is_clean(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    place = rules.place_of(tmp_path)
    with rules.engine():
        proposer = queue(tmp_path, {"b": "touch b"})
        training = trainings.train(row, panel, plan(proposer, 1))
        drain(4)
        (place / "harness.py").write_text("being edited")
        drain()
        training.refresh_from_db()
        assert training.state == TrainingState.STOPPED
        assert "harness.py" in training.sentence
        assert (place / "harness.py").read_text() == "being edited"
        with pytest.raises(Conflict, match="no commit holds"):
            trainings.resume(training.pk)
        run_git(place, "checkout", "-q", ".")
        trainings.resume(training.pk)
    training.refresh_from_db()
    assert (training.state, [state for state, _ in states(training)]) == ("done", ["promoted"])


def test_a_branch_that_moved_meanwhile_is_never_overwritten(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    place = rules.place_of(tmp_path)
    with rules.engine():
        training = trainings.train(row, panel, plan(queue(tmp_path, {"b": "touch b"}), 1))
        drain(4)
        run_git(place, "commit", "-q", "--allow-empty", "-m", "mine")
        mine = run_git(place, "rev-parse", "HEAD")
        drain()
    training.refresh_from_db()
    assert training.state == TrainingState.STOPPED
    assert "the branch moved" in training.sentence
    assert run_git(place, "rev-parse", "main") == mine


def test_another_engine_setting_between_baseline_and_candidate_is_refused_as_a_comparison(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        changes = queue(tmp_path, {"b": "touch b"}, {"c": "touch c"})
        training = trainings.train(row, panel, plan(changes, 2))
        drain(6)
        Engine.objects.update(ceiling=2)
        drain()
    (state, reason), (after, _) = states(training)
    assert state == "invalid"
    assert "serving.concurrency" in reason
    first, second = Iteration.objects.order_by("number")
    assert decision(first)["fields"] == ["serving.mode", "serving.concurrency"]
    assert first.baseline != second.baseline  # measured anew, under what holds now
    assert after == "promoted"


def test_a_measurement_that_outlives_its_training_is_concluded(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        trainings.train(row, panel, plan(queue(tmp_path, {"a": "true"}), 1, unchanged=True))
        drain(6)
        again = Experiment.objects.get(baseline__isnull=False, kind=ExperimentKind.BASELINE)
        Training.objects.update(state=TrainingState.DONE)
        drain()
        progress.follow_up()
    again.refresh_from_db()
    assert (again.state, again.solved) == ("done", 1)


def test_a_program_proposes_with_memo_and_evidence(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    code = (
        "import json, os, pathlib; evidence = pathlib.Path(os.environ['HARNESSLAB_EVIDENCE']);"
        "unsolved = sorted(path.name for path in evidence.glob('unsolved-*'));"
        "rules = json.loads(pathlib.Path('rules.json').read_text()); rules['c'] = 'touch c';"
        "pathlib.Path('rules.json').write_text(json.dumps(rules, indent=1) + chr(10));"
        "memo = pathlib.Path(os.environ['HARNESSLAB_MEMO']); memo.write_text('# Learning memo' + chr(10) + 'tried c');"
        "pathlib.Path(os.environ['HARNESSLAB_PROPOSAL']).write_text(json.dumps({'mechanism': ' '.join(unsolved)}))"
    )
    proposer = Proposer(ProposerKind.COMMAND, command=(sys.executable, "-c", code), name="agent", effort="high")
    with rules.engine():
        trainings.train(row, panel, plan(proposer, 1))
        drain()
    (iteration,) = Iteration.objects.all()
    assert (iteration.state, iteration.mechanism) == ("promoted", "unsolved-00.txt unsolved-01.txt")
    assert as_object(thawed(iteration.proposer))["model"] == "agent"
    memo = latest_memo(row)
    assert memo.startswith("# Learning memo\ntried c\n\n## What became of the candidates")


def test_a_rejected_candidate_of_two_trials_is_not_provisional_for_its_trials(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        asked = plan(queue(tmp_path, {"a": "true"}), 1)
        trainings.train(row, panel, msgspec.structs.replace(asked, measure=MeasuringPlan(rules.ENGINE, trials=2)))
        drain()
    (iteration,) = Iteration.objects.all()
    assert (decision(iteration)["provisional"], decision(iteration)["trials"]) == (False, 2)
    assert Rollout.objects.count() == 2 * 3 * 2


def test_a_second_training_of_a_branch_is_refused_while_one_runs(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        given = queue(tmp_path, {"a": "true"})
        first = trainings.train(row, panel, plan(given, 1), key="one")
        assert trainings.train(row, panel, plan(given, 1), key="one").pk == first.pk
        with pytest.raises(Conflict, match="is running"):
            trainings.train(row, panel, plan(given, 1), key="two")


def test_an_experiment_alone_is_measured_and_judged_against_its_baseline(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        baseline = measurements.measure(
            row, "main", panel, MeasuringPlan(rules.ENGINE), measurements.Purpose(ExperimentKind.BASELINE)
        )
        drain()
        rules.write_rules(rules.place_of(tmp_path), {**rules.FIRST, "b": "touch b"})
        run_git(rules.place_of(tmp_path), "commit", "-qam", "two")
        purpose = measurements.Purpose(ExperimentKind.CANDIDATE, baseline)
        made = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE), purpose, key="once")
        assert measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE), purpose, key="once").pk == made.pk
        drain()
    made.refresh_from_db()
    assert (made.state, made.solved, made.total, made.verdict) == ("done", 2, 3, "promoted")
    assert made.identity == Experiment.objects.get(pk=baseline.pk).identity != ""


def test_a_cancelled_experiment_keeps_what_was_measured(tmp_path: Path) -> None:
    row, panel = project(tmp_path)
    with rules.engine():
        made = measurements.measure(row, "main", panel, MeasuringPlan(rules.ENGINE))
        drain(1)
        assert measurements.cancel(made.pk) == 2
        assert drain() == 0
    made.refresh_from_db()
    assert (made.state, made.solved, made.total) == ("cancelled", 1, 3)
    with pytest.raises(Conflict, match="not running"):
        measurements.cancel(made.pk)
