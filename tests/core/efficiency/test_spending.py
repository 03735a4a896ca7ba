"""Where tokens went, and what they cost."""

from __future__ import annotations

import pytest

from harnesslab.core.efficiency.factors import TokenKind, View
from harnesslab.core.efficiency.spending import Score, cost, spending, split
from harnesslab.core.running.rollout import Outcome
from tests.core.cells import cell


def test_useful_share_and_failed_spend_name_the_cases_that_cost_most() -> None:
    cells = [cell("won", output=30), cell("crashed", Outcome.CRASH, output=10)]
    cells += [cell(f"lost-{number}", Outcome.STEP_CAP, output=number) for number in range(1, 8)]
    found = spending(cells, View())
    assert {score: (spent.tokens, spent.rollouts) for score, spent in found.groups.items()} == {
        Score.SOLVED: (30, 1),
        Score.FAILED: (28, 7),
        Score.UNSCORED: (10, 1),
    }
    assert found.useful.value == pytest.approx(30 / 68)
    assert [item.case for item in found.contributors] == ["crashed", "lost-7", "lost-6", "lost-5", "lost-4"]
    assert found.contributors[0].share.value == pytest.approx(10 / 38)


def test_without_tokens_there_is_no_share() -> None:
    assert spending([cell(output=0)], View()).useful.why == "no tokens were spent"
    assert spending([cell()], View(TokenKind.INPUT)).contributors == ()


def test_kinds_of_tokens_are_split_and_the_unstated_stay_unknown() -> None:
    found = split([cell(input=100, cached=60, output=9, reasoning=4), cell(input=10, output=1, served=2)])
    assert (found.uncached, found.cached, found.output, found.reasoning) == (50, 60, 10, 4)
    assert (found.served, found.served_output) == (2, None)


def test_cost_prices_cached_input_apart_and_served_answers_not_at_all() -> None:
    prices = {"m": {"input": 2.0, "cached": 0.5, "output": 10.0}}
    cells = [cell(input=3_000_000, cached=1_000_000, output=100_000, served=5, served_input=10**9)]
    assert cost(cells, prices).amount == pytest.approx(2 * 2 + 0.5 + 1)
    assert cost([cell(named="other")], prices).why == "no prices of the model other"
    assert cost([cell(output=None)], prices).why == "some answers state no tokens"
    assert cost(cells, {}).why == "the project has no prices"
