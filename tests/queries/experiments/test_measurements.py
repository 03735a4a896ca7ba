"""Experiments that are measured here: what is missing, progress, what one would cost, certificates, matrices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from harnesslab.actions.asking import ask_experiment
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.measuring.experiments import State
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.certificates import audits, certificates
from harnesslab.queries.experiments.estimates import estimate
from harnesslab.queries.experiments.matrices import matrices
from harnesslab.queries.experiments.measurements import (
    baselines_of,
    certificates_of,
    certified_cases,
    counted_rollouts,
    crashed_by_harness,
    experiment_named,
    get_measured,
    measured,
    measuring_plan_of,
    rollouts_of,
)
from harnesslab.queries.experiments.progress import SHOWN, progress_of
from harnesslab.queries.projects.bindings import revisions_of
from harnesslab.queries.stories.experiment import experiment_card
from harnesslab.requests.experiments import ExperimentRequest
from harnesslab.store.models import Experiment, Job, JobState, PanelRevision, Project, Rollout, SourceFile
from harnesslab.store.text import frozen
from tests import measuring
from tests.hostile import TEXTS
from tests.pages.experiments import SOLVED, lineage
from tests.pages.experiments import measured as imported
from tests.recordings import recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def asked(**changes: object) -> Experiment:
    return ask_experiment(ExperimentRequest.model_validate(measuring.asked(**changes)))


def test_what_is_planned_and_has_not_ended_is_missing(project: Project) -> None:
    row = asked(trials=2)
    found = measured(row.pk)
    assert found.missing == (("a", 0), ("a", 1), ("b", 0), ("b", 1))
    assert (dict(found.cases), found.solved) == ({}, set())


def test_a_case_is_solved_at_every_planned_trial_or_not(project: Project) -> None:
    row = asked()
    rollout = measuring.ended(row, "a")
    found = measured(row.pk)
    assert (found.missing, found.solved) == ((("b", 0),), {"a"})
    assert (counted_rollouts(row.pk), [each.pk for each in rollouts_of(row.pk, "a")]) == ([rollout.pk], [rollout.pk])
    assert rollouts_of(row.pk, "b") == []
    Rollout.objects.update(outcome=Outcome.RUNNING)
    assert measured(row.pk).missing == (("a", 0), ("b", 0))


def test_progress_counts_of_all_and_estimates_from_what_has_ended(project: Project) -> None:
    row = asked()
    view = progress_of(row.pk)
    assert (view.total, view.ended, view.solved, view.running, view.waiting, view.left) == (2, 0, 0, 0, 2, None)
    assert view.sentence == "0 of 2 rollouts have ended; 0 run, 2 wait."
    rollout = measuring.ended(row, "a", Outcome.FAILED_VERIFICATION)
    begun = timezone.now() - timedelta(seconds=10)
    Job.objects.filter(state=JobState.DONE).update(started_at=begun, ended_at=begun + timedelta(seconds=4))
    view = progress_of(row.pk)
    assert view.sentence == "1 of 2 rollouts has ended, 0 of them solved; 0 run, 1 waits."
    assert view.left == pytest.approx(4)
    assert [(each.case, each.outcome, each.rollout, each.ended) for each in view.rows] == [
        ("a", "failed_verification", rollout.pk, True),
        ("b", "", None, False),
    ]
    measuring.ended(row, "b")
    view = progress_of(row.pk)
    assert (view.over, view.left, view.sentence) == (
        True,
        None,
        "Measured: all 2 rollouts have ended, 1 of them solved.",
    )


def test_nothing_taken_for_a_while_is_unattended_and_no_total_is_no_percentage(project: Project) -> None:
    row = asked()
    assert not progress_of(row.pk).unattended
    Job.objects.update(created_at=timezone.now() - timedelta(minutes=1), total=None)
    view = progress_of(row.pk)
    assert (view.unattended, view.rows[0].percent) == (True, None)
    Job.objects.filter(pk=view.rows[0].job).update(state=JobState.RUNNING, done=5, total=4)
    view = progress_of(row.pk)
    assert (view.unattended, view.rows[0].percent) == (False, 100)


def test_progress_takes_as_many_queries_for_many_as_for_few(project: Project, django_assert_num_queries: Any) -> None:
    row = asked()
    with django_assert_num_queries(6):
        progress_of(row.pk)
    group = f"experiment {row.pk}"
    Job.objects.bulk_create(Job(kind="rollout", group=group, state=JobState.DONE) for _ in range(SHOWN))
    last = Job.objects.create(kind="rollout", group=group, state=JobState.RUNNING, started_at=timezone.now())
    with django_assert_num_queries(6):
        view = progress_of(row.pk)
    assert (view.rows[0].job, len(view.rows), view.total) == (last.pk, SHOWN + 1, SHOWN + 3)


def test_an_imported_experiment_has_no_progress_and_no_plan() -> None:
    row = imported("a", {"one": SOLVED})
    assert progress_of(row.pk).sentence == "a was not measured here."
    with pytest.raises(NotFound, match="a was not measured here, so that it has no plan"):
        measuring_plan_of(get_measured(row.pk))
    assert measured(row.pk).missing == ()
    for read in (get_measured, progress_of):
        with pytest.raises(NotFound, match="there is no experiment 999"):
            read(999)


def test_a_name_that_several_projects_have_is_told_apart_by_one() -> None:
    for name in ("p", "q"):
        imported("same", {}, project=name)
    assert experiment_named("same", "q").project.name == "q"
    with pytest.raises(Conflict, match="several projects have an experiment 'same': 'p', 'q'"):
        experiment_named("same")
    for name in (*TEXTS, "gone"):
        with pytest.raises(NotFound, match="there is no experiment"):
            experiment_named(name)


def test_baselines_that_are_offered_have_ended_and_say_what_they_solved(project: Project) -> None:
    row = asked()
    assert baselines_of(project) == []
    for case in ("a", "b"):
        measuring.ended(row, case)
    assert baselines_of(project) == [(row.name, "2/2", row.revision[:8])]
    Experiment.objects.update(state=State.CANCELLED)
    assert baselines_of(project) == []


def test_an_estimate_is_of_what_earlier_rollouts_of_the_cases_took(project: Project) -> None:
    panel = PanelRevision.objects.get()
    nothing = estimate(panel, ["a", "b"], 1, "E")
    assert (nothing.known, nothing.seconds, nothing.output_tokens) == (0, None, None)
    assert nothing.sentence.endswith("nothing is known of what they take, since none of these cases ran here before.")
    row = asked()
    measuring.ended(row, "a")
    half = estimate(panel, ["a", "b", "a"], 2, "E")
    assert (half.cases, half.rollouts, half.known, half.based_on) == (2, 4, 1, 1)
    assert half.output_tokens == 4 * 30
    assert half.sentence.endswith("going by 1 earlier rollout of 1 of the cases.")
    elsewhere = estimate(panel, ["a"], 1, "another engine")
    assert elsewhere.based_on == 1


def test_tokens_are_told_where_the_time_is_unknown(project: Project) -> None:
    measuring.ended(asked(), "a")
    Rollout.objects.update(seconds=None)
    found = estimate(PanelRevision.objects.get(), ["a"], 1, "E")
    assert (found.seconds, found.output_tokens) == (None, 30)
    assert "none of these cases ran here before" not in found.sentence
    assert "how long they take is unknown" in found.sentence
    assert "30 output tokens" in found.sentence
    Rollout.objects.update(output_tokens=None, input_tokens=None)
    found = estimate(PanelRevision.objects.get(), ["a"], 1, "E")
    assert found.sentence.endswith(
        "1 case × 1 trial = 1 rollout: how long they take is unknown; going by 1 earlier rollout."
    )


def test_certificates_come_exclusions_first_and_forks_show_what_differed() -> None:
    row = imported("a", {"one": SOLVED})
    said: JSON = {
        "fine": {"verdict": "deterministic", "commands": 3},
        "odd": {"verdict": "forked", "fork": {"command": "date", "place": 1, "recorded": "x\n1", "live": "x\n2"}},
        "none": {"verdict": "no_chain", "why": "no commands", "inherited": "base"},
        "strange": {"verdict": 5, "commands": "x"},
    }
    Experiment.objects.filter(pk=row.pk).update(certification=frozen(said))
    rows = certificates(Experiment.objects.get(pk=row.pk))
    assert [(each.case, each.verdict, each.commands) for each in rows] == [
        ("odd", "forked", None),
        ("none", "no_chain", None),
        ("strange", "", None),
        ("fine", "deterministic", 3),
    ]
    fork = rows[0].fork
    assert fork is not None
    assert (fork.command, fork.place, fork.rollout) == ("date", 1, None)
    assert rows[1].inherited == "base"
    assert certificates_of(Experiment.objects.get(pk=row.pk)) == {}  # an imported one keeps other documents
    assert certified_cases(Experiment.objects.get(pk=row.pk)) == []


def test_a_fork_that_only_a_rollout_tells_is_found_there() -> None:
    row, *_ = lineage()
    fork = {"action_index": 1, "action": {"command": "cat a.txt"}, "live": {"raw_env_output": {"stdout": "other"}}}
    made = store_recording(
        recording(case="odd", experiment="base", facts={"rollout": {"determinism_fork": fork}}, trial=1), None
    )
    (odd, *_) = certificates(Experiment.objects.get(pk=row.pk))
    assert odd.fork is not None
    assert (odd.fork.rollout, odd.fork.command, odd.fork.place) == (made.pk, "cat a.txt", 1)
    assert {line.text for line in odd.fork.changes} >= {"output of cat a.txt", "other"}


def test_audits_are_by_case_the_newest_of_each() -> None:
    for state, case in ((JobState.FAILED, "a"), (JobState.DONE, "b"), (JobState.QUEUED, "a")):
        Job.objects.create(kind="certify", group="certify 7", state=state, payload={"case": case})
    assert audits(7) == {"a": "queued", "b": "done"}
    assert audits(8) == {}


@pytest.mark.parametrize(
    ("facts", "own"),
    [({}, False), ({"crash_origin": "harness"}, True), ({"rollout": {"failure_origin": "policy"}}, True)],
)
def test_a_crash_is_the_harnesss_own_only_where_it_is_said(facts: dict[str, Any], own: bool) -> None:
    row = store_recording(recording(outcome=Outcome.CRASH, facts=facts), None)
    assert crashed_by_harness(row.pk) is own


@pytest.mark.parametrize("project", ["", "none", "\x00", "\udc80"])
def test_without_a_matrix_there_is_none(project: str, db: None) -> None:
    assert matrices(project) == {}


def test_a_matrix_is_added_up_by_run_over_its_cells_and_no_rerun() -> None:
    source = SourceFile.objects.create(digest="1", name="m", format="harness-matrix", size=1)
    for number, (cell, case, one_shot) in enumerate((("x", "s1", True), ("y", "s1", False), ("x", "s2", False))):
        row = imported(f"run {cell}", {})
        Experiment.objects.filter(pk=row.pk).update(facts=frozen({"cell": cell}))
        trial: JSON = {"one_shot": one_shot, "eventual": True, "usage": {"total": 10, "cost": 0.5}, "failures": "none"}
        made = store_recording(recording(case=case, experiment=f"run {cell}", facts={"trial": trial}), None)
        Rollout.objects.filter(pk=made.pk).update(source=source, position=number)
    again = store_recording(recording(case="s1", experiment="run x", trial=1), None)
    Rollout.objects.filter(pk=again.pk).update(source=source, position=9, mode="live")
    assert list(matrices()) == list(matrices("tests")) == ["run"]
    assert matrices("another") == {}
    assert matrices()["run"] == matrices("tests")["run"]


def test_a_card_tells_how_it_was_asked_for_and_what_its_revision_changed(project: Project) -> None:
    row = asked(trials=2, seed="7")
    card = experiment_card(row.pk)
    assert dict(card.plan)["trials a case"] == "2"
    assert dict(card.plan)["engine"] == "E"
    assert dict(card.plan)["panel"].endswith("all its cases")
    (newest,) = revisions_of(project).rows[:1]
    for base, why in (("f" * 40, "The diff can't be read"), ("../x", "Its revision is no commit."), (row.revision, "")):
        Experiment.objects.filter(pk=row.pk).update(parent_revision=base)
        change = experiment_card(row.pk).change
        assert change.why_not.startswith(why or "Nothing was changed.")
        assert "\n" not in change.why_not
    assert newest.commit
