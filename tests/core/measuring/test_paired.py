"""Paired tests: known values, symmetry, and agreement of the exact and the drawn form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.measuring import paired
from harnesslab.core.measuring.cells import Cell, Cells
from harnesslab.core.measuring.paired import mcnemar, paired_test, sign_flip
from harnesslab.core.running.rollout import Outcome


def cells(**outcomes: str) -> Cells:
    """`s` solved, `f` failed, `c` crashed: one letter a trial."""
    words = {"s": Outcome.SOLVED, "f": Outcome.FAILED_VERIFICATION, "c": Outcome.CRASH}
    return {
        case: [Cell(case, trial, words[letter], 0) for trial, letter in enumerate(letters)]
        for case, letters in outcomes.items()
    }


def test_mcnemar_gives_the_exact_binomial_tail() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(0, 5) == 2 / 2**5
    assert mcnemar(1, 9) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(4, 4) == 1.0


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_does_not_care_which_side_is_first(lost: int, gained: int) -> None:
    assert mcnemar(lost, gained) == mcnemar(gained, lost)
    assert 0 < mcnemar(lost, gained) <= 1


def test_the_sign_flip_test_of_equal_steps_is_mcnemar() -> None:
    assert sign_flip([1.0, 1.0, 1.0, -1.0, 0.0], seed=0) == (mcnemar(1, 3), 0)


def test_many_differences_are_drawn_with_the_observed_one_counted_in() -> None:
    p, draws = sign_flip([1.0] * 30, seed=1)
    assert draws == paired.DRAWS
    assert p == 1 / (paired.DRAWS + 1)


def test_drawn_and_enumerated_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [0.5, 1.0, -0.5, 1.0, 0.25, 1.0, -0.25, 0.5]
    exact, _ = sign_flip(differences, seed=0)
    monkeypatch.setattr(paired, "EXACT", 0)
    drawn, _ = sign_flip(differences, seed=3)
    assert drawn == pytest.approx(exact, abs=0.02)


def test_one_trial_a_case_is_tested_by_mcnemar_and_untrusted_trials_are_no_pairs() -> None:
    test = paired_test(cells(a="f", b="f", c="s", d="s", e="c"), cells(a="s", b="s", c="s", d="f", e="s"))
    assert (test.method, test.n, test.both, test.gained, test.lost, test.neither) == ("exact McNemar", 4, 1, 2, 1, 0)
    assert test.p == mcnemar(1, 2)
    assert test.difference == 0.25


def test_repeats_are_tested_by_case() -> None:
    test = paired_test(cells(a="ff", b="sf", c="ss"), cells(a="ss", b="ss", c="ss"))
    assert test.method == "sign-flip over cases"
    assert (test.n, test.gained) == (3, 2)
    assert test.difference == pytest.approx(0.5)
    assert test.p == 0.5


def test_without_a_common_case_nothing_is_said() -> None:
    assert paired_test(cells(a="s"), cells(b="s")).n == 0
    assert paired_test(cells(a="s"), cells(b="s")).p == 1.0
