"""Cells for tests of what experiments add up to."""

from __future__ import annotations

from typing import Any

from harnesslab.core.measuring.cells import Cell
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import Outcome


def cell(
    case: str = "c", outcome: Outcome = Outcome.SOLVED, *, rollout: int = 1, named: str = "m", **counts: Any
) -> Cell:
    """A cell whose trace adds up to the given counts; a step and a call where none are given."""
    found = TraceStatistics(**{"steps": 1, "calls": 1, "first_attempts": 1, "input": 10, "output": 2, **counts})
    return Cell(case=case, trial=0, outcome=outcome, rollout=rollout, steps=found.steps, model=named, anatomy=found)
