"""A request's body is kept without its transcript where it can be put together again, byte for byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import JSON, canonical_bytes, sha256
from harnesslab.core.sent import body, kept
from tests.core.traces import VALUES

MESSAGES = st.lists(st.dictionaries(st.sampled_from(["role", "content"]), VALUES, max_size=2), max_size=3)


@given(
    MESSAGES, st.none() | st.lists(VALUES, min_size=1, max_size=2), st.dictionaries(st.text("ab"), VALUES, max_size=2)
)
def test_a_canonical_body_is_kept_as_its_envelope_and_comes_back(
    messages: list[JSON], tools: JSON, rest: dict[str, JSON]
) -> None:
    raw = canonical_bytes({**rest, "messages": messages, **({} if tools is None else {"tools": tools})})
    found = kept(raw, messages, tools)
    assert body(found.text, found.facts, messages, tools).encode() == raw
    assert found.facts["digest"] == sha256(raw).hex()


def test_a_body_in_another_form_is_kept_whole() -> None:
    raw = b'{ "messages": ["q"], "model": "m" }'
    found = kept(raw, ["q"], None)
    assert found.text.encode() == raw
    assert "envelope" not in found.facts
    assert body(found.text, found.facts, ["q"], None).encode() == raw


def test_what_is_no_json_is_kept_as_it_is() -> None:
    assert kept(b"\xff\x00", [], None).text.encode(errors="surrogateescape") == b"\xff\x00"
