"""Cells: what one case gave at one trial of an experiment; the values that decisions and figures are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import VERDICT_UNTRUSTED, Outcome


@dataclass(frozen=True, slots=True)
class Cell:
    """One counted rollout: of a case and trial that ran several times, the last one."""

    case: str
    trial: int
    outcome: Outcome
    rollout: int
    """Its id in the store."""
    steps: int = 0
    seconds: float | None = None
    model: str = ""
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    path: bytes = b""
    """Digest of its whole path; equal paths behaved equally."""
    anatomy: TraceStatistics | None = None
    superseded: tuple[int, ...] = ()
    """Earlier rollouts of the same case and trial, which don't count."""


Cells: TypeAlias = Mapping[str, Sequence[Cell]]
"""Cells by case."""


def by_case(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Group cells by case, in the order given."""
    cases: dict[str, list[Cell]] = {}
    for cell in cells:
        cases.setdefault(cell.case, []).append(cell)
    return cases


def solved_cases(cases: Cells) -> set[str]:
    """Return the cases solved at every trial."""
    return {case for case, cells in cases.items() if all(cell.outcome is Outcome.SOLVED for cell in cells)}


def untrusted_cases(cases: Cells) -> set[str]:
    """Return the cases with a trial whose verdict can't be trusted: crash, infrastructure, interrupted, not judged."""
    return {case for case, cells in cases.items() if any(cell.outcome in VERDICT_UNTRUSTED for cell in cells)}
