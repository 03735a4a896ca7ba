"""What commands print: text from files can't steer the terminal."""

from __future__ import annotations

import pytest

from harnesslab.cli.terminal import printable


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain – ünïcode 😀", "plain – ünïcode 😀"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb\r", "a\\nb\\r"),
        ("\udcff", "\\udcff"),
        ("\u202eevil", "\\u202eevil"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_control_characters_are_shown_as_escapes(line: str, shown: str) -> None:
    assert printable(line) == shown
