"""The first message that differs between two inputs, and who made it."""

from __future__ import annotations

import pytest

from harnesslab.core.comparing.input_difference import InputDifference, first_input_difference
from harnesslab.core.contracts.trace_reader import MemoryTraceReader
from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    HarnessAction,
    MemoryAccess,
    NetworkExchange,
    Retrieval,
    SubagentCall,
    UserTurn,
)
from harnesslab.core.trace.trace import TraceBuilder
from tests.core.traces import bash, episode, model, reader, request, step


def difference(a: list[AnyEvent], b: list[AnyEvent], system: tuple[str, str] = ("S", "S")) -> InputDifference | None:
    """Compare the inputs of the last model call of two episodes."""
    one, two = reader(episode(a, system=system[0])), reader(episode(b, system=system[1]))
    return first_input_difference(one, two, last_call(one), last_call(two))


def last_call(read: MemoryTraceReader) -> int:
    return max(index for index, kind in enumerate(read.kinds) if kind == "model_call")


def test_equal_inputs_have_none_also_with_other_ids() -> None:
    a, b = (step(model(None, request("bash", {}, call=i)), bash("ls", id=i), model("x")) for i in ("1", "call_2"))
    assert difference(a, b) is None


def test_a_tool_result_is_traced_to_its_tool() -> None:
    a, b = (step(bash("ls", text, id="1"), model("x")) for text in ("a", "b"))
    assert difference(a, b) == InputDifference(
        "message 1 (tool)", "tool:bash", "the result of bash at step 1, which the model was given, differs", "a", "b"
    )


def test_a_result_without_an_id_is_found_by_its_text() -> None:
    a, b = (step(bash("x", ""), bash("ls", text), model("x")) for text in ("a", "b"))
    found = difference(a, b)
    assert found is not None
    assert found.boundary == "tool:bash"


def test_an_earlier_answer_is_traced_to_the_call_that_gave_it() -> None:
    a, b = (step(UserTurn(content="go"), model(text), model("x")) for text in ("a", "b"))
    found = difference(a, b)
    assert found is not None
    assert (found.boundary, found.emitters) == ("model", (2, 2))


def test_a_user_turn_is_traced_to_the_user() -> None:
    a, b = (step(UserTurn(content=text), model("x")) for text in ("a", "b"))
    assert difference(a, b) == InputDifference(
        "message 1 (user)", "user", "the user said something different", "a", "b"
    )


def test_one_message_more_is_the_harness_unless_the_user_said_it() -> None:
    bare: list[AnyEvent] = [model("x")]
    found = difference(bare, [HarnessAction(name="message", detail="hurry"), model("x")])
    assert found is not None
    assert (found.boundary, found.why) == ("harness", "the harness sent one more user message in B")
    assert (found.a, found.b) == ("–", "hurry")
    found = difference([UserTurn(content="hurry"), model("x")], bare)
    assert found is not None
    assert (found.boundary, found.why) == ("user", "the user said one more thing in A")


def test_what_the_user_said_in_both_and_one_harness_left_out_is_the_harness() -> None:
    readers = []
    for messages in (["go"], ["an example", "go"]):
        builder = TraceBuilder()
        builder.add(UserTurn(content="go"))
        builder.model_call([{"role": "user", "content": text} for text in messages], text="x")
        readers.append(reader(builder.close("solved")))
    found = first_input_difference(readers[0], readers[1], 1, 1)
    assert found is not None
    assert (found.boundary, found.a, found.b) == ("harness", "–", "an example")
    assert found.why == "the harness sent one more user message in B, before a user message that is equal in both"


@pytest.mark.parametrize(
    ("one", "two", "boundary"),
    [
        (ClockRead(value="one"), ClockRead(value="two"), "clock"),
        (MemoryAccess(operation="read", value="one"), MemoryAccess(operation="read", value="two"), "memory"),
        (Retrieval(documents="one"), Retrieval(documents="two"), "retrieval"),
        (SubagentCall(name="r", output="one"), SubagentCall(name="r", output="two"), "subagent"),
        (NetworkExchange(target="t", response="one"), NetworkExchange(target="t", response="two"), "network"),
    ],
)
def test_what_another_boundary_gave_is_traced_to_it(one: AnyEvent, two: AnyEvent, boundary: str) -> None:
    found = difference([one, model("x")], [two, model("x")], ("Note: one.", "Note: two."))
    assert found is not None
    assert found.boundary == boundary


def test_a_message_that_differs_by_more_than_that_is_the_harness() -> None:
    a: list[AnyEvent] = [ClockRead(value="one"), model("x")]
    b: list[AnyEvent] = [ClockRead(value="two"), model("x")]
    found = difference(a, b, ("Now one.", "Then two."))
    assert found is not None
    assert (found.boundary, found.why) == ("harness", "the harness sent other instructions")


def test_another_role_is_the_harness() -> None:
    a: list[AnyEvent] = [UserTurn(content="a"), model("x")]
    b: list[AnyEvent] = [model("a"), model("x")]
    found = difference(a, b)
    assert found is not None
    assert found.why == "the harness sent a message as user in A and as assistant in B"
