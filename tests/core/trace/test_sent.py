"""Bodies of requests come back byte for byte, and take the space of what is new in them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import sha256
from harnesslab.core.trace.sent import WHOLE_EVERY, SentBodies, SentBody, body, keeps


def restored(kept: list[SentBody]) -> list[bytes]:
    found = []
    for place in range(len(kept)):
        first = max(number for number in range(place + 1) if keeps(kept[number].facts) == 0)
        chain = [(item.text, item.facts) for item in kept[first : place + 1]]
        found.append(body(chain).encode(errors="surrogateescape"))
    return found


@given(st.lists(st.binary(max_size=20), max_size=80))
def test_any_bytes_come_back(bodies: list[bytes]) -> None:
    keeper = SentBodies()
    kept = [keeper.keep("", raw) for raw in bodies]
    assert restored(kept) == bodies
    assert [item.facts["digest"] for item in kept] == [sha256(raw).hex() for raw in bodies]


def transcript(steps: int) -> list[bytes]:
    messages = [{"role": "user", "content": f"{number} " + "x" * 100} for number in range(steps)]
    return [json.dumps({"model": "m", "messages": messages[: n + 1], "seed": n}).encode() for n in range(steps)]


def test_a_growing_transcript_is_kept_in_space_that_grows_with_its_steps() -> None:
    bodies = transcript(WHOLE_EVERY)
    keeper = SentBodies()
    kept = [keeper.keep("", raw) for raw in bodies]
    assert sum(len(item.text) for item in kept) < 2 * len(bodies[-1])
    assert restored(kept) == bodies


def test_now_and_then_a_body_is_kept_whole() -> None:
    keeper = SentBodies()
    kept = [keeper.keep("", raw) for raw in transcript(2 * WHOLE_EVERY)]
    assert [place for place, item in enumerate(kept) if keeps(item.facts) == 0] == [0, WHOLE_EVERY]


def test_each_agent_has_a_chain_of_its_own() -> None:
    keeper = SentBodies()
    keeper.keep("", b"aaa")
    assert keeps(keeper.keep("research", b"aaab").facts) == 0
    assert keeps(keeper.keep("", b"aaac").facts) == 3
