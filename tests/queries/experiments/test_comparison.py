"""Experiments side by side: which may be compared, paired numbers with what they are of, and how selected they are."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.measuring.experiments import ExperimentKind, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.comparison import compare_experiments, experiment_ids
from harnesslab.queries.experiments.grids import MOST, grid
from harnesslab.queries.experiments.outcome_matrix import outcome_matrix
from harnesslab.store.models import Experiment, Project, Rollout
from tests.pages.experiments import FAILED, HOSTILE, SOLVED, lineage, measured

pytestmark = pytest.mark.django_db


def test_a_paired_test_is_of_the_cases_that_both_measured() -> None:
    base, _, better, *_ = lineage()
    found = compare_experiments([base.pk, better.pk])
    (against,) = found.against
    assert (against.test.gained, against.test.lost, against.letter, against.refused) == (1, 0, "B", [])
    assert [(each.rate.trials.k, each.rate.trials.n) for each in found.contenders] == [(1, 3), (2, 2)]
    assert [case.case for case in found.cases] == ["two", "one", "odd"]
    assert (found.differing, found.cases[2].cells[1]) == (1, [])


def test_what_is_no_sample_decides_no_pair() -> None:
    a = measured("a", {"one": SOLVED, "two": SOLVED, "three": FAILED})
    b = measured("b", {"one": Outcome.CRASH, "two": Outcome.INFRA_ERROR, "three": SOLVED})
    (against,) = compare_experiments([a.pk, b.pk]).against
    assert (against.test.gained, against.test.lost) == (1, 0)


def test_other_conditions_are_named_with_their_cases_and_unknown_ones_are_no_refusal() -> None:
    a = measured("a", {"one": SOLVED, "two": SOLVED})
    b = measured("b", {"one": SOLVED, "two": SOLVED}, conditions={"model.name": HOSTILE})
    (against,) = compare_experiments([a.pk, b.pk]).against
    assert against.refused
    different = [each for each in against.differences if each.different]
    assert [(each.field, each.cases, each.some) for each in different] == [("model.name", 2, ["one", "two"])]
    assert "model.name" not in against.unknown
    assert len(set(against.unknown)) == len(against.unknown)


def test_a_gain_says_among_how_many_candidates_on_its_cases_it_was_selected() -> None:
    _, _, better, *_ = lineage()
    elsewhere = {"kind": ExperimentKind.CANDIDATE, "baseline": "base", "verdict": Verdict.REJECTED}
    measured("of other cases", {"far": FAILED}, revision="d" * 40, **elsewhere)
    other = measured("eval", {"unseen": SOLVED}, kind=ExperimentKind.EVAL, revision="c" * 40)
    found = compare_experiments([better.pk, other.pk])
    assert [each.selected_among for each in found.contenders] == [2, None]


def test_a_comparison_takes_as_many_queries_for_eight_as_for_two(django_assert_num_queries: Any) -> None:
    rows = [
        measured(f"e{n}", {f"{c}": SOLVED for c in range(n + 1)}, verdict="rejected", baseline="e0") for n in range(8)
    ]
    for some in (rows[:2], rows):
        with django_assert_num_queries(5):
            compare_experiments([row.pk for row in some])


@pytest.mark.parametrize("values", [[], ["1"], ["1", "1"], ["1", "x"], ["1", ""], ["-1", "2"], list("123456789")])
def test_ids_that_make_no_comparison_are_refused(values: list[str]) -> None:
    with pytest.raises(InvalidValue, match="from 2 to 8 experiments by their ids are needed"):
        experiment_ids(values)


def test_ids_are_taken_once_each_in_order() -> None:
    assert experiment_ids([" 12", "3", "12"]) == [12, 3]
    with pytest.raises(NotFound, match="there is no experiment 999"):
        compare_experiments([measured("a", {"one": SOLVED}).pk, 999])


def test_a_cell_is_of_the_last_rollout_that_ended_and_no_rerun() -> None:
    row = measured("a", {"one": FAILED})
    first = Rollout.objects.get()
    measured_again = measured("a", {"one": Outcome.INTERRUPTED})
    rerun = measured("a", {"one": SOLVED})
    assert row.pk == measured_again.pk == rerun.pk
    Rollout.objects.filter(outcome="solved").update(mode="live")
    (cell,) = cells_of([row.pk])[row.pk]
    assert (cell.rollout, len(cell.superseded)) == (first.pk, 1)
    assert cells_of([row.pk, 999], case="none") == {row.pk: [], 999: []}


def test_the_grid_counts_solved_of_samples_and_says_how_many_are_training_cases() -> None:
    lineage()
    project = Project.objects.get(name="tests")
    found = grid(project.pk)
    assert [(each.revision[:1], each.role) for each in found.chosen] == [("a", "baseline"), ("c", "trained")]
    assert found.training == ["one", "two"]
    (row,) = found.rows
    assert row.model == "m-1"
    first, last = row.cells
    assert first is not None
    assert last is not None
    assert (first.training_cases, first.others, last.others) == (2, 0, 2)
    assert last.name == "again"  # of several the one with most cases
    assert found.candidates == 2
    without = grid(project.pk, subtract=True).rows[0].cells[0]
    assert without is not None
    assert (first.rate.trials.k, first.rate.trials.n, first.rate.cases) == (1, 3, 3)
    assert (without.rate.trials.k, without.rate.trials.n, without.rate.cases) == (0, 1, 1)


def test_a_rollout_without_a_model_stands_in_a_row_of_its_own_at_the_end() -> None:
    measured("a", {"one": SOLVED, "two": SOLVED}, revision="a" * 40, kind=ExperimentKind.BASELINE)
    Rollout.objects.filter(case__name="two").update(model="")
    found = grid(Project.objects.get(name="tests").pk, ["a" * 40])
    assert [row.model for row in found.rows] == ["m-1", ""]


def test_a_grid_takes_as_many_queries_for_many_as_for_few(django_assert_num_queries: Any) -> None:
    lineage()
    project = Project.objects.get(name="tests")
    with django_assert_num_queries(5):
        grid(project.pk)
    for number in range(6):
        measured(f"more {number}", {"one": SOLVED}, revision=f"{number}" * 40)
    with django_assert_num_queries(5):
        grid(project.pk)
    with pytest.raises(InvalidValue, match="9 revisions"):
        grid(project.pk, ["x"] * (MOST + 1))
    with pytest.raises(NotFound, match="there is no project 999"):
        grid(999)


def test_the_matrix_shows_regressions_first_and_its_windows_add_up_to_all_cases() -> None:
    base, worse, *_ = lineage()
    found = outcome_matrix(worse)
    assert [(row.case, row.change) for row in found.rows] == [("one", "lost"), ("odd", ""), ("two", "")]
    assert [(each.name, each.role) for each in found.columns][:2] == [("base", "baseline"), ("worse", "this")]
    assert found.rows[1].cells[1] is None  # it was not in that panel, which is no failure
    parts = [outcome_matrix(worse, start=start, most=2) for start in (0, 2)]
    assert [row.case for part in parts for row in part.rows] == [row.case for row in found.rows]
    assert [(part.start, part.end, part.cases) for part in parts] == [(0, 2, 3), (2, 3, 3)]
    assert (found.experiments, found.widest) == (5, 5)
    assert base.pk == found.columns[0].id


def test_an_evaluation_stands_alone_in_its_matrix() -> None:
    lineage()
    alone = measured("eval", {"one": SOLVED}, kind=ExperimentKind.EVAL)
    found = outcome_matrix(Experiment.objects.get(pk=alone.pk), whole=True)
    assert ([each.name for each in found.columns], found.cases) == (["eval"], 1)


def test_a_matrix_takes_as_many_queries_for_many_as_for_few(django_assert_num_queries: Any) -> None:
    _, worse, *_ = lineage()
    with django_assert_num_queries(3):
        outcome_matrix(worse, whole=True)
    for number in range(6):
        measured(f"more {number}", {"one": SOLVED})
    with django_assert_num_queries(3):
        outcome_matrix(worse, whole=True)
