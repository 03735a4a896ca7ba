"""A project's story as it is read: marks, steps, what a number is of, sentences, the memo."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from harnesslab.actions.experiments.sources import store_record
from harnesslab.actions.projects.memos import keep_memo
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.outcome_matrix import outcome_matrix
from harnesslab.queries.rollouts.filters import RolloutFilter
from harnesslab.queries.stories.candidate import look
from harnesslab.queries.stories.experiment import experiment_card
from harnesslab.queries.stories.memos import memo_view
from harnesslab.queries.stories.outcome_sheets import outcome_sheets
from harnesslab.queries.stories.sheets import story_sheets
from harnesslab.queries.stories.story import Story, story
from harnesslab.queries.stories.words import excluded, headline, rests, unchanged
from harnesslab.store.models import Experiment, Project, Rollout
from harnesslab.store.text import frozen
from tests.pages.experiments import FAILED, HOSTILE, SOLVED, lineage, measured

pytestmark = pytest.mark.django_db


def told(by: str = "") -> Story:
    return story(Project.objects.get(name="tests").pk, by)


def test_a_story_of_nothing_of_baselines_and_of_evaluations_alone() -> None:
    project = Project.objects.create(name="tests")
    assert headline(told()) == "nothing was measured yet."
    assert (told().rows, look(told(), None), story_sheets(told())[0].rows) == ([], None, ())
    measured("eval", {"one": SOLVED}, kind=ExperimentKind.EVAL)
    assert headline(told()) == "1 evaluation, and no candidate was measured."
    measured("base", {"one": SOLVED}, kind=ExperimentKind.BASELINE)
    assert headline(told()) == "1 baseline measurement, and no candidate was measured yet."
    assert (rests(told()), excluded(told()), unchanged(told())) == ("", "", [])
    assert [row.name for row in told().evals] == ["eval"]
    assert project.pk == told().id


def test_a_line_says_what_each_number_is_of() -> None:
    lineage()
    found = told()
    assert [(row.solved, row.total, row.common) for row in found.rows] == [
        (1, 3, 1),
        (0, 2, 0),
        (2, 2, 2),
        (2, 3, 2),
        (1, 2, 1),
    ]
    assert found.common == ["one", "two"]
    assert [(row.delta, row.shared) for row in found.rows] == [(None, None), (-1, 2), (1, 2), (None, None), (-1, 2)]
    assert [step.of for step in told("common").steps] == [2, 2, 2]
    assert headline(found) == ("2 candidates took the baseline from 1/3 to 2/3 cases solved; 1 promoted, 1 rejected.")


def test_what_a_source_does_not_state_is_unknown_in_every_sentence() -> None:
    base: dict[str, Any] = {"project": "tests", "kind": ExperimentKind.BASELINE}
    store_record(ExperimentRecord("base", solved=3, revision="a" * 40, **base))
    store_record(
        ExperimentRecord("next", verdict=Verdict.PROMOTED, revision="b" * 40, baseline="base", project="tests")
    )
    found = told()
    assert [(row.solved, row.total, row.common) for row in found.rows] == [(3, None, None), (None, None, None)]
    said = headline(found)
    assert "None" not in said
    assert "3 cases solved" in said
    store_record(
        ExperimentRecord("last", solved=5, total=9, verdict=Verdict.PROMOTED, baseline="next", project="tests")
    )
    said = headline(told())
    assert "None" not in said
    assert "from 3 to 5/9 cases solved" in said


def test_a_metric_is_of_no_cases_and_one_that_is_not_there_is_refused() -> None:
    for name, verdict, loss in (("a", "promoted", "3"), ("b", "rejected", "4"), ("c", "promoted", "0")):
        measured(name, {}, verdict=verdict, metrics={"loss": loss}, revision=name)
    found = told()
    assert (found.by, [row.value for row in found.rows]) == ("metric:loss", [3.0, 4.0, 0.0])
    assert [step.of for step in found.steps] == [None] * len(found.steps)
    assert headline(found) == "3 candidates took the baseline from 3 to 0 in loss; 2 promoted, 1 rejected."
    for by in ("metric:none", "common", "x" * 500, "\x00"):
        with pytest.raises(InvalidValue, match="is nothing to tell"):
            told(by)
    with pytest.raises(NotFound, match="there is no project 999"):
        story(999)


def test_exclusions_are_by_the_newest_audit_that_looked() -> None:
    rows = lineage()
    assert excluded(told()) == "One case (odd) is excluded: it forks."
    rows[3].certification = frozen({"odd": {"verdict": "no_chain"}, "one": {"verdict": "forked"}})
    rows[3].save()
    assert excluded(told()).startswith("2 cases are excluded: ")
    rows[4].certification = frozen({"odd": {"verdict": "deterministic"}, "one": {"verdict": "deterministic"}})
    rows[4].save()
    assert excluded(told()) == ""


def test_measured_again_unchanged_says_how_many_of_how_many_flipped() -> None:
    lineage()
    assert unchanged(told()) == ["Measured again unchanged: 1 of 2 cases (two) flipped by nothing."]
    assert rests(told()) == "Decisions rest on one trial a case."


def test_superseded_attempts_and_cancelled_ones_are_not_told_but_counted() -> None:
    lineage()
    measured("late", {"one": SOLVED}, facts={"indexed": False})
    measured("killed", {"one": SOLVED}, facts={"indexed": False})
    Experiment.objects.filter(name="late").update(ended_at=timezone.now())
    Experiment.objects.filter(name="worse").update(state="cancelled")
    found = told()
    assert "late" not in [row.name for row in found.rows]
    assert "worse" not in [row.name for row in found.rows]
    assert found.left_out == {"superseded attempt": 1, "unfinished": 1}
    assert "1 superseded attempt and 1 unfinished run left out." in rests(found)


def test_the_one_that_is_looked_at_is_the_chosen_or_the_last_promoted() -> None:
    rows = lineage()
    for chosen, name in ((rows[1].pk, "worse"), (None, "better"), (999, "better")):
        seen = look(told(), chosen)
        assert seen is not None
        assert seen.row.name == name
    seen = look(told(), rows[1].pk)
    assert seen is not None
    assert seen.sentences
    assert seen.change.why_not.startswith("The diff is not here")
    assert (seen.memo, seen.memo_id) == ("", None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"parent_revision": ""}, "Its parent is not stated"),
        ({"parent_revision": "b" * 40}, "Nothing was changed."),
        ({"parent_revision": "../x"}, "an imported project brings no repository"),
    ],
)
def test_why_there_is_no_difference_is_said(changes: dict[str, str], why: str) -> None:
    rows = lineage()
    Experiment.objects.filter(pk=rows[1].pk).update(**changes)
    assert why in experiment_card(rows[1].pk).change.why_not


def test_sheets_tell_the_numbers_of_the_story_and_link_to_as_many_rollouts() -> None:
    lineage()
    found = told()
    series, *_ = story_sheets(found)
    assert [(row[3].value, row[3].of) for row in series.rows] == [(row.solved, row.total) for row in found.rows]
    measured("both lost", {"one": FAILED, "two": FAILED}, verdict=Verdict.REJECTED, baseline="again")
    checked: set[int] = set()
    for row in Experiment.objects.all():
        moves, cases = outcome_sheets(experiment_card(row.pk), outcome_matrix(row))
        for entry in (entry for line in moves.rows for entry in line if entry.query):
            ids = entry.query.removeprefix("ids=").removeprefix("#")
            rows = RolloutFilter.of({"ids": ids}).apply(Rollout.objects.all())
            assert rows.count() == entry.value
            checked.add(rows.count())
        assert len(cases.rows) == outcome_matrix(row).cases
    assert checked == {1, 2}


def test_a_card_tells_what_moved_what_flipped_by_nothing_and_whose_certificates_they_are() -> None:
    base, worse, *_, again = lineage()
    card = experiment_card(worse.pk)
    assert (card.certified, card.repeats) == (base, 1)
    assert card.transitions
    assert (card.plan, card.attributed) == ([], False)
    said = experiment_card(again.pk).again
    assert said == ["Measured again unchanged (same): 1 of 2 cases flipped by nothing: two."]


def test_a_story_and_a_card_take_as_many_queries_for_many_as_for_few(django_assert_max_num_queries: Any) -> None:
    rows = lineage()
    with django_assert_max_num_queries(5):
        told()
    for number in range(8):
        outcomes = {"one": SOLVED, "two": FAILED, f"{number}": Outcome.CRASH}
        measured(f"more {number}", outcomes, verdict="rejected", baseline="base")
    with django_assert_max_num_queries(5):
        told()
    with django_assert_max_num_queries(8):
        experiment_card(rows[1].pk)


def test_the_memo_is_read_at_a_version_against_another() -> None:
    rows = lineage()
    project = rows[0].project
    nothing = memo_view(project.pk)
    assert (nothing.version, nothing.text, nothing.newer, nothing.changes) == (None, "", 0, [])
    first = keep_memo(project, "kept\nold", after=rows[0])
    second = keep_memo(project, f"kept\n{HOSTILE}", after=rows[2])
    view = memo_view(project.pk)
    assert view.version is not None
    assert view.before is not None
    assert (view.version.id, view.before.id, view.newer, view.text) == (second.pk, first.pk, 2, f"kept\n{HOSTILE}")
    assert [each.number for each in view.versions] == [1, 0]
    older = memo_view(project.pk, first.pk)
    assert (older.before, older.changes, older.newer) == (None, [], 2)
    assert {each.text for each in memo_view(project.pk, first.pk, second.pk).changes} >= {"kept", "old"}
    for chosen in ((999, None), (first.pk, 999)):
        with pytest.raises(NotFound, match="the memo has no version 999"):
            memo_view(project.pk, *chosen)
    with pytest.raises(NotFound, match="there is no project 999"):
        memo_view(999)
