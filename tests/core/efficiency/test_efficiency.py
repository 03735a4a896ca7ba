"""The identities hold exactly, and what is undefined says why."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.efficiency.factors import Answers, Cases, TokenKind, View, chosen, identity, levers, tokens_of
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import Outcome
from tests.core.cells import cell

CELLS = st.lists(
    st.builds(
        cell,
        case=st.sampled_from("abcdef"),
        outcome=st.sampled_from([Outcome.SOLVED, Outcome.STEP_CAP, Outcome.CRASH, Outcome.UNKNOWN]),
        steps=st.integers(0, 300),
        calls=st.integers(0, 500),
        served=st.integers(0, 50),
        input=st.none() | st.integers(0, 10**12),
        output=st.none() | st.integers(0, 10**9),
        served_input=st.none() | st.integers(0, 10**9),
        served_output=st.none() | st.integers(0, 10**9),
    ),
    max_size=12,
)
VIEWS = st.builds(View, st.sampled_from(TokenKind), st.sampled_from(Answers))


@given(CELLS, VIEWS)
def test_tokens_per_solve_is_the_product_of_its_factors_exactly(cells: list[Cell], view: View) -> None:
    found = identity(cells, view)
    factors = [ratio.exact for _, ratio in found.factors]
    if found.per_solve.exact is not None and None not in factors:
        product = factors[0] * factors[1] * factors[2]  # type: ignore[operator]
        assert product == found.per_solve.exact
    assert found.rollouts + len(found.left_out) == len(cells)
    for ratio in (found.per_solve, *(ratio for _, ratio in found.factors)):
        assert (ratio.value is None) == bool(ratio.why)
        assert ratio.bottom > 0 or ratio.why


@given(CELLS, CELLS, VIEWS)
def test_the_log_ratios_of_the_factors_add_up_to_that_of_tokens_per_solve(
    a: list[Cell], b: list[Cell], view: View
) -> None:
    found = levers(identity(a, view), identity(b, view))
    logs = [lever.log for lever in found.factors]
    if None not in logs:
        assert found.total.log is not None
        assert math.fsum(logs) == pytest.approx(found.total.log, abs=1e-12)  # type: ignore[arg-type]
    else:
        assert any(lever.why for lever in found.factors)


def test_what_is_undefined_is_neither_0_nor_infinite_and_says_why() -> None:
    none_solved = identity([cell(outcome=Outcome.STEP_CAP)], View())
    assert (none_solved.per_solve.value, none_solved.per_solve.why) == (None, "none of 1 rollouts was solved")
    assert none_solved.per_call.value == 2
    all_served = identity([cell(calls=0, served=7, input=None, output=None, served_output=9)], View())
    assert all_served.per_solve.why == "all 7 answers were served from a cache"
    assert identity([], View()).per_call.why == "no rollout states its tokens"
    moved = levers(none_solved, identity([cell(output=0)], View()))
    assert moved.total.why == "A: none of 1 rollouts was solved"
    assert moved.factors[0].why == "B is 0, which has no logarithm"


def test_a_rollout_that_states_no_tokens_is_left_out_whole_and_named() -> None:
    found = identity([cell(steps=3), cell(output=None, rollout=9), replace(cell(rollout=8), anatomy=None)], View())
    assert (found.left_out, found.solved, found.steps) == ((9, 8), 1, 3)


def test_cached_answers_count_only_where_they_are_asked_for() -> None:
    found = cell(input=10, output=2, served=1, served_input=100, served_output=20).anatomy
    assert found is not None
    assert tokens_of(found, View(TokenKind.TOTAL)) == 12
    assert tokens_of(found, View(TokenKind.TOTAL, Answers.USED)) == 132


def test_the_same_cases_take_the_composition_effect_out() -> None:
    a = [cell("easy", output=10), cell("hard", Outcome.STEP_CAP, output=1000), cell("only-a", output=7)]
    b = [cell("easy", output=10), cell("hard", output=500), cell("broken", Outcome.CRASH, output=3)]
    assert [[item.case for item in cells] for cells in chosen([a, b], Cases.COMMON)] == [["easy", "hard"]] * 2
    same = [identity(cells, View()) for cells in chosen([a, b], Cases.SOLVED)]
    assert levers(*same).total.log == 0  # the easy case, solved in both, got no cheaper
    mixed = [identity(cells, View()) for cells in chosen([a, b], Cases.ALL)]
    assert (levers(*mixed).total.log or 0) < -0.5


def test_tokens_of_a_whole_rollout_count_per_solve_and_belong_to_no_call() -> None:
    cells = [cell("a", steps=0, calls=0, input=1000, output=50), cell("b", Outcome.CRASH, steps=0, calls=0, output=50)]
    found = identity(cells, View(TokenKind.OUTPUT, Answers.BILLED))
    assert (found.per_solve.value, found.per_solve.why) == (100, "")
    assert found.per_call.why == "2 of 2 rollouts state their tokens as a whole, without calls"
    assert found.per_call.value is None
