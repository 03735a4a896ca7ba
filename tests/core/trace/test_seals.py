"""Seals show any change of a trace against its head."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harnesslab.core.canonical import canonical_bytes, parse
from harnesslab.core.errors import SealBroken
from harnesslab.core.trace import packing
from harnesslab.core.trace.events import ModelCall, RolloutEnded, ToolCall, UserTurn, Window, from_json, to_json
from harnesslab.core.trace.seals import seals, verify
from harnesslab.core.trace.trace import Trace, TraceBuilder, rebuild
from tests.core.traces import bash, episode, model, request, traces

SMALL = episode(
    [UserTurn(content="fix it"), model("looking", request("bash", {"command": "ls"})), bash("ls", "a.py")],
    [model("done")],
)


@given(traces())
def test_a_trace_verifies_against_its_own_seals(trace: Trace) -> None:
    verify(trace, seals(trace))


@given(traces(), st.data())
def test_a_flipped_byte_of_an_event_or_payload_shows(trace: Trace, data: st.DataObject) -> None:
    parts = [canonical_bytes(to_json(event)) for event in trace.events]
    bodies = [canonical_bytes(payload) for payload in trace.payloads]
    at = data.draw(st.integers(0, len(parts) + len(bodies) - 1))
    lines = parts if at < len(parts) else bodies
    number = at if at < len(parts) else at - len(parts)
    original = lines[number]
    body = bytearray(original)
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    lines[number] = bytes(body)
    try:
        changed = rebuild([from_json(parse(part)) for part in parts], [parse(body) for body in bodies])
        again = to_json(changed.events[number]) if lines is parts else changed.payloads[number]
        assume(canonical_bytes(again) != original)  # another writing of the same value is no change
    except (ValueError, SealBroken):
        return  # it can't even be read
    with pytest.raises(SealBroken):
        verify(changed, seals(trace))


@settings(max_examples=50)
@given(traces(), st.sampled_from(["remove", "swap", "append", "truncate"]), st.randoms(use_true_random=False))
def test_a_removed_swapped_appended_or_cut_event_shows(trace: Trace, change: str, random_: random.Random) -> None:
    events: list[Any] = list(trace.events)
    at = random_.randrange(len(events))
    if change == "remove":
        del events[at]
    elif change == "swap":
        other = random_.randrange(len(events))
        assume(canonical_bytes(to_json(events[at])) != canonical_bytes(to_json(events[other])))
        events[at], events[other] = events[other], events[at]
    elif change == "append":
        events.append(UserTurn(content="one more"))
    else:
        events = events[:at]
    with pytest.raises(SealBroken):
        verify(Trace(events, trace.payloads, trace.digests), seals(trace))


def test_a_trace_cut_together_with_its_seals_shows_by_its_missing_end() -> None:
    cut = Trace(SMALL.events[:-1], SMALL.payloads, SMALL.digests)
    with pytest.raises(SealBroken, match="no closing event"):
        verify(cut, seals(cut))
    ended = Trace((*SMALL.events[:1], SMALL.events[-1]), SMALL.payloads, SMALL.digests)
    with pytest.raises(SealBroken, match="counts 6 events, there are 2"):
        verify(ended, seals(ended))


def test_the_first_event_that_differs_is_named() -> None:
    events = list(SMALL.events)
    events[3] = bash("ls", "b.py")
    with pytest.raises(SealBroken, match="event 3: the event is not the one that was sealed"):
        verify(Trace(events, SMALL.payloads, SMALL.digests), seals(SMALL))
    payloads = [*SMALL.payloads[:-1], "other"]
    with pytest.raises(SealBroken, match=f"payload {len(payloads) - 1}: the content"):
        verify(Trace(SMALL.events, payloads, SMALL.digests), seals(SMALL))


@given(traces(), st.randoms(use_true_random=False))
def test_seals_do_not_depend_on_payload_positions(trace: Trace, random_: random.Random) -> None:
    order = list(range(len(trace.payloads)))
    random_.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    events = [
        msgspec.structs.replace(
            event,
            input=Window(event.input.keep, tuple(place[item] for item in event.input.add)),
            tools=None if event.tools is None else place[event.tools],
        )
        if isinstance(event, ModelCall)
        else event
        for event in trace.events
    ]
    assert seals(rebuild(events, [trace.payloads[old] for old in order])) == seals(trace)


@given(traces(), st.integers(1, 400))
def test_seals_do_not_depend_on_windows_or_chunks(trace: Trace, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "CHUNK_BYTES", size)
        opened = [packing.open_chunk(chunk.data) for chunk in packing.pack(trace.events, trace.payloads)]
    events = [event for chunk in opened for event in chunk.events]
    payloads = [payload for chunk in opened for payload in chunk.payloads]
    assert seals(rebuild(events, payloads)) == seals(trace)


def test_a_list_sent_whole_or_as_a_change_is_sealed_alike() -> None:
    grown, whole = TraceBuilder(), TraceBuilder()
    for builder in (grown, whole):
        builder.model_call(["a"])
    grown.model_call(["a", "b"])
    whole.add(ModelCall(input=Window(0, (whole.payload("a"), whole.payload("b")))))
    assert seals(grown.close("solved")) == seals(whole.close("solved"))


@pytest.mark.parametrize(
    "event",
    [ModelCall(input=Window(2)), ModelCall(input=Window(-1)), ModelCall(input=Window(0, (7,))), ModelCall(tools=-1)],
)
def test_positions_that_do_not_exist_break_the_seal(event: ModelCall) -> None:
    trace = Trace((event, RolloutEnded(outcome="solved", count=2)), (), ())
    with pytest.raises(SealBroken, match="event 0"):
        verify(trace, [bytes(32), bytes(32)])


def test_content_of_a_tool_call_counts_whole() -> None:
    one, two = (Trace((ToolCall(name="a", extra={"n": n}),), (), ()) for n in (1, 2))
    assert seals(one) != seals(two)
