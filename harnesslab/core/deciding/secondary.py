"""Secondary rewards: what breaks a tie between two experiments that solve the same cases, in order.

Names and scopes are those of harness-training's generic metrics (github.com/workofart/harness-training), with the
verifier's tests beside them. A count is compared, never a share: at equal counts of invalid first attempts the share
would rank the shorter run worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from harnesslab.core.measuring.cells import Cell, Cells, solved_cases
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import UNSCORABLE, Outcome

Value = int | float | None


class FavouredSide(StrEnum):
    """Which side a secondary reward speaks for."""

    CANDIDATE = "candidate_better"
    BASELINE = "baseline_better"
    TIED = "tied"
    UNAVAILABLE = "unavailable"


class Secondary(msgspec.Struct, frozen=True, omit_defaults=True):
    """One secondary reward, compared."""

    name: str
    baseline_value: Value
    candidate_value: Value
    outcome: FavouredSide
    detail: str = ""
    """The figures behind the values, for people."""


class Metric(msgspec.Struct, frozen=True):
    """A secondary reward: how its value is read from both sides."""

    name: str
    values: Callable[[Cells, Cells], tuple[Value, Value]]
    higher_is_better: bool = False
    detail: Callable[[Cells, Cells], str] = lambda baseline, candidate: ""

    def compare(self, baseline: Cells, candidate: Cells) -> Secondary:
        """Compare both sides."""
        a, b = self.values(baseline, candidate)
        if a is None or b is None:
            outcome = FavouredSide.UNAVAILABLE
        elif a == b:
            outcome = FavouredSide.TIED
        else:
            outcome = FavouredSide.CANDIDATE if (b > a) == self.higher_is_better else FavouredSide.BASELINE
        return Secondary(self.name, a, b, outcome, self.detail(baseline, candidate))


def _scorable(baseline: Cells, candidate: Cells) -> set[str]:
    """Return the cases that both sides measured to an end that carries meaning."""
    no_end = UNSCORABLE | {Outcome.NOT_RUN}
    return {
        case
        for case in baseline.keys() & candidate.keys()
        if all(cell.outcome not in no_end for cell in (*baseline[case], *candidate[case]))
    }


def _anatomies(side: Cells, cases: Iterable[str]) -> list[TraceStatistics]:
    return [cell.anatomy for case in sorted(cases) for cell in side[case] if cell.anatomy is not None]


def _attempts(side: Cells, cases: Iterable[str]) -> tuple[int, int]:
    found = _anatomies(side, cases)
    return sum(each.first_valid for each in found), sum(each.first_attempts for each in found)


def _invalid(baseline: Cells, candidate: Cells) -> tuple[Value, Value]:
    cases = _scorable(baseline, candidate)
    (a, n), (b, m) = _attempts(baseline, cases), _attempts(candidate, cases)
    return (n - a if n else None), (m - b if m else None)


def _valid_share(baseline: Cells, candidate: Cells) -> str:
    cases = _scorable(baseline, candidate)
    parts = []
    for side in (baseline, candidate):
        valid, total = _attempts(side, cases)
        parts.append(f"{100 * valid / total:.2f} % of {total} valid" if total else "no attempt")
    return " → ".join(parts)


def _steps(baseline: Cells, candidate: Cells) -> tuple[Value, Value]:
    cases = solved_cases(baseline) & solved_cases(candidate)
    return _sum_steps(baseline, cases), _sum_steps(candidate, cases)


def _sum_steps(side: Cells, cases: Iterable[str]) -> int:
    return sum(_steps_of(cell) for case in cases for cell in side[case])


def _steps_of(cell: Cell) -> int:
    """Return a cell's tool calls, or its turns where no statistics of its trace are stored.

    These are two different counts: one turn may call several tools, or none. A sum over cells of both kinds mixes them.
    """
    return cell.anatomy.actions if cell.anatomy is not None else cell.steps


def _tests(baseline: Cells, candidate: Cells) -> tuple[Value, Value]:
    cases = _scorable(baseline, candidate)
    sides = []
    for side in (baseline, candidate):
        passed = [each.tests_passed for each in _anatomies(side, cases) if each.tests_passed is not None]
        sides.append(sum(passed) if passed else None)
    return sides[0], sides[1]


INVALID_FIRST_ATTEMPTS = Metric("invalid_first_attempts", _invalid, detail=_valid_share)
STEPS_USED = Metric("steps_used", _steps)
TESTS_PASSED = Metric("verifier_tests_passed", _tests, higher_is_better=True)
GENERIC: tuple[Metric, ...] = (INVALID_FIRST_ATTEMPTS, STEPS_USED)
"""The secondary rewards of harness-training, in its order."""
ALL: tuple[Metric, ...] = (*GENERIC, TESTS_PASSED)
