"""Quantiles agree with an independent library over the whole range that intervals ask for."""

from __future__ import annotations

import pytest

from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.quantiles import beta_cdf, beta_quantile, t_quantile

stats = pytest.importorskip("scipy.stats", reason="scipy holds the quantiles against an independent computation")
SHAPES = (1e-3, 0.3, 0.5, 1.0, 1.7, 4.0, 33.3, 250.0, 1000.0)


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_the_beta_distribution_is_scipys(a: float, b: float) -> None:
    for x in (0.0, 1e-6, 0.02, 0.3, 0.5, 0.77, 0.999, 1.0):
        assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-8, abs=1e-12)
    for p in (0.001, 0.025, 0.5, 0.975):
        # where the distribution is flat, many points have one share: what is asked for is the share
        assert stats.beta.cdf(beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-8) or beta_quantile(
            p, a, b
        ) == pytest.approx(stats.beta.ppf(p, a, b), abs=1e-12)


@pytest.mark.parametrize("degrees", [1, 2, 3, 9, 49, 99, 999, 4.5])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.9, 0.975, 0.9995])
def test_students_t_is_scipys(p: float, degrees: float) -> None:
    assert t_quantile(p, degrees) == pytest.approx(stats.t.ppf(p, degrees), rel=1e-9, abs=1e-7)


@pytest.mark.parametrize(
    "call", [lambda: beta_quantile(1.5, 1, 1), lambda: t_quantile(0.9, 0), lambda: beta_cdf(0.5, 0, 1)]
)
def test_what_is_no_distribution_is_refused(call: object) -> None:
    with pytest.raises(InvalidValue, match="no "):
        call()  # type: ignore[operator]
