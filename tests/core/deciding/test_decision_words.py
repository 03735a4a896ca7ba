"""Decisions read as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.deciding.decision_words import decision_sentence, reason_words


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            ("candidate", "rejected", "regressed_baseline_tasks", 4, 10),
            "Rejected: loses cases that the baseline solves; 4 of 10 cases solved.",
        ),
        (("baseline", None, None, 0, 11), "A baseline; 0 of 11 cases solved."),
        (("candidate", None, "my_own_reason", None, None), "A candidate without a decision: my own reason."),
        ((None, None, None, None, None), "An experiment without a decision."),
    ],
)
def test_a_decision_is_a_sentence(said: tuple[Any, ...], sentence: str) -> None:
    assert decision_sentence(*said) == sentence


def test_what_was_cancelled_says_so_before_its_numbers() -> None:
    said = decision_sentence("eval", None, None, 1, 3, cancelled=True)
    assert said == "An evaluation, cancelled before its end; 1 of 3 cases solved."


def test_no_reason_is_no_words() -> None:
    assert reason_words(None) == reason_words("") == ""
