"""Quantiles of the beta and of Student's t distribution, from the regularised incomplete beta function."""

from __future__ import annotations

import math

from harnesslab.core.errors import InvalidValue

_TINY = 1e-300
_EPSILON = 1e-15
_TERMS = 10_000


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) (DLMF 8.17.22, by Lentz's continued fraction)."""
    if not (a > 0 and b > 0):
        raise InvalidValue(f"no shape of a beta distribution: {a}, {b}")
    if x <= 0 or x >= 1:
        return float(x >= 1)
    # the fraction converges quickly on one side of the mean only; the other is its mirror
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _kept(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _kept(1 + term * d), _kept(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < _EPSILON:
            break
    return value


def _kept(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the point below which a beta distribution has the share p, by bisection to the last bit."""
    if not 0 <= p <= 1:
        raise InvalidValue(f"no probability: {p}")
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if beta_cdf(middle, a, b) < p:
            low = middle
        else:
            high = middle


def t_quantile(p: float, degrees: float) -> float:
    """Return the point below which Student's t has the share p; from its square, which is a ratio of betas."""
    if not 0 < p < 1 or degrees <= 0:
        raise InvalidValue(f"no quantile of t: {p} with {degrees} degrees of freedom")
    if p < 0.5:
        return -t_quantile(1 - p, degrees)
    x = beta_quantile(2 * (1 - p), degrees / 2, 0.5)
    return math.sqrt(degrees * (1 - x) / x) if x else math.inf
