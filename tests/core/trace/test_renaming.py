"""Generated identifiers are named by order of first use."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.trace.renaming import Renamer

IDS = st.one_of(
    st.uuids().map(str),
    st.text("0123456789abcdefABCDEF", min_size=12, max_size=24).map("call_".__add__),
    st.text("0123456789abcdefABCDEF", min_size=12, max_size=24).map("chatcmpl-".__add__),
)


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(IDS, min_size=10, max_size=10, unique=True))
def test_any_relabelling_of_ids_gives_the_same_names(uses: list[int], ids: list[str]) -> None:
    one, two = Renamer(), Renamer()
    for use in uses:
        assert one.text(f"see ({ids[use]}) now") == two.text(f"see ({ids[use + 5]}) now")
        assert one.id(ids[use]) == two.id(ids[use + 5])


@given(st.lists(IDS, min_size=2, max_size=2, unique=True))
def test_two_ids_never_share_a_name(ids: list[str]) -> None:
    renamer = Renamer()
    assert renamer.id(ids[0]) != renamer.id(ids[1])
    assert renamer.text(f"{ids[0]} {ids[1]} {ids[0]}") == "<id 1> <id 2> <id 1>"


def test_an_id_in_a_field_and_in_text_has_one_name() -> None:
    renamer, call = Renamer(), "call_0123456789ab"
    assert renamer.id(call) == "<id 1>"
    assert renamer.text(f"answer of {call}") == "answer of <id 1>"


def test_what_is_no_generated_id_stays() -> None:
    for text in ("call_me", "account-12", "a-b-c", "snake_case", "msg_short", str(uuid.UUID(int=1))[:-1]):
        assert Renamer().text(text) == text


def test_no_id_stays_none() -> None:
    assert Renamer().id("") == ""
