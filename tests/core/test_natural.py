"""Numbers from outside: digits that every database can hold, and nothing that merely looks like them."""

from __future__ import annotations

import pytest

from harnesslab.core.natural import natural


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert natural(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e9", " 1", "1\n", "²", "٣", "9" * 19, "9" * 5000])
def test_anything_else_is_none(text: str) -> None:
    assert natural(text) is None
