"""What must repeat, as URLs and commands write it."""

from __future__ import annotations

import pytest

from harnesslab.core.contracts import scrub
from harnesslab.core.contracts.contract import LADDER, RAW, TITLES, Contract, Level, Scope
from harnesslab.core.errors import InvalidValue


def test_the_ladder_goes_from_strict_to_loose() -> None:
    assert LADDER == (Level.LOGPROBS, Level.TOKEN_IDS, Level.TEXT, Level.JSON, Level.BEHAVIOUR)
    assert set(TITLES) == set(LADDER)


@pytest.mark.parametrize(
    ("written", "contract"),
    [
        (("", "", ""), Contract(Level.TEXT, tuple(scrub.BY_KEY))),
        (("json", "none", ""), Contract(Level.JSON)),
        (("", "pids@1,addresses@1", ""), Contract(Level.TEXT, ("addresses@1", "pids@1"))),
        (("", "none", "tool-calls"), Contract(Level.JSON, (), Scope.TOOL_CALLS)),
        (("text", "none", "tool-calls"), Contract(Level.TEXT, (), Scope.TOOL_CALLS)),
    ],
)
def test_a_contract_reads_as_it_is_written(written: tuple[str, str, str], contract: Contract) -> None:
    assert Contract.parse(*written) == contract


@pytest.mark.parametrize("written", [("words", "", ""), ("", "dust@1", ""), ("", "", "models")])
def test_unknown_names_are_refused_with_the_known_ones(written: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidValue, match=r"\(.+\)$"):
        Contract.parse(*written)


def test_the_key_names_the_comparator_level_scope_and_rules() -> None:
    assert RAW.key == "harnesslab.comparator/1|text|all|"
    assert Contract.parse("json", "pids@1", "tool-calls").key == "harnesslab.comparator/1|json|tool-calls|pids@1"
