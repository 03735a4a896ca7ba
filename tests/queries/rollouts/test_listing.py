"""Lists of rollouts: paging, groups by case, rates with what is no sample beside them, in a fixed number of queries."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.rollouts.filters import SORTS, RolloutFilter
from harnesslab.queries.rollouts.listing import (
    SHOWN,
    GroupPage,
    facts_of,
    get_rollout,
    group_page,
    rollout_page,
    row_of,
    siblings,
)
from harnesslab.store.models import Rollout
from tests import live
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def stored(count: int = 1, **fields: Any) -> list[Rollout]:
    return [store_recording(recording(trial=trial, **fields), None) for trial in range(count)]


def pages(chosen: RolloutFilter, size: int) -> list[list[int]]:
    found, after = [], ""
    while True:
        page = rollout_page(chosen, after, size)
        found.append([row.id for row in page.rows])
        after = page.next
        if not after:
            return found


@pytest.fixture
def uneven(db: None) -> list[Rollout]:
    """Seven rollouts with ties in every column, and unknown tokens and seconds in some."""
    rows = stored(7)
    numbers = [
        (3, 10, 1.5),
        (3, None, None),
        (1, 10, 0.1 + 0.2),
        (2, 30, None),
        (3, None, 1.5),
        (1, 20, 7.0),
        (2, 0, 0.0),
    ]
    for row, (steps, tokens, seconds) in zip(rows, numbers, strict=True):
        Rollout.objects.filter(pk=row.pk).update(steps=steps, output_tokens=tokens, seconds=seconds)
    return rows


@pytest.mark.parametrize("sort", list(SORTS))
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_page_of_rollouts_goes_on_after_a_cursor_without_gaps_or_doubles(
    uneven: list[Rollout], sort: str, size: int
) -> None:
    chosen = RolloutFilter(sort=sort)
    whole = [row.id for row in rollout_page(chosen).rows]
    parts = pages(chosen, size)
    assert [number for part in parts for number in part] == whole
    assert sorted(whole) == sorted(row.pk for row in uneven)
    assert {len(part) for part in parts[:-1]} <= {size}


@pytest.mark.parametrize(
    ("sort", "column"), [("most-steps", "steps"), ("most-tokens", "output_tokens"), ("longest", "seconds")]
)
def test_unknown_numbers_come_last_and_a_zero_is_no_unknown(uneven: list[Rollout], sort: str, column: str) -> None:
    values = [getattr(row, column) for row in rollout_page(RolloutFilter(sort=sort)).rows]
    known = [value for value in values if value is not None]
    assert values == sorted(known, reverse=True) + [None] * (len(values) - len(known))
    if column != "steps":
        assert (known[-1], values.count(None)) == (0, 2)


def test_the_count_is_of_all_that_pass_on_whatever_page(uneven: list[Rollout]) -> None:
    chosen = RolloutFilter(tokens="..10", sort="oldest")
    first = rollout_page(chosen, size=2)
    last = rollout_page(chosen, first.next, 2)
    assert (first.count, last.count, len(first.rows), len(last.rows), last.next) == (3, 3, 2, 1, "")


@pytest.mark.parametrize(
    ("sort", "after"),
    [
        ("newest", "x"),
        ("newest", "~"),
        ("newest", "~-1"),
        ("newest", "~²"),
        ("longest", "nan~3"),
        ("longest", "x~3"),
        ("most-steps", "inf~3"),
        ("most-tokens", "1~9999999999999999999"),
        ("longest", "\x00~\x00"),
    ],
)
def test_what_is_no_position_is_one_sentence(uneven: list[Rollout], sort: str, after: str) -> None:
    with pytest.raises(InvalidValue, match="is no position in the list"):
        rollout_page(RolloutFilter(sort=sort), after)


@pytest.mark.parametrize("value", ["1e300", "-1e300", "2.5"])
def test_a_position_beyond_any_number_is_before_or_after_all(uneven: list[Rollout], value: str) -> None:
    found = rollout_page(RolloutFilter(sort="most-steps"), f"{value}~5").rows
    assert len(found) == {"1e300": 7, "-1e300": 0, "2.5": 4}[value]


def test_a_list_takes_as_many_queries_for_many_as_for_few(django_assert_num_queries: Any) -> None:
    stored(2, experiment="e")
    with django_assert_num_queries(2):
        assert len(rollout_page(RolloutFilter()).rows) == 2
    for case in range(6):
        stored(3, case=f"more {case}", experiment=f"e{case}", project=f"p{case}")
    with django_assert_num_queries(2):
        assert len(rollout_page(RolloutFilter()).rows) == 20
    with django_assert_num_queries(4):
        assert len(group_page(RolloutFilter()).groups) == 7
    row = Rollout.objects.order_by("pk")[0]
    with django_assert_num_queries(1):
        assert len(siblings(row)) == 2


def mixed() -> None:
    """One case with four samples of six trials of its own, and three rollouts that reruns made."""
    outcomes = [Outcome.SOLVED, Outcome.SOLVED, Outcome.FAILED_VERIFICATION, Outcome.STEP_CAP]
    outcomes += [Outcome.CRASH, Outcome.UNKNOWN]
    for trial, outcome in enumerate(outcomes):
        made = store_recording(recording(trial=trial, outcome=outcome), None)
        Rollout.objects.filter(pk=made.pk).update(path=f"path {trial // 2}".encode())
    for number in range(3):
        made = store_recording(recording(["rerun"], outcome=Outcome.SOLVED, tags=(f"{number}",)), None)
        Rollout.objects.filter(pk=made.pk).update(mode="live", attempt=number)


def test_a_cases_rate_is_of_its_own_samples_with_what_was_left_out_beside_it() -> None:
    mixed()
    (group,) = group_page(RolloutFilter()).groups
    assert (group.rate.k, group.rate.n) == (2, 4)
    assert dict(group.rate.excluded) == {"crash": 1, "unknown": 1}
    assert group.rate.n + sum(group.rate.excluded.values()) == group.count == 6
    assert (group.reruns, group.paths, len(group.trials)) == (3, 3, 9)
    assert [row.mode for row in group.trials] == [""] * 6 + ["live"] * 3


def test_a_case_of_which_only_reruns_pass_has_no_rate_rather_than_a_bad_one() -> None:
    mixed()
    (group,) = group_page(RolloutFilter(mode="live")).groups
    assert (group.count, group.reruns, group.paths) == (0, 3, 0)
    assert (group.rate.k, group.rate.n, group.rate.value) == (0, 0, None)


def test_a_group_shows_its_first_trials_and_counts_all() -> None:
    stored(SHOWN + 3)
    (group,) = group_page(RolloutFilter()).groups
    assert (len(group.trials), group.count, group.rate.n) == (SHOWN, SHOWN + 3, SHOWN + 3)
    assert [row.trial for row in group.trials] == list(range(SHOWN))


def test_pages_of_cases_follow_each_other_newest_case_first() -> None:
    for case in ("a", "b", "c", "d", "e"):
        stored(2, case=case)
    found: list[GroupPage] = [group_page(RolloutFilter(), size=2)]
    while found[-1].next:
        found.append(group_page(RolloutFilter(), found[-1].next, 2))
    assert [[group.case for group in page.groups] for page in found] == [["e", "d"], ["c", "b"], ["a"]]
    assert {page.count for page in found} == {5}


@pytest.mark.parametrize("after", ["x", "-1", "1~2", "²", "\x00"])
def test_what_is_no_position_among_cases_is_not_taken_for_the_beginning(after: str) -> None:
    stored()
    with pytest.raises(InvalidValue, match="is no position in the list"):
        group_page(RolloutFilter(), after)


@pytest.mark.usefixtures("no_wake_up")
def test_the_trials_of_a_case_come_in_order_with_reruns_last() -> None:
    parent = live.rerunnable(trial=1)
    made = [live.attempted(live.asked(parent), attempt, same=True) for attempt in (1, 0)]
    (first,) = stored()
    assert [row.id for row in siblings(made[0])] == [first.pk, parent.pk, *(row.pk for row in made)]


def test_a_row_says_what_is_unknown_and_whether_an_older_counter_counted_it() -> None:
    (row,) = stored()
    Rollout.objects.filter(pk=row.pk).update(reward=None, output_tokens=None, seconds=None, counted_by=VERSION - 1)
    read = row_of(get_rollout(row.pk))
    assert (read.reward, read.output_tokens, read.seconds, read.behind) == (None, None, None, True)
    Rollout.objects.filter(pk=row.pk).update(reward=0.0, output_tokens=0, counted_by=VERSION)
    read = row_of(get_rollout(row.pk))
    assert (read.reward, read.output_tokens, read.behind) == (0.0, 0, False)


def test_what_a_source_states_of_a_rollout_comes_back_as_it_was() -> None:
    facts = {"note": "<b>\x00\udc80", "half": 0.5, "none": None}
    row = store_recording(recording(facts=facts), None)
    assert facts_of(get_rollout(row.pk)) == facts


def test_a_rollout_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(NotFound, match="there is no rollout 99"):
        get_rollout(99)
