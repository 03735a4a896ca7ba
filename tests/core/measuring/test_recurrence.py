"""Cases by how often a project solved them; what was never counted is no failure."""

from __future__ import annotations

from harnesslab.core.measuring.cells import by_case
from harnesslab.core.measuring.recurrence import Solved, recurrence
from harnesslab.core.running.rollout import Outcome
from tests.core.cells import cell


def test_cases_are_never_sometimes_or_always_solved_of_the_experiments_that_counted_them() -> None:
    first = [cell("always"), cell("some"), cell("never", Outcome.TIMEOUT), cell("crashed", Outcome.CRASH)]
    second = [cell("always", Outcome.CRASH), cell("some", Outcome.REFUSED), cell("rare", Outcome.TIMEOUT)]
    third = [cell("some"), cell("rare"), cell("rare", Outcome.TIMEOUT)]
    fourth = [cell("some"), cell("rare")]
    found = recurrence(map(by_case, (first, second, third, fourth)))
    assert found.always == (Solved("always", 1, 1),)
    assert found.sometimes == (Solved("rare", 1, 3), Solved("some", 3, 4))
    assert found.never == (Solved("never", 0, 1),)
    assert found.uncounted == ("crashed",)
