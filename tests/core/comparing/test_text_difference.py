"""Differences of texts by words, and of values by place."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing import text_difference
from harnesslab.core.comparing.text_difference import TextSpan, ValueDifference, spans, value_differences
from tests.core.traces import TEXTS, VALUES

WORDS = st.lists(st.sampled_from(["a", "b", " ", "\n", ".", "cd", "é"]), max_size=12).map("".join) | TEXTS


@given(WORDS, WORDS)
def test_the_spans_of_a_side_give_that_side(a: str, b: str) -> None:
    found = spans(a, b)
    left = [span for span in found if span.side != "b"]
    right = [span for span in found if span.side != "a"]
    assert len("".join(span.text for span in left)) == len(a)
    assert "".join(span.text for span in left) == a
    assert "".join(span.text for span in right) == b


def test_a_changed_word_is_one_span_on_each_side() -> None:
    assert spans("open models/fields now", "open forms now") == [
        TextSpan("equal", "open "),
        TextSpan("a", "models/fields"),
        TextSpan("b", "forms"),
        TextSpan("equal", " now"),
    ]


def test_a_changed_phrase_reads_as_one() -> None:
    assert [span.side for span in spans("x one two y", "x three four y")] == ["equal", "a", "b", "equal"]


def test_long_texts_are_compared_by_line(monkeypatch: Any) -> None:
    monkeypatch.setattr(text_difference, "MAX_WORDS", 3)
    assert spans("same\nold line\n", "same\nnew line\n") == [
        TextSpan("equal", "same\n"),
        TextSpan("a", "old line\n"),
        TextSpan("b", "new line\n"),
    ]


@given(VALUES, VALUES)
def test_values_have_a_difference_exactly_where_they_are_unequal(a: Any, b: Any) -> None:
    assert bool(list(value_differences(a, b))) == (canonical_bytes(a) != canonical_bytes(b))
    assert not list(value_differences(a, a))


def test_each_place_that_differs_is_named() -> None:
    a: JSON = {"x": {"y": [1, 2]}, "only": None}
    b: JSON = {"x": {"y": [1, 3, 4]}, "new": True}
    assert list(value_differences(a, b)) == [
        ValueDifference("$.new", None, "true"),
        ValueDifference("$.only", "null", None),
        ValueDifference("$.x.y[1]", "2", "3"),
        ValueDifference("$.x.y[2]", None, "4"),
    ]
