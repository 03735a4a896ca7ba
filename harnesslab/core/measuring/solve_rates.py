"""How often an experiment solves, with what the number rests on: trials, cases, and trials that repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cells
from harnesslab.core.measuring.statistics import Rate, korn_graubard, pass_at_k, pass_hat_k, wilson
from harnesslab.core.running.rollout import Outcome


@dataclass(frozen=True, slots=True)
class SolveRate:
    """Trials solved of those counted, and the mean over cases, where trials of one case are not independent."""

    trials: Rate
    cases: int
    """Cases with a counted trial."""
    mean: float | None
    """Mean of the cases' rates."""
    low: float
    high: float
    """95 % interval of the mean, with the case as cluster; see `statistics.korn_graubard`."""
    effective: float
    """How many independent trials would tell as much."""
    alike: bool
    """Whether all cases have one rate, so that their spread is unknown and their number stands for it."""
    k: int
    """The fewest counted trials of a case: the k of the two below."""
    any_of_k: float | None
    """pass@k; None with one trial a case."""
    all_of_k: float | None
    """pass^k."""
    refused: int = 0
    """Counted, as not solved."""
    not_run: int = 0


def solve_rate(cases: Cells, without: Collection[str] = ()) -> SolveRate:
    """Count an experiment's cases, leaving some out."""
    kept = {case: cells for case, cells in cases.items() if case not in without}
    outcomes = Counter(cell.outcome for cells in kept.values() for cell in cells)
    no_samples = Counter(cell.outcome.value for cells in kept.values() for cell in cells if not cell.is_sample)
    counts = []
    for cells in kept.values():
        counted = [cell.outcome for cell in cells if cell.is_sample]
        if counted:
            counts.append((sum(outcome is Outcome.SOLVED for outcome in counted), len(counted)))
    k, n = sum(solved for solved, _ in counts), sum(total for _, total in counts)
    fewest = min((total for _, total in counts), default=0)
    several = fewest > 1
    over_cases = korn_graubard(counts)
    return SolveRate(
        trials=Rate(k, n, *wilson(k, n), dict(no_samples)),
        cases=len(counts),
        mean=sum(solved / total for solved, total in counts) / len(counts) if counts else None,
        low=over_cases.low,
        high=over_cases.high,
        effective=over_cases.effective,
        alike=over_cases.alike,
        k=fewest,
        any_of_k=_mean([pass_at_k(solved, total, fewest) for solved, total in counts]) if several else None,
        all_of_k=_mean([pass_hat_k(solved, total, fewest) for solved, total in counts]) if several else None,
        refused=outcomes[Outcome.REFUSED],
        not_run=outcomes[Outcome.NOT_RUN],
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
