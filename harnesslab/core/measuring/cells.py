"""Cells: what one case gave at one trial of an experiment; the values that decisions and figures are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import OWN_CRASHES, VERDICT_UNTRUSTED, CrashOrigin, Outcome, is_sample


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
    crash_origin: CrashOrigin | None = None
    """Of a crash."""
    path: bytes = b""
    """Digest of its whole path; equal paths behaved equally."""
    anatomy: TraceStatistics | None = None
    superseded: tuple[int, ...] = ()
    """Earlier rollouts of the same case and trial, which don't count."""

    @property
    def is_sample(self) -> bool:
        """Whether it enters rates; see `core.running.rollout.is_sample`."""
        return is_sample(self.outcome, self.crash_origin)

    @property
    def is_trusted(self) -> bool:
        """Whether its verdict can be trusted: a crash of its own making is a failure."""
        return self.outcome not in VERDICT_UNTRUSTED or self.crash_origin in OWN_CRASHES


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
    """Return the cases with a trial whose verdict can't be trusted: infrastructure, interrupted, not judged, lost."""
    return {case for case, cells in cases.items() if not all(cell.is_trusted for cell in cells)}


def by_rule(cases: Cells, rule: int) -> Cells:
    """Return cells as a rule counts them: by the first no crash is a sample, whoever made it."""
    if rule > 1:
        return cases
    return {case: [replace(cell, crash_origin=None) for cell in cells] for case, cells in cases.items()}


def all_crashed(cases: Cells) -> bool:
    """Say whether every trial ended in a crash of its own making."""
    cells = [cell for each in cases.values() for cell in each]
    return bool(cells) and all(cell.crash_origin in OWN_CRASHES for cell in cells)
