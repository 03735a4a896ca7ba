"""Rates with their denominators."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.statistics import (
    ClusterInterval,
    case_rate,
    clopper_pearson,
    korn_graubard,
    pass_at_k,
    pass_hat_k,
    wilson,
)
from harnesslab.core.running.rollout import CrashOrigin, Outcome

COUNTS = st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_wilsons_interval_holds_the_share_and_stays_between_0_and_1(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = wilson(k, n)
    assert 0 <= low <= high <= 1
    if n:
        assert low <= k / n <= high


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe, Statistics in Medicine 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (3, 10, 0.1078, 0.6032),
    ],
)
def test_wilsons_interval_is_the_published_one(k: int, n: int, low: float, high: float) -> None:
    found = wilson(k, n)
    assert found[0] == pytest.approx(low, abs=5e-5)
    assert found[1] == pytest.approx(high, abs=5e-5)


def test_no_trial_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert case_rate([]).value is None


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3)])
def test_more_solved_than_tried_is_refused(k: int, n: int) -> None:
    with pytest.raises(InvalidValue, match="is no proportion"):
        wilson(k, n)


def test_failures_stay_in_the_denominator_and_infra_errors_stand_beside_it() -> None:
    rate = case_rate(
        [
            (outcome, None)
            for outcome in (
                Outcome.SOLVED,
                Outcome.FAILED_VERIFICATION,
                Outcome.TIMEOUT,
                Outcome.STEP_CAP,
                Outcome.REFUSED,
                Outcome.NO_VALID_ACTION,
                Outcome.VERIFY_TIMEOUT,
                Outcome.INFRA_ERROR,
                Outcome.INFRA_ERROR,
                Outcome.CRASH,
                Outcome.INTERRUPTED,
                Outcome.NOT_RUN,
                Outcome.UNKNOWN,
                Outcome.RUNNING,
            )
        ]
    )
    assert (rate.k, rate.n) == (1, 7)
    assert rate.value == pytest.approx(1 / 7)
    assert rate.excluded == {
        "infra_error": 2,
        "crash": 1,
        "interrupted": 1,
        "not_run": 1,
        "unknown": 1,
        "running": 1,
    }


def test_a_crash_of_its_own_making_is_a_failure_and_any_other_is_no_sample() -> None:
    trials = [(Outcome.SOLVED, None), *((Outcome.CRASH, origin) for origin in CrashOrigin)]
    rate = case_rate(trials)
    assert (rate.k, rate.n, rate.excluded) == (1, 3, {"crash": 2})


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_are_what_counting_every_choice_gives(drawn: tuple[int, int, int]) -> None:
    n, solved, k = drawn
    choices = list(combinations([True] * solved + [False] * (n - solved), k))
    assert pass_at_k(solved, n, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(solved, n, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize("k", [0, 4])
def test_more_tries_than_trials_are_refused(estimate: object, k: int) -> None:
    assert callable(estimate)
    with pytest.raises(InvalidValue, match="needs at least"):
        estimate(1, 3, k)


def test_cases_that_all_failed_leave_room_for_one_that_would_not() -> None:
    found = korn_graubard([(0, 1)] * 11)
    assert (found.low, found.alike, found.effective) == (0.0, True, 11.0)
    assert found.high == pytest.approx(0.2849, abs=1e-4)  # Clopper-Pearson's 0 of 11
    assert korn_graubard([(3, 3)] * 11).low == pytest.approx(1 - 0.2849, abs=1e-4)


def test_repeats_of_cases_that_agree_with_themselves_tell_no_more_than_the_cases() -> None:
    once, often = korn_graubard([(1, 1), (0, 1)] * 6), korn_graubard([(9, 9), (0, 9)] * 6)
    assert often.effective == pytest.approx(once.effective, rel=0.35)
    assert often.effective < 13
    spread = korn_graubard([(4, 9), (5, 9)] * 6)
    assert spread.effective == 12 * 9  # no more than there are trials
    assert spread.high - spread.low < often.high - often.low


def test_one_case_tells_of_no_spread_and_none_of_nothing() -> None:
    assert (korn_graubard([(5, 10)]).effective, korn_graubard([(5, 10)]).alike) == (1.0, True)
    assert korn_graubard([(0, 0)]) == ClusterInterval(0.0, 1.0, 0.0)


@given(st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=9))
def test_the_interval_over_cases_holds_their_mean_whatever_their_order(cases: list[tuple[int, int]]) -> None:
    found = korn_graubard(cases)
    mean = sum(k / n for k, n in cases) / len(cases)
    assert 0 <= found.low <= mean + 1e-12
    assert mean - 1e-12 <= found.high <= 1
    assert 1 <= found.effective <= sum(n for _, n in cases)
    again = korn_graubard(cases[::-1])
    assert (again.low, again.high) == pytest.approx((found.low, found.high))


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (2, 7), (1.5, 3.2)])
def test_exact_intervals_are_scipys(k: float, n: float) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is the independent computation")
    low, high = clopper_pearson(k, n)
    assert low == pytest.approx(stats.beta.ppf(0.025, k, n - k + 1) if k else 0, abs=1e-9)
    assert high == pytest.approx(stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1, abs=1e-9)
