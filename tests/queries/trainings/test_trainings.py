"""Trainings as they are read: where one has come to, what it waits for, and what its proposer is given."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.experiments import MeasuringPlan
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.training.training import Proposer, ProposerKind, TrainingPlan
from harnesslab.queries.stories.memos import memo_view
from harnesslab.queries.trainings.evidence import LONGEST, TRACES, evidence
from harnesslab.queries.trainings.iterations import iteration_row, link_of, waits_for
from harnesslab.queries.trainings.listing import training_rows, training_view
from harnesslab.queries.trainings.training import (
    case_names,
    concluded,
    get_iteration,
    get_training,
    latest_memo,
    repository_of,
    trainings_to_follow,
    used_patches,
)
from harnesslab.store.models import Experiment, Iteration, Job, JobState, PanelRevision, Project, Rollout, Training
from harnesslab.store.text import frozen
from tests import live
from tests.pages.experiments import FAILED, HOSTILE, SOLVED, measured

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def training(project: Project, epochs: int = 3, **fields: Any) -> Training:
    plan = TrainingPlan(MeasuringPlan(live.ENGINE), Proposer(ProposerKind.PATCHES, folder="/patches"), epochs)
    panel = PanelRevision.objects.order_by("pk")[0]
    return Training.objects.create(project=project, panel=panel, plan=frozen(plan.to_json()), **fields)


def iteration(made: Training, number: int, state: str, **fields: Any) -> Iteration:
    return Iteration.objects.create(training=made, number=number, state=state, **fields)


def experiment(name: str, solved: int | None, total: int | None, **fields: Any) -> Experiment:
    row = measured(name, {}, project="measured")
    Experiment.objects.filter(pk=row.pk).update(solved=solved, total=total, **fields)
    return Experiment.objects.get(pk=row.pk)


def sentence(made: Training) -> str:
    return training_view(made.pk).row.sentence


def test_a_training_says_where_it_is_and_what_it_came_to(project: Project) -> None:
    made = training(project)
    assert sentence(made) == "Iteration 1 of 3 runs."
    base, better = experiment("base", 1, 9), experiment("better", 4, 9)
    iteration(made, 0, "promoted", baseline=base, candidate=better)
    iteration(made, 1, "rejected", baseline=better)
    assert sentence(made) == "Iteration 3 of 3 runs: 1 promoted, 1 rejected; from 1 of 9 to 4 of 9 cases solved."
    iteration(made, 2, "skipped", baseline=better)
    Training.objects.update(state="done", ended_at=timezone.now())
    assert sentence(made).startswith("Over after 3 iterations: 1 promoted, 1 rejected, 1 skipped; ")
    assert training_view(made.pk).row.over


def test_what_no_baseline_solved_yet_is_not_told_as_none(project: Project) -> None:
    made = training(project)
    iteration(made, 0, "baseline", baseline=experiment("base", None, None))
    assert sentence(made) == "Iteration 1 of 3 runs."
    Experiment.objects.update(solved=0, total=2)
    assert sentence(made) == "Iteration 1 of 3 runs; 0 of 2 cases solved, as at the start."


def test_a_decision_says_of_what_and_an_undecided_iteration_says_nothing(project: Project) -> None:
    made = training(project)
    decision: dict[str, Any] = {
        "reason": "regressed_baseline_tasks",
        "baseline_solved": ["one", "two"],
        "new_solves": ["three"],
        "regressions": ["one", HOSTILE],
        "provisional": True,
    }
    candidate = experiment("next", 2, 3, verdict="rejected", decision=frozen(decision))
    row = iteration_row(
        iteration(made, 0, "rejected", candidate=candidate, reason=decision["reason"], ended_at=timezone.now())
    )
    assert (row.before, row.after, row.total, row.provisional) == (2, 2, 3, True)
    assert (row.new, row.lost, row.verdict) == (["three"], ["one", HOSTILE], "rejected")
    assert "_" not in row.why
    open_row = iteration_row(iteration(made, 1, "measuring", reason="x_y"), "waits")
    assert (open_row.before, open_row.after, open_row.verdict, open_row.waits) == (None, None, None, "waits")
    assert open_row.why == "x_y"
    assert link_of(None) is None


def test_what_a_proposer_states_is_a_number_or_unknown(project: Project) -> None:
    made = training(project)
    stated: dict[str, Any] = {"model": "m", "cost": 0, "input_tokens": 12.4, "output_tokens": "many", "seconds": True}
    facts = iteration_row(iteration(made, 0, "skipped", proposer=frozen(stated))).proposer
    assert (facts.model, facts.cost, facts.input_tokens, facts.output_tokens) == ("m", 0, 12, None)
    nothing = iteration_row(iteration(made, 1, "skipped")).proposer
    assert (nothing.cost, nothing.input_tokens, nothing.model) == (None, None, "")


def test_what_it_waits_for_is_counted_of_its_jobs(project: Project) -> None:
    made = training(project)
    base = experiment("base", None, None)
    first = iteration(made, 0, "baseline", baseline=base)
    assert (waits_for(None), waits_for(first)) == ("", "measures its baseline")
    for state in (JobState.DONE, JobState.FAILED, JobState.RUNNING):
        Job.objects.create(kind="rollout", group=f"experiment {base.pk}", state=state)
    assert waits_for(first) == "measures its baseline, 2 of 3"
    assert waits_for(iteration(made, 1, "certifying", baseline=base)) == "certifies its cases"
    assert waits_for(iteration(made, 2, "measuring")) == "measures the candidate"
    assert training_view(made.pk).epochs[0].waits == "measures its baseline, 2 of 3"


def test_lists_are_newest_first_in_as_many_queries_for_many_as_for_few(
    project: Project, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(3):
        training_rows()
    rows = [training(project) for _ in range(6)]
    for made in rows:
        for number in range(3):
            iteration(made, number, "rejected", baseline=experiment(f"{made.pk} {number}", 1, 2))
    with django_assert_max_num_queries(3):
        found = training_rows()
    assert [row.id for row in found] == [row.pk for row in rows[::-1]]
    assert {row.counts["rejected"] for row in found} == {3}
    assert training_rows(HOSTILE) == []
    assert len(training_rows(project.name)) == 6


def test_what_goes_on_is_followed_until_nothing_of_it_runs(project: Project) -> None:
    running, over, left = training(project), training(project, state="stopped"), training(project, state="stopped")
    row = experiment("late", None, None, training=left, state="running")
    assert list(trainings_to_follow()) == [running.pk, left.pk]
    Experiment.objects.filter(pk=row.pk).update(state="done")
    assert list(trainings_to_follow()) == [running.pk]
    assert over.pk not in trainings_to_follow()


def test_patches_that_were_taken_are_known_by_name(project: Project) -> None:
    made = training(project)
    for number, said in enumerate(({"patch": "1.diff"}, {"patch": 5}, {})):
        iteration(made, number, "skipped", proposer=frozen(said))  # type: ignore[arg-type]
    assert used_patches(made) == {"1.diff"}


def test_candidates_that_were_concluded_come_in_order_and_open_ones_not(project: Project) -> None:
    made = training(project)
    decision: dict[str, Any] = {"baseline_solved": ["a"], "new_solves": ["b"], "regressions": "none"}
    candidate = experiment("next", 2, 2, decision=frozen(decision))
    iteration(made, 0, "promoted", candidate=candidate, mechanism="m")
    iteration(made, 1, "skipped", reason="no patch is left")
    iteration(made, 2, "proposing")
    found = concluded(project)
    assert [(each.number, each.solved, each.before, list(each.new), list(each.lost)) for each in found] == [
        (0, 2, 1, ["b"], []),
        (1, None, 0, [], []),
    ]


@pytest.mark.parametrize(("value", "names"), [(["a", 1], ["a", "1"]), ("ab", []), (None, []), ({"a": 1}, [])])
def test_case_names_are_those_of_a_list_alone(value: object, names: list[str]) -> None:
    assert case_names(value) == names


def test_evidence_tells_each_cell_and_the_traces_of_what_was_not_solved(project: Project) -> None:
    outcomes = {"fine": SOLVED, "bad": FAILED, "crashed": Outcome.CRASH, f"odd {HOSTILE}": FAILED}
    row = measured("base", outcomes, project="measured", revision="a" * 40)
    files = evidence(row)
    told = json.loads(files["baseline.json"])
    assert (told["solved"], len(told["cases"]), told["commit"]) == (["fine"], 4, "a" * 40)
    assert [each["outcome"] for each in told["cases"]].count("solved") == 1
    traces = [name for name in files if name.startswith("unsolved-")]
    assert len(traces) == 3
    assert files[traces[0]].decode().startswith("case bad: failed_verification\n[")
    assert all(len(files[name]) < 2 * LONGEST for name in traces)
    Rollout.objects.update(output_tokens=None)
    assert {each["output_tokens"] for each in json.loads(evidence(row)["baseline.json"])["cases"]} == {None}
    assert TRACES == 24
    assert json.loads(files["candidates.json"]) == []


def test_what_is_not_there_is_one_sentence(project: Project, tmp_path: Path) -> None:
    for read, word in ((get_training, "training"), (training_view, "training"), (get_iteration, "iteration")):
        with pytest.raises(NotFound, match=f"there is no {word} 999"):
            read(999)
    assert latest_memo(project) == ""
    made = iteration(training(project), 0, "baseline")
    assert get_iteration(made.pk).training.project == project
    assert repository_of(project)
    assert tmp_path.exists()


def test_the_memo_page_tells_what_each_proposal_cost_where_it_is_known(project: Project) -> None:
    made = training(project)
    first = iteration(made, 0, "skipped", proposer=frozen({"model": "m", "cost": 0.5, "effort": ["x"]}))
    Iteration.objects.filter(pk=first.pk).update(ended_at=first.started_at + timedelta(seconds=7))
    iteration(made, 1, "proposing")
    found = memo_view(project.pk).proposals
    assert [(each.epoch, each.stated, each.wall) for each in found] == [
        (0, {"model": "m", "cost": "0.5"}, 7.0),
        (1, {}, None),
    ]
