"""Rates with their denominators: Wilson intervals, the case as cluster, pass@k and pass^k."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.rollout import CrashOrigin, Outcome, is_sample

Z95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Rate:
    """k of n with a 95 % interval; `excluded` trials ran or were planned and are no sample, by outcome."""

    k: int
    n: int
    low: float
    high: float
    excluded: Mapping[str, int]

    @property
    def value(self) -> float | None:
        """k/n, undefined where nothing was counted."""
        return self.k / self.n if self.n else None


def wilson(k: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's score interval for k of n (E. B. Wilson, JASA 1927); (0, 1) where n is 0."""
    if not 0 <= k <= n:
        raise InvalidValue(f"{k} of {n} is no proportion")
    if n == 0:
        return 0.0, 1.0
    share = k / n
    centre = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # exactly 0 and 1 at the ends, where rounding would leave a remainder
    low = 0.0 if k == 0 else (centre - spread) / scale
    high = 1.0 if k == n else (centre + spread) / scale
    return low, high


def case_rate(trials: Sequence[tuple[Outcome, CrashOrigin | None]], *, beside: Mapping[str, int] | None = None) -> Rate:
    """Return the solve rate of one case over its trials; failed, timed-out and refused trials stay in.

    `beside` are trials that are no samples for another reason, by its name.
    """
    excluded = Counter(beside or {})
    excluded.update(outcome.value for outcome, origin in trials if not is_sample(outcome, origin))
    n = sum(is_sample(outcome, origin) for outcome, origin in trials)
    k = sum(outcome is Outcome.SOLVED for outcome, _ in trials)
    low, high = wilson(k, n)
    return Rate(k, n, low, high, dict(excluded))


def pass_at_k(k_solved: int, n: int, k: int) -> float:
    """Return the unbiased probability that one of k trials solves (Chen et al. 2021, eq. 1); needs k <= n."""
    if not 1 <= k <= n:
        raise InvalidValue(f"pass@{k} needs at least {k} trials, there are {n}")
    return 1.0 - math.comb(n - k_solved, k) / math.comb(n, k)


def pass_hat_k(k_solved: int, n: int, k: int) -> float:
    """Return the unbiased probability that all of k trials solve (Yao et al. 2024, tau-bench); needs k <= n."""
    if not 1 <= k <= n:
        raise InvalidValue(f"pass^{k} needs at least {k} trials, there are {n}")
    return math.comb(k_solved, k) / math.comb(n, k)


def cluster_bootstrap(cases: Sequence[tuple[int, int]], *, seed: int, draws: int = 2000) -> tuple[float, float]:
    """Return a 95 % percentile interval of the mean case rate, drawing whole cases (k, n) with replacement.

    Trials of one case are not independent, so the case is the unit that is drawn. Cases with n = 0 are left out.
    """
    rates = [k / n for k, n in cases if n]
    if not rates:
        return 0.0, 1.0
    generator = random.Random(seed)  # noqa: S311 - a statistic, not a secret
    means = sorted(math.fsum(generator.choices(rates, k=len(rates))) / len(rates) for _ in range(draws))
    return means[int(0.025 * draws)], means[min(draws - 1, math.ceil(0.975 * draws) - 1)]
