"""Patterns that read recorded text take time in proportion to it, whatever it holds."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from harnesslab.core.contracts import scrub
from harnesslab.core.trace.renaming import Renamer

MEBIBYTE = 2**20
BOUND_S = 5.0
"""A pattern that goes back over what it has read would take minutes."""
UNITS = [
    "a",
    "0",
    "-",
    "_",
    ".",
    ":",
    " ",
    "\n",
    "f-",
    "a.",
    "a-",
    "A_",
    "0_",
    "in ",
    "in=",
    "took 1",
    "pid ",
    "pid 1",
    "0x",
    "00:",
    "00:00:00.",
    "Jan ",
    "Mon Jan ",
    "drwxr-xr-x\n",
    "\n-rw-r--r-- 1 a b 1 ",
    "total 1\n",
    "/tmp/",
    "/tmp/a.",
    "/tmp/a-",
    "/tmp/tmp_",
    "T/",
    "pytest-of-",
    "2026-01-01T",
    "abcdef01-",
    "call_",
    "call_a",
    "\nchatcmpl-",
    "toolu_msg_",
]
STARTS = ["", "in ", "pid ", "/tmp/", "/tmp/a", "Jan ", "00:00:00.", "drwxr-xr-x 1 ", "0x", "call_", "process id"]
READERS: dict[str, Callable[[str], object]] = {
    **{rule.name: lambda text, rule=rule: scrub.scrub(text, (rule,)) for rule in scrub.RULES},  # type: ignore[misc]
    "renaming": lambda text: Renamer().text(text),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_megabyte_of_anything_is_read_in_time(reader: str) -> None:
    read = READERS[reader]
    began = time.process_time()
    read("/tmp/" + "a." * (MEBIBYTE // 2))
    read("00:00:00." + "1" * MEBIBYTE + "x")
    read("in " + " " * MEBIBYTE + "pid " + "1" * MEBIBYTE + "a")
    for unit in UNITS:
        for start in STARTS:
            read(start + unit * (MEBIBYTE // 8 // len(unit)))
    assert time.process_time() - began < BOUND_S
