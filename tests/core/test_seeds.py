"""Seeds derive from stable names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.seeds import STREAMS, derive

CASES = st.lists(st.text(max_size=8), unique=True, max_size=8)


@given(st.integers(0, 2**64), st.sampled_from(STREAMS), CASES, st.text(max_size=8), st.integers(0, 8))
def test_inserting_a_case_changes_no_other_seed(root: int, stream: str, cases: list[str], new: str, at: int) -> None:
    before = {case: derive(root, stream, case) for case in cases}
    longer = [*cases[:at], new, *cases[at:]]
    after = {case: derive(root, stream, case) for case in longer}
    assert {case: after[case] for case in cases} == before


@given(st.integers(0, 2**64), st.text(max_size=8), st.integers(0, 99), st.integers(0, 99))
def test_seeds_fit_a_signed_64_bit_integer(root: int, case: str, trial: int, call: int) -> None:
    assert 0 <= derive(root, "request", case, trial, call) < 2**63


def test_every_part_of_the_name_has_seeds_of_its_own() -> None:
    seeds = {
        derive(1, "request", "a"),
        derive(2, "request", "a"),
        derive(1, "sampling", "a"),
        derive(1, "request", "b"),
        derive(1, "request", "a", trial=1),
        derive(1, "request", "a", call=1),
        derive(1, "request", "a", trial=1, call=1),
    }
    assert len(seeds) == 7
