"""Transitions pair both sides by case and trial, and say what one side lacks."""

from __future__ import annotations

from harnesslab.core.measuring.cells import by_case
from harnesslab.core.measuring.transitions import ABSENT, Move, transitions
from harnesslab.core.running.rollout import Outcome
from tests.core.cells import cell


def test_outcomes_are_paired_by_case_and_trial() -> None:
    before = by_case([cell("a", rollout=1), cell("b", Outcome.TIMEOUT, rollout=2), cell("gone", rollout=3)])
    after = by_case([cell("a", rollout=4), cell("b", rollout=5), cell("new", Outcome.CRASH, rollout=6)])
    found = transitions(before, after)
    assert [(each.before, each.after, each.unmoved) for each in found] == [
        ("solved", "solved", True),
        ("solved", ABSENT, False),
        ("timeout", "solved", False),
        (ABSENT, "crash", False),
    ]
    assert found[2].moves == (Move("b", 0, 2, 5),)
    assert found[3].moves == (Move("new", 0, None, 6),)
