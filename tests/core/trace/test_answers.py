"""Which answers cost tokens: the one rule that every count goes by."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.trace.answers import served, spent, stated_usage
from harnesslab.core.trace.events import ModelCall, Usage

USED = Usage(10, 5, 3, None, 2)


@pytest.mark.parametrize(
    ("fields", "free"),
    [
        ({}, False),
        ({"served_from_cache": True}, True),
        ({"served_from_cache": False}, False),
        ({"extra": {"served": "from the record"}}, True),
        ({"extra": {"served": "from the record, in order"}}, True),
        ({"extra": {"served": "live after a miss"}}, False),
        ({"extra": {"served": 7}}, False),
        ({"extra": {"is_copied_context": True}}, True),
        ({"error": "overloaded"}, False),
    ],
)
def test_an_answer_that_was_served_costs_nothing(fields: dict[str, Any], free: bool) -> None:
    call = ModelCall(usage=USED, **fields)
    assert served(call) is free
    assert spent(call) == (Usage() if free else USED)
    assert stated_usage(call) == USED


def test_a_negative_count_is_no_count() -> None:
    assert spent(ModelCall(usage=Usage(-1, 5, -3))) == Usage(None, 5)
    assert spent(ModelCall()) == Usage()
