"""Solve rates say what they rest on: trials, cases, and trials that repeat."""

from __future__ import annotations

from harnesslab.core.efficiency.cycle import cycle
from harnesslab.core.measuring.cells import by_case
from harnesslab.core.measuring.solve_rates import solve_rate
from harnesslab.core.running.rollout import Outcome
from tests.core.cells import cell


def test_trials_and_cases_are_counted_apart_and_what_is_no_sample_is_named() -> None:
    cells = [cell("a"), cell("a"), cell("b"), cell("b", Outcome.REFUSED), cell("c", Outcome.NOT_RUN)]
    found = solve_rate(by_case(cells))
    assert (found.trials.k, found.trials.n, found.cases) == (3, 4, 2)
    assert found.trials.excluded == {"not_run": 1}
    assert (found.refused, found.not_run) == (1, 1)
    assert (found.k, found.any_of_k, found.all_of_k) == (2, 1.0, 0.5)
    assert found.mean == 0.75
    assert 0 <= found.low <= 0.75 <= found.high <= 1


def test_with_one_trial_a_case_there_is_no_pass_at_k_and_cases_can_be_left_out() -> None:
    found = solve_rate(by_case([cell("a"), cell("b", Outcome.TIMEOUT)]), {"b"})
    assert (found.trials.k, found.trials.n, found.any_of_k, found.all_of_k) == (1, 1, None, None)
    assert solve_rate({}).mean is None


def test_time_is_summed_over_the_rollouts_that_are_counted() -> None:
    found = cycle([cell(waited=1.0, model=5.0, tool=2.0, verify=0.5), cell(model=1.0)], 4.0)
    assert found.parts == (("queue", 1.0), ("model", 6.0), ("tools", 2.0), ("verify", 0.5))
    assert (found.total, found.counted, found.wall) == (9.5, 2, 4.0)
