"""Output of a container that stops before its end is said to, and never passes for all there was."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.runtime.sandboxes.docker_streams import Reading


def breaking() -> Iterator[bytes]:
    yield b"begun"
    raise ConnectionResetError("reset")


def test_what_came_before_a_break_is_kept_and_the_break_is_named() -> None:
    got: list[bytes] = []
    reading = Reading(breaking(), got.append)
    assert reading.ended.wait(10)
    assert (got, reading.broken) == ([b"begun"], "reset")


def test_an_output_that_ends_is_whole() -> None:
    reading = Reading([b"all"], lambda _: None)
    assert reading.ended.wait(10)
    assert reading.broken == ""
