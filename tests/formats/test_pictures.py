"""Two pictures never read alike: in a message, in a tool's result, in a request, whatever format brought them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.comparing.comparison import Comparison, compare_traces
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.contracts.requests import RequestDigests
from harnesslab.core.contracts.trace_reader import MemoryTraceReader
from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.events import ModelCall
from harnesslab.core.trace.parts import parts_of
from harnesslab.formats import registry
from harnesslab.formats.reading.inputs import Report, Unit
from tests.core.trace.pictures import address, png, written
from tests.formats.building import file_unit, json_unit, lines_unit, tool_calls

CASES = Path(__file__).parents[3] / "shared" / "cases"
LEFT, RIGHT = png(8, 8, 1), png(8, 8, 2)


def found(unit: Unit) -> Recording:
    (recording,) = registry.recordings(registry.recognise(unit), Report())
    return recording


def compared(a: Recording, b: Recording) -> Comparison:
    one, two = (MemoryTraceReader(each.trace, each.manifest, each.outcome.value) for each in (a, b))
    return compare_traces(one, two, RAW)


def asked(data: bytes) -> dict[str, Any]:
    content = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": address(data)}}]
    return {"id": "pic", "messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "noise"}]}


def looked(data: bytes) -> dict[str, Any]:
    """A transcript in which a tool answers with a screenshot."""
    call = {"id": "c", "type": "function", "function": {"name": "screenshot", "arguments": "{}"}}
    shown = [{"type": "image_url", "image_url": {"url": address(data)}}]
    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": shown},
        {"role": "assistant", "content": "done"},
    ]
    return {"id": "pic", "messages": messages}


def responded(data: bytes) -> list[dict[str, Any]]:
    """A NeMo-Gym row whose tool answers with a screenshot."""
    picture = {"type": "input_image", "image_url": address(data)}
    output = [
        {"type": "function_call", "name": "screenshot", "arguments": "{}", "call_id": "c"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [picture],
        },
        {"type": "message", "role": "assistant", "content": "done"},
    ]
    return [{"responses_create_params": {"input": "look"}, "response": {"output": output}, "task_id": "pic"}]


def blocks(data: bytes) -> dict[str, Any]:
    """A transcript in Anthropic's blocks whose tool answers with a screenshot."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": written(data)}}
    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "screenshot", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [picture]}]},
        {"role": "assistant", "content": "done"},
    ]
    return {"id": "pic", "messages": messages}


def stepped(data: bytes) -> dict[str, Any]:
    """An ATIF trajectory whose observation holds a screenshot."""
    source = {"type": "base64", "media_type": "image/png", "data": written(data)}
    seen = {"results": [{"source_call_id": "c", "content": [{"type": "image", "source": source}]}]}
    call = {"tool_call_id": "c", "function_name": "screenshot", "arguments": {}}
    steps = [
        {"step_id": 1, "source": "user", "message": "look"},
        {"step_id": 2, "source": "agent", "message": "", "tool_calls": [call], "observation": seen},
        {"step_id": 3, "source": "agent", "message": "done"},
    ]
    return {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": steps}


def test_an_opening_message_that_differs_in_its_picture_says_so() -> None:
    divergence = compared(found(json_unit(asked(LEFT))), found(json_unit(asked(RIGHT)))).contractual
    assert divergence is not None
    assert divergence.why.startswith("the opening message differs in its picture alone")
    (row,) = divergence.evidence
    for shown, data in ((row.a, LEFT), (row.b, RIGHT)):
        assert f"[image/png 8×8, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}]" in shown


@pytest.mark.parametrize("made", [looked, blocks, stepped, responded], ids=lambda made: str(made.__name__))
def test_another_screenshot_is_another_picture_of_the_tool(made: Any) -> None:
    units = [lines_unit(made(data)) if made is responded else json_unit(made(data)) for data in (LEFT, RIGHT)]
    a, b = map(found, units)
    assert [part.digest for part in parts_of(tool_calls(a)[0].result)] == [hashlib.sha256(LEFT).hexdigest()]
    divergence = compared(a, b).contractual
    assert divergence is not None
    assert (divergence.boundary, divergence.cause.value) == ("tool:screenshot", "environment")
    assert divergence.why.startswith("the tool returned another picture")
    assert compared(a, found(units[0])).contractual is None


def test_a_picture_is_part_of_the_request_that_sends_it() -> None:
    def key(data: bytes) -> bytes | None:
        row = {"request": {"model": "m", "messages": asked(data)["messages"][:1]}, "response": {"choices": []}}
        trace = found(json_unit([row])).trace
        call = next(event for event in trace.events if isinstance(event, ModelCall))
        return RequestDigests(trace.payloads).of(call)[0]

    assert key(LEFT) == key(LEFT) is not None
    assert key(LEFT) != key(RIGHT)


@pytest.mark.skipif(not CASES.is_dir(), reason="the real traces are not beside this checkout")
def test_the_case_of_two_opening_pictures() -> None:
    a, b = (found(file_unit((CASES / f"b16d_chat_image_{name}.json").read_bytes(), f"{name}.json")) for name in "ab")
    divergence = compared(a, b).contractual
    assert divergence is not None
    assert "picture" in divergence.why
    assert json.dumps([divergence.evidence[0].a, divergence.evidence[0].b]).count("sha256") == 2
