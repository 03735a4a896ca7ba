"""How long rollouts lasted, and when solves came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.efficiency.survival import BUCKETS, buckets, survival, width
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import Outcome
from tests.core.cells import cell

CELLS = st.lists(st.builds(cell, outcome=st.sampled_from(list(Outcome)), steps=st.integers(0, 500)), max_size=20)


def test_who_still_runs_after_each_step_with_solved_and_cut_off() -> None:
    cells = [
        cell(steps=2),
        cell(steps=2),
        cell(outcome=Outcome.STEP_CAP, steps=4),
        cell(outcome=Outcome.NOT_RUN, steps=0),
    ]
    found = survival(cells)
    assert (found.rollouts, found.cut) == (3, 1)
    assert [(at.steps, at.running, at.solved, at.cut) for at in found.after] == [
        (0, 3, 0, 0),
        (2, 1, 2, 0),
        (4, 0, 2, 1),
    ]


@given(CELLS)
def test_every_rollout_that_ran_ends_once(cells: list[Cell]) -> None:
    found = survival(cells)
    running = [at.running for at in found.after]
    assert running == sorted(running, reverse=True)
    assert not found.after or found.after[-1].running == 0
    size = width(max((item.steps for item in cells), default=1))
    made = buckets(cells, size)
    assert len(made) <= BUCKETS
    assert sum(item.ended for item in made) == found.rollouts
    assert sum(item.solved for item in made) == sum(item.outcome is Outcome.SOLVED for item in cells)
