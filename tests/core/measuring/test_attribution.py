"""Attribution: a flip counts for the change only where the change had acted."""

from __future__ import annotations

import pytest

from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.measuring.attribution import Attribution, DifferenceOrigin, measurement_faults, origin_of


def parted(step: int, boundary: str, cause: Cause) -> Divergence:
    return Divergence(1, 1, step, boundary, cause, "because")


def test_a_harness_that_made_the_first_difference_explains_the_flip() -> None:
    found = origin_of(parted(0, "model", Cause.HARNESS), None, {}, {}, flipped=True)
    assert found == (DifferenceOrigin.HARNESS, "", None)


@pytest.mark.parametrize(
    ("fired", "origin"),
    [(1, DifferenceOrigin.MECHANISM), (2, DifferenceOrigin.MECHANISM), (3, DifferenceOrigin.INCIDENTAL)],
)
def test_a_mechanism_explains_what_follows_its_firing(fired: int, origin: DifferenceOrigin) -> None:
    divergence = parted(2, "tool:run", Cause.ENVIRONMENT)
    assert origin_of(divergence, ["guard"], {}, {"guard": (fired,)}, flipped=True) == (origin, "guard", fired)


def test_a_mechanism_that_fires_as_before_explains_nothing() -> None:
    both = {"reminder": (0, 4)}
    found = origin_of(parted(5, "model", Cause.NUMERICS), None, both, both, flipped=True)
    assert found == (DifferenceOrigin.INCIDENTAL, "", None)


def test_a_mechanism_that_no_longer_fires_counts_as_changed() -> None:
    found = origin_of(parted(4, "model", Cause.NUMERICS), None, {"reminder": (4,)}, {}, flipped=True)
    assert found == (DifferenceOrigin.MECHANISM, "reminder", 4)


def test_identical_paths_with_other_verdicts_are_the_verifiers() -> None:
    assert origin_of(None, None, {}, {}, flipped=True)[0] is DifferenceOrigin.VERDICT
    assert origin_of(None, None, {}, {}, flipped=False)[0] is DifferenceOrigin.SAME


def test_faults_are_the_cases_that_parted_before_the_change_acted() -> None:
    cases = [Attribution(origin.value, 0, 1, 2, ("solved", "solved"), origin) for origin in DifferenceOrigin]
    assert [each.case for each in measurement_faults(cases)] == ["incidental", "verdict"]
    assert [each.case for each in cases if each.attributable] == ["harness", "mechanism"]
