"""Regression cases: prefix, suggested predicate, and what measurements before and after a change show together."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.errors import NotFound
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.reruns.regressions import get_regression, prefix, regression, regressions, suggestion
from harnesslab.store.models import RegressionCase, Rerun
from tests import live

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
PREDICATE = Predicate(What.ARGUMENT, tool="run", argument="command", holds="cat")


def case(name: str = "no cat") -> RegressionCase:
    parent = live.rerunnable()
    return RegressionCase.objects.create(
        name=name, project=parent.project, parent=parent, from_step=1, predicate=PREDICATE.to_json()
    )


def measured(found: RegressionCase, bad: list[bool | None], revision: str = "", seed: str = "same") -> Rerun:
    plan = RerunPlan(mode=Mode.LIVE, from_step=1, attempts=len(bad), revision=revision, seed=seed)
    rerun = live.asked(found.parent, plan, regression=found)
    for attempt, each in enumerate(bad):
        outcome = Outcome.INFRA_ERROR if each is None else Outcome.FAILED_VERIFICATION
        live.attempted(rerun, attempt, same=None, bad=each, outcome=outcome)
    return rerun


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([True, True], [False, False], "Fails before the change (2/2, "),
        ([True, True], [True, False], "and still after it (1/2, "),
        ([False], [True], "Passes before the change (0/1, 95 % CI 0–79 %), fails after it (1/1, "),
        ([False], [False], "shows nothing"),
    ],
)
def test_two_measurements_are_told_together(before: list[bool | None], after: list[bool | None], said: str) -> None:
    found = case()
    measured(found, before)
    measured(found, after, revision="b" * 40)
    assert said in regression(found.pk).headline


def test_intervals_that_overlap_are_said_to() -> None:
    found = case()
    measured(found, [True, True])
    measured(found, [False, False], revision="b" * 40)
    assert "The intervals overlap" in regression(found.pk).headline
    other = case("many")
    measured(other, [True] * 8)
    measured(other, [False] * 8, revision="b" * 40)
    assert "overlap" not in regression(other.pk).headline


def test_another_population_is_not_set_beside() -> None:
    found = case()
    measured(found, [True])
    measured(found, [False], revision="b" * 40, seed="drawn")
    said = regression(found.pk).headline
    assert "Not measured yet under another revision with the same seeds and engine." in said


def test_what_was_not_measured_is_measured_now_or_gave_nothing_is_told_apart() -> None:
    found = case()
    assert regression(found.pk).headline == "Not measured yet."
    rerun = live.asked(found.parent, RerunPlan(mode=Mode.LIVE, from_step=1, attempts=1), regression=found)
    row = regression(found.pk)
    assert (row.headline, row.running) == ("Being measured: no attempt counts yet.", True)
    live.attempted(rerun, 0, same=None, bad=None, outcome=Outcome.INFRA_ERROR)
    row = regression(found.pk)
    assert (row.headline, row.running) == ("Measured, but no attempt counts.", False)


def test_attempts_that_showed_nothing_are_beside_the_rate() -> None:
    found = case()
    measured(found, [True, False, None])
    (measurement,) = regression(found.pk).measurements
    rate = measurement.rerun.bad
    assert rate is not None
    assert (rate.k, rate.n, dict(rate.excluded)) == (1, 2, {"infra_error": 1})
    assert (measurement.recorded, measurement.engine) == (True, "")


def test_the_prefix_is_what_comes_before_the_step() -> None:
    row = regression(case().pk)
    rows = prefix(row)
    assert {each.step for each in rows} <= {-1, 0}
    assert [each.index for each in rows] == list(range(len(rows)))
    assert rows[-1].kind == "tool_call"


def test_a_predicate_is_suggested_from_what_was_decided() -> None:
    row = live.rerunnable()
    found = suggestion(row.pk, 1)
    assert (found.what, found.tool, found.argument, found.holds) == ("argument", "run", "command", "cat a.txt")
    nothing = suggestion(row.pk, 99)
    assert (nothing.what, nothing.holds) == ("answer", "")


def test_a_list_takes_as_many_queries_for_many_as_for_few(django_assert_max_num_queries: Any) -> None:
    for number in range(5):
        measured(case(f"case {number}"), [True, False])
    with django_assert_max_num_queries(5):
        assert [row.name for row in regressions()] == [f"case {number}" for number in (4, 3, 2, 1, 0)]
    with pytest.raises(NotFound, match="there is no regression case 99"):
        get_regression(99)
