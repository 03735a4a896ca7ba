"""What the harness did to its messages between two calls."""

from __future__ import annotations

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.input_change import InputChange, input_change

PAYLOADS: dict[int, JSON] = {
    0: {"role": "system", "content": "You fix bugs."},
    1: {"role": "tool", "tool_call_id": "1", "content": "a very long listing of files"},
    2: {"role": "tool", "tool_call_id": "1", "content": "[clipped]"},
    3: {"role": "user", "content": "go on"},
    4: {"role": "user", "content": "The quick brown fox jumps over the lazy dog, and then some more."},
    5: {"role": "user", "content": "The quick brown fox jumps over the lazy dog"},
}


def test_an_extended_transcript_keeps_all_and_adds() -> None:
    assert input_change([0, 1], [0, 1, 3], PAYLOADS) == InputChange(2, (3,), (), ())


def test_a_dropped_message_is_named() -> None:
    assert input_change([0, 1, 3], [0, 3], PAYLOADS) == InputChange(2, (), (1,), ())


def test_a_shorter_answer_to_the_same_call_is_clipped() -> None:
    assert input_change([0, 1], [0, 2], PAYLOADS) == InputChange(1, (), (), ((1, 2),))


def test_a_message_that_begins_alike_and_is_shorter_is_clipped() -> None:
    assert input_change([4], [5, 3], PAYLOADS) == InputChange(0, (3,), (), ((4, 5),))


def test_a_longer_or_other_message_is_not_clipped() -> None:
    assert input_change([5], [4], PAYLOADS) == InputChange(0, (4,), (5,), ())
    assert input_change([1], [3], PAYLOADS) == InputChange(0, (3,), (1,), ())
