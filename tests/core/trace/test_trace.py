"""Traces keep each message once, and give back every message list as it was sent."""

from __future__ import annotations

import pytest
from hypothesis import given

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import InvalidValue
from harnesslab.core.trace.events import ModelCall, RolloutEnded, UserTurn, Window
from harnesslab.core.trace.trace import Trace, TraceBuilder, Windows, messages_at, rebuild
from tests.core.traces import traces, transcripts


@given(transcripts())
def test_windows_give_back_the_exact_message_lists(calls: list[tuple[str, list[JSON]]]) -> None:
    builder = TraceBuilder()
    for agent, messages in calls:
        builder.model_call(messages, agent=agent)
    trace = builder.trace()
    for index, (_, messages) in enumerate(calls):
        assert canonical_bytes(messages_at(trace, index)) == canonical_bytes(messages)


@given(traces())
def test_each_payload_is_kept_once_under_its_digest(trace: Trace) -> None:
    assert len(set(trace.digests)) == len(trace.payloads)
    assert rebuild(trace.events, trace.payloads).digests == trace.digests


def test_true_is_not_taken_for_one() -> None:
    builder = TraceBuilder()
    builder.model_call([{"content": [1]}])
    builder.model_call([{"content": [True]}])
    assert messages_at(builder.trace(), 1) == [{"content": [True]}]
    assert canonical_bytes(messages_at(builder.trace(), 1)) == b'[{"content":[true]}]'


def test_an_extended_transcript_adds_only_what_is_new() -> None:
    builder = TraceBuilder()
    first: list[JSON] = [{"role": "user", "content": "a"}]
    builder.model_call(first)
    call = builder.model_call([*first, {"role": "user", "content": "b"}])
    assert call.input == Window(1, (1,))


def test_a_call_given_by_positions_continues_into_one_given_by_messages() -> None:
    builder = TraceBuilder()
    builder.add(ModelCall(input=Window(0, (builder.payload("a"), builder.payload("b")))))
    assert builder.model_call(["a", "c"]).input == Window(1, (2,))


@pytest.mark.parametrize(
    "call",
    [
        ModelCall(input=Window(0, (3,))),
        ModelCall(input=Window(0, (-1,))),
        ModelCall(tools=0),
        ModelCall(input=Window(1)),
    ],
)
def test_positions_that_do_not_exist_are_refused(call: ModelCall) -> None:
    with pytest.raises(InvalidValue):
        TraceBuilder().add(call)


def test_a_window_never_keeps_less_than_nothing() -> None:
    with pytest.raises(InvalidValue, match="keeps -1 messages of 0"):
        Windows().open(ModelCall(input=Window(-1)))


def test_closing_counts_all_events() -> None:
    builder = TraceBuilder()
    builder.add(UserTurn(content="hi", step=4))
    assert builder.close("solved").events[-1] == RolloutEnded(outcome="solved", count=2, step=4)


def test_steps_count_agent_turns() -> None:
    builder = TraceBuilder()
    builder.model_call([], step=0)
    builder.model_call([], step=0, attempt=1)
    builder.model_call([], step=3)
    builder.add(UserTurn(step=4))
    assert builder.trace().steps == 2


def test_only_a_model_call_has_messages() -> None:
    with pytest.raises(InvalidValue, match="event 0 is not a model call"):
        messages_at(Trace((UserTurn(),), (), ()), 0)
