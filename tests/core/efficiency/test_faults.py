"""Faults, repairs, submits, tools and times over cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.efficiency.faults import faults, submits, times, tools
from harnesslab.core.measuring.askings import Repair
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.tool_uses import ToolUse
from tests.core.cells import cell

SUBMITS = st.builds(
    lambda outcome, known: cell(outcome=outcome, submitted=True if outcome is Outcome.SOLVED else known),
    st.sampled_from([Outcome.SOLVED, Outcome.FAILED_VERIFICATION, Outcome.STEP_CAP, Outcome.CRASH]),
    st.sampled_from([True, False, None]),
)


@given(st.lists(SUBMITS, max_size=15))
def test_solve_rate_is_submit_rate_times_pass_rate_exactly(cells: list[Cell]) -> None:
    found = submits(cells)
    if found.submitted.exact is not None and found.passed.exact is not None:
        assert found.submitted.exact * found.passed.exact == found.solved.exact
    assert found.submitted.bottom + found.unknown == sum(item.outcome is not Outcome.CRASH for item in cells)


def test_repairs_are_summed_by_kind_with_the_rollouts_they_occurred_in() -> None:
    cells = [
        cell(rollout=1, first_attempts=4, first_valid=3, calls=6, fatal=1, repairs={"bad": Repair(2, 1)}),
        cell(rollout=2, first_attempts=1, first_valid=1, calls=1),
        cell(
            rollout=3,
            first_attempts=1,
            first_valid=0,
            calls=2,
            served=1,
            repairs={"bad": Repair(1, 1), "other": Repair(1)},
        ),
    ]
    found = faults(cells)
    assert (found.first_valid.top, found.first_valid.bottom) == (4, 6)
    assert (found.retries.top, found.retries.bottom, found.fatal.top) == (4, 10, 1)
    assert dict(found.repairs) == {"bad": Repair(3, 2), "other": Repair(1, 0)}
    assert found.rollouts["bad"] == (1, 3)
    assert faults([]).first_valid.why == "the model gave no answer"


def test_tools_are_summed_and_times_stand_beside_their_budget() -> None:
    use = {"run": ToolUse(2, 1, 3.0, 2, 40, 2)}
    assert tools([cell(tools=use), cell(tools=use)]) == {"run": ToolUse(4, 2, 6.0, 4, 80, 4)}
    short, long = times([cell(rollout=1, model=5.0), cell(rollout=2, model=30.0)], {2: 60.0})[::-1]
    assert (long.rollout, long.share, short.share) == (2, 0.5, None)
