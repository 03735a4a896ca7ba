"""Chunks give back what was packed, and each can be read alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import JSON, bytes_digest, canonical_bytes
from harnesslab.core.errors import SealBroken
from harnesslab.core.trace import packing
from harnesslab.core.trace.events import ModelCall, UserTurn, to_json
from harnesslab.core.trace.packing import Opened, PackedChunk, open_chunk, pack
from harnesslab.core.trace.trace import Trace, TraceBuilder, Windows, messages_at
from tests.core.traces import traces


def packed(trace: Trace, size: int) -> list[PackedChunk]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "CHUNK_BYTES", size)
        return list(pack(trace.events, trace.payloads))


@given(traces(), st.integers(1, 600))
def test_packing_and_opening_gives_the_trace_back(trace: Trace, size: int) -> None:
    chunks = packed(trace, size)
    opened = [open_chunk(chunk.data) for chunk in chunks]
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    assert [(one.first_event, one.first_payload) for one in opened] == [
        (c.first_event, c.first_payload) for c in chunks
    ]
    events = [canonical_bytes(to_json(event)) for chunk in opened for event in chunk.events]
    assert events == [canonical_bytes(to_json(event)) for event in trace.events]
    payloads: list[JSON] = [payload for chunk in opened for payload in chunk.payloads]
    assert canonical_bytes(payloads) == canonical_bytes(trace.payloads)


@given(traces(), st.integers(1, 600))
def test_the_messages_of_every_call_follow_from_its_chunk_and_the_payloads(trace: Trace, size: int) -> None:
    for chunk in (open_chunk(item.data) for item in packed(trace, size)):
        for position, event in enumerate(chunk.events):
            if isinstance(event, ModelCall):
                found = [trace.payloads[item] for item in positions_at(chunk, position)]
                whole = messages_at(trace, chunk.first_event + position)
                assert canonical_bytes(found) == canonical_bytes(whole)


def positions_at(chunk: Opened, position: int) -> Sequence[int]:
    windows = Windows.at(dict(chunk.windows))
    found: list[int] = []
    for event in chunk.events[: position + 1]:
        if isinstance(event, ModelCall):
            found = windows.open(event)
    return found


def test_a_payload_kept_elsewhere_leaves_its_digest() -> None:
    builder = TraceBuilder()
    builder.model_call(["long" * 50, "short"])
    trace = builder.close("solved")
    kept = bytes_digest(canonical_bytes(trace.payloads[0]))
    chunk = next(iter(pack(trace.events, trace.payloads, lambda at, body: kept if len(body) > 100 else None)))
    opened = open_chunk(chunk.data)
    assert opened.absent == {0: kept}
    assert opened.payloads == [None, "short"]


def test_payloads_that_no_event_names_are_kept() -> None:
    builder = TraceBuilder()
    builder.payload("unused")
    builder.add(UserTurn(content="hi"))
    (chunk,) = pack(builder.events, builder.payloads)
    assert open_chunk(chunk.data).payloads == ["unused"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"v":2}',
        b'{"v":1,"event":0,"payload":0}',
        b'{"v":1,"event":"x","payload":0,"windows":{}}',
        b'{"v":1,"event":0,"payload":0,"windows":[]}',
        b'{"v":1,"event":0,"payload":0,"windows":{"a":[[1]]}}',
        b'{"v":1,"event":0,"payload":0,"windows":{"a":3}}',
        b'{"v":1,"event":0,"payload":0,"windows":{"a":[["x",1]]}}',
        b'{"v":1,"event":0,"payload":0,"windows":{}}\nX',
        b'{"v":1,"event":0,"payload":0,"windows":{}}\nE{"kind":"nonsense"}',
        b'{"v":1,"event":0,"payload":0,"windows":{}}\nE{',
    ],
)
def test_a_damaged_chunk_says_so(text: bytes) -> None:
    with pytest.raises(SealBroken):
        open_chunk(packing.compress(text))


def test_bytes_that_are_no_chunk_say_so() -> None:
    with pytest.raises(SealBroken, match="can't be read"):
        open_chunk(b"not a chunk")
