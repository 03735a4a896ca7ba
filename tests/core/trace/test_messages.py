"""One view over the message dialects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from harnesslab.core.trace.events import ToolRequest
from harnesslab.core.trace.messages import MessageView, parse_arguments, text_of, view
from harnesslab.core.trace.parts import Part
from tests.core.traces import VALUES

CALL = ToolRequest("bash", {"cmd": "ls"}, '{"cmd":"ls"}', "call_1")


@pytest.mark.parametrize(
    ("message", "seen"),
    [
        pytest.param({"role": "user", "content": "hi"}, MessageView("user", "hi"), id="chat"),
        pytest.param("hi", MessageView("user", "hi"), id="bare text"),
        pytest.param(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"cmd":"ls"}'}}
                ],
            },
            MessageView("assistant", tool_calls=(CALL,)),
            id="chat tool call",
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "call_1", "name": "bash", "content": "a.py"},
            MessageView("tool", "a.py", answers="call_1", name="bash"),
            id="chat tool answer",
        ),
        pytest.param(
            {"role": "assistant", "content": "", "function_call": {"name": "bash", "arguments": '{"cmd":"ls"}'}},
            MessageView("assistant", tool_calls=(ToolRequest("bash", {"cmd": "ls"}, '{"cmd":"ls"}'),)),
            id="legacy function call",
        ),
        pytest.param(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "call_1", "function": "bash", "arguments": {"cmd": "ls"}}],
            },
            MessageView("assistant", tool_calls=(ToolRequest("bash", {"cmd": "ls"}, None, "call_1"),)),
            id="a function given by its name",
        ),
        pytest.param(
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "bash", "arguments": '{"cmd":"ls"}'},
            MessageView("assistant", tool_calls=(CALL,)),
            id="responses function call",
        ),
        pytest.param(
            {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
            MessageView("tool", "a.py", answers="call_1"),
            id="responses function output",
        ),
        pytest.param(
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            MessageView("assistant", reasoning="hm"),
            id="responses reasoning",
        ),
        pytest.param(
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            MessageView("user", "hi"),
            id="responses message",
        ),
        pytest.param(
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "call_1", "name": "bash", "input": {"cmd": "ls"}},
                ],
            },
            MessageView("assistant", "Looking.", "hm", (ToolRequest("bash", {"cmd": "ls"}, None, "call_1"),)),
            id="anthropic blocks",
        ),
        pytest.param(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "a.py"}]}
                ],
            },
            MessageView("user", "a.py", answers="call_1"),
            id="anthropic tool result",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]},
            MessageView("user", "see\n[image]", parts=(Part("image"),)),
            id="content parts",
        ),
        pytest.param(
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            MessageView("assistant", "No."),
            id="refusal part",
        ),
        pytest.param({"role": "assistant", "refusal": "No."}, MessageView("assistant", "No."), id="refusal field"),
        pytest.param(
            {"role": "assistant", "content": "hi", "reasoning_content": "hm"},
            MessageView("assistant", "hi", "hm"),
            id="reasoning beside content",
        ),
        pytest.param(7, MessageView("unknown", "7"), id="no message at all"),
    ],
)
def test_a_message_reads_the_same_in_every_dialect(message: Any, seen: MessageView) -> None:
    assert view(message) == seen


@given(VALUES)
def test_any_value_can_be_viewed(value: Any) -> None:
    for message in (value, {"role": "user", "content": value}, {"tool_calls": [value], "function_call": value}):
        assert isinstance(view(message), MessageView)
    assert isinstance(text_of(value), str)


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ('{"a": 1}', ({"a": 1}, '{"a": 1}')),
        ('{"a":', (None, '{"a":')),
        ("", (None, "")),
        ("[1]", ([1], "[1]")),
        ('"text"', ("text", '"text"')),
        ({"a": 1}, ({"a": 1}, None)),
        (None, (None, None)),
    ],
)
def test_arguments_are_kept_as_emitted_also_when_they_are_no_json(raw: Any, parsed: tuple[Any, str | None]) -> None:
    assert parse_arguments(raw) == parsed
