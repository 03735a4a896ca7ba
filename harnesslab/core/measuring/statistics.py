"""Rates with their denominators: Wilson intervals, the case as cluster, pass@k and pass^k."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.quantiles import beta_quantile, t_quantile
from harnesslab.core.running.rollout import CrashOrigin, Outcome, is_sample

Z95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""
_ROUNDING = 1e-24


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


@dataclass(frozen=True, slots=True)
class ClusterInterval:
    """A 95 % interval of a mean over cases, and what it rests on."""

    low: float
    high: float
    effective: float
    """The effective number of trials n*: of independent trials that would tell as much."""
    alike: bool = False
    """Whether all cases have one rate, so that nothing is known of their spread and n* is the number of cases."""


def clopper_pearson(k: float, n: float) -> tuple[float, float]:
    """Return the exact 95 % interval for k of n, which need not be whole (C. J. Clopper, E. S. Pearson 1934)."""
    low = beta_quantile(0.025, k, n - k + 1) if k > 0 else 0.0
    high = beta_quantile(0.975, k + 1, n - k) if k < n else 1.0
    return low, high


def korn_graubard(cases: Sequence[tuple[int, int]]) -> ClusterInterval:
    """Return a 95 % interval of the mean case rate, cases (k, n) being clusters of trials; (0, 1) without a trial.

    E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998): an exact interval at the effective number of trials, that
    of the mean's variance between cases, with t by cases - 1. It is kept between 1 and the number of trials. Where
    the variance is 0, as of cases that all fail, n* is the number of cases.
    """
    rates = [k / n for k, n in cases if n]
    trials, count = sum(n for _, n in cases), len(rates)
    if not rates:
        return ClusterInterval(0.0, 1.0, 0.0)
    mean = math.fsum(rates) / count
    variance = math.fsum((rate - mean) ** 2 for rate in rates) / (count * (count - 1)) if count > 1 else 0.0
    if variance <= _ROUNDING:
        effective, alike = float(count), True
    else:
        ratio = t_quantile(0.975, trials - 1) / t_quantile(0.975, count - 1)
        effective, alike = mean * (1 - mean) / variance * ratio**2, False
    effective = min(max(effective, 1.0), float(trials))
    return ClusterInterval(*clopper_pearson(mean * effective, effective), effective, alike)
