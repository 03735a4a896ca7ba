"""Evidence reads well and never fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from harnesslab.core.comparing.evidence import (
    EXCERPT_WIDTH,
    EXCERPT_WORDS,
    Cause,
    Evidence,
    excerpt,
    pair,
    text,
)
from harnesslab.core.comparing.hypotheses import harness_hypothesis
from tests.core.traces import TEXTS, VALUES


@given(VALUES)
def test_any_value_can_be_shown_and_written_anywhere(value: Any) -> None:
    text(value).encode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        ("half \udcb2", "half \\udcb2"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        (True, "true"),
        (object(), "a value (object) that is not JSON or is nested too deeply"),
    ],
)
def test_a_value_is_shown_as_a_person_reads_it(value: Any, shown: str) -> None:
    assert text(value) == shown


def test_a_value_nested_without_end_is_named() -> None:
    value: Any = []
    for _ in range(300):
        value = [value]
    assert text(value) == "a value (list) that is not JSON or is nested too deeply"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("open models/fields", "open forms", ("models/fields", "forms")),
        ("one two", "one two three", ("two", "two three")),
        ('bash {"cmd":"ls"}', 'bash {"cmd":"pwd"}', ("ls", "pwd")),
        ("a " * 3 + "x " * 20, "a " * 3 + "y", ("x x x x x x x x", "y")),
        ("", "a", None),
        (None, "a", None),
        ("a  b", "a b", ("a⟨space⟩⟨space⟩b", "a⟨space⟩b")),
        ("same", "same", None),
    ],
)
def test_an_excerpt_begins_at_the_first_word_that_differs(a: Any, b: Any, expected: tuple[str, str] | None) -> None:
    assert excerpt([pair("text", a, b)]) == expected


@given(TEXTS, TEXTS)
def test_an_excerpt_is_short_and_has_both_sides(a: str, b: str) -> None:
    found = excerpt([pair("text", a * 20, b * 20)])
    for side in found or ():
        assert side
        assert len(side) <= EXCERPT_WIDTH
        assert len(side.split()) <= EXCERPT_WORDS


def test_rows_that_are_equal_are_passed_over() -> None:
    assert excerpt([pair("a", 1, 1), pair("b", "x", "y")]) == ("x", "y")
    assert excerpt([]) is None


def test_a_harness_hypothesis_says_what_only_rules_would_remove() -> None:
    found = harness_hypothesis("it acted differently", (Evidence("x", "pid 1", "pid 2"),), ())
    assert (found.cause, found.why) == (
        Cause.HARNESS,
        "it acted differently; only volatile text differs (rule pids@1 removes it)",
    )
    assert harness_hypothesis("it acted differently", (Evidence("x", "a", "b"),), ()).why == "it acted differently"
