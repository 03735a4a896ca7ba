"""Paired tests of two experiments on the same cases: exact McNemar, and a sign-flip permutation test."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core.measuring.cells import Cell, Cells
from harnesslab.core.running.rollout import Outcome

EXACT = 14
"""Up to so many differing cases every assignment of signs is tried."""
DRAWS = 20_000
_NEARLY = 1e-12


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Both sides on the cases that both measured; `p` is two-sided."""

    method: str
    n: int
    """Cases with a counted trial on both sides."""
    both: int
    """Solved on both sides: at every counted trial."""
    gained: int
    """Solved by the second only."""
    lost: int
    """Solved by the first only."""
    neither: int
    difference: float
    """Mean difference of the cases' solve rates, second less first; 0 without a case."""
    p: float
    draws: int = 0
    """Random assignments of signs that were drawn; 0 where the test is exact."""


def mcnemar(lost: int, gained: int) -> float:
    """Return the exact two-sided p of a split of discordant pairs (McNemar 1947, binomial form); 1 without any."""
    n = lost + gained
    tail = sum(math.comb(n, k) for k in range(min(lost, gained) + 1))
    return min(1.0, 2 * tail / (1 << n))


def sign_flip(differences: Sequence[float], *, seed: int) -> tuple[float, int]:
    """Return (two-sided p, draws) that the mean difference of cases is 0, flipping the sign of whole cases.

    Cases are exchangeable under the null, trials of one case are not (Ernst 2004, one-sample permutation test).
    Few differing cases are enumerated; of many, `DRAWS` assignments are drawn and the observed one is counted in.
    """
    moved = [value for value in differences if value]
    seen = abs(math.fsum(moved)) - _NEARLY  # assignments as extreme as the observed one differ by rounding alone
    if not moved:
        return 1.0, 0
    if len(moved) <= EXACT:
        sums = (abs(math.fsum(_signed(moved, signs))) for signs in itertools.product((1, -1), repeat=len(moved)))
        return sum(value >= seen for value in sums) / (1 << len(moved)), 0
    generator = random.Random(seed)  # noqa: S311 - a statistic, not a secret
    more = sum(abs(math.fsum(_signed(moved, generator.choices((1, -1), k=len(moved))))) >= seen for _ in range(DRAWS))
    return (more + 1) / (DRAWS + 1), DRAWS


def paired_test(a: Cells, b: Cells, *, seed: int = 0) -> PairedTest:
    """Compare two experiments by case: McNemar at one trial a case, else the sign-flip test over solve rates."""
    rates = {case: (_rate(a[case]), _rate(b[case])) for case in a if case in b}
    pairs = [(x, y) for x, y in rates.values() if x is not None and y is not None]
    both = sum(x == 1 and y == 1 for x, y in pairs)
    gained, lost = sum(x < 1 and y == 1 for x, y in pairs), sum(x == 1 and y < 1 for x, y in pairs)
    neither = len(pairs) - both - gained - lost
    counts = (len(pairs), both, gained, lost, neither)
    difference = math.fsum(y - x for x, y in pairs) / len(pairs) if pairs else 0.0
    if all(len(_counted(cells)) <= 1 for side in (a, b) for case, cells in side.items() if case in rates):
        return PairedTest("exact McNemar", *counts, difference, mcnemar(lost, gained))
    p, draws = sign_flip([y - x for x, y in pairs], seed=seed)
    return PairedTest("sign-flip over cases", *counts, difference, p, draws)


def _signed(values: Sequence[float], signs: Sequence[int]) -> list[float]:
    return [value * sign for value, sign in zip(values, signs, strict=True)]


def _counted(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.is_sample]


def _rate(cells: Sequence[Cell]) -> float | None:
    counted = _counted(cells)
    return sum(cell.outcome is Outcome.SOLVED for cell in counted) / len(counted) if counted else None
