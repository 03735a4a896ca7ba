"""The same request has the same digest, whatever ids and seeds it carried."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from harnesslab.core.canonical import JSON
from harnesslab.core.contracts.requests import ANSWER_WIDTH, REQUEST_WIDTH, RequestDigests
from harnesslab.core.trace.events import Fidelity, ModelCall
from harnesslab.core.trace.trace import Trace, TraceBuilder
from tests.core.traces import request as tool_request
from tests.core.traces import traces


def digests(messages: list[JSON], **fields: Any) -> tuple[bytes, bytes | None]:
    builder = TraceBuilder()
    call = builder.model_call(messages, fidelity=Fidelity.RECORDED, **fields)
    request, answer = RequestDigests(builder.payloads).of(call)
    assert request is not None
    return request, answer


def test_a_request_that_an_importer_rebuilt_has_no_digest() -> None:
    builder = TraceBuilder()
    call = builder.model_call(["q"], text="a", fidelity=Fidelity.REBUILT)
    assert RequestDigests(builder.payloads).of(call) == (None, None)


def asked(call_id: str, to: str = "b") -> list[JSON]:
    calls: JSON = [{"id": call_id, "type": "function", "function": {"name": "pay", "arguments": f'{{"to":"{to}"}}'}}]
    return [
        {"role": "user", "content": "pay"},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": call_id, "content": "paid"},
    ]


def test_ids_and_seeds_are_no_part_of_what_is_asked() -> None:
    one = digests(asked("call_1"), model="m", settings={"temperature": 1, "seed": 1, "user": "me"})
    two = digests(asked("x"), model="m", settings={"temperature": 1.0, "seed": 2, "metadata": {"run": 7}})
    assert one[0] == two[0]
    assert len(one[0]) == REQUEST_WIDTH


def test_model_messages_tools_and_settings_are() -> None:
    plain = digests(asked("a"), model="m", settings={"temperature": 1}, tools=[{"name": "pay"}])[0]
    others = {
        digests(asked("a"), model="n", settings={"temperature": 1}, tools=[{"name": "pay"}])[0],
        digests(asked("a", to="c"), model="m", settings={"temperature": 1}, tools=[{"name": "pay"}])[0],
        digests(asked("a"), model="m", settings={"temperature": 0}, tools=[{"name": "pay"}])[0],
        digests(asked("a"), model="m", settings={"temperature": 1}, tools=[{"name": "get"}])[0],
        digests(asked("a"), model="m", settings={"temperature": 1})[0],
    }
    assert len(others | {plain}) == 6


def test_the_same_answer_has_the_same_digest_whichever_attempt_it_was() -> None:
    one = digests(["q"], text="a", tool_calls=(tool_request("ls", {}, call="1"),))[1]
    two = digests(
        ["q"], text="a", tool_calls=(tool_request("ls", {}, call="2"),), attempt=2, rejected="no", response_id="r"
    )[1]
    assert one == two
    assert one is not None
    assert len(one) == ANSWER_WIDTH
    assert one != digests(["q"], text="b", tool_calls=(tool_request("ls", {}),))[1]
    assert one != digests(["q"], text="a")[1]


def test_a_failed_call_has_no_answer() -> None:
    assert digests(["q"], error="overloaded")[1] is None


@given(traces())
def test_asking_again_in_the_same_trace_gives_the_same_digest(trace: Trace) -> None:
    once, again = RequestDigests(trace.payloads), RequestDigests(trace.payloads)
    for event in trace.events:
        if isinstance(event, ModelCall):
            assert once.of(event) == again.of(event)
