from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.running.rollout import Outcome
from tests.formats.building import actions, json_unit, model_calls, only, tool_calls, user_turns

NAME = "openhands"


def event(number: int, source: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": f"2025-01-01T00:00:{number:02d}.000000", "source": source, **more}


def asked() -> dict[str, Any]:
    return event(0, "user", action="message", args={"content": "List the files"})


def metadata(call_id: str = "t1", arguments: str = '{"command": "ls"}') -> dict[str, Any]:
    calls = [{"id": call_id, "function": {"name": "execute_bash", "arguments": arguments}}]
    message = {"role": "assistant", "content": "Let me", "tool_calls": calls}
    choices = [{"finish_reason": "tool_calls", "message": message}]
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    response = {"id": "r1", "model": "m", "choices": choices, "usage": usage}
    return {"function_name": "execute_bash", "tool_call_id": call_id, "model_response": response}


def acted(number: int = 1, **more: Any) -> dict[str, Any]:
    known = {"action": "run", "args": {"command": "ls"}, "tool_call_metadata": metadata()}
    return event(number, "agent", **{**known, **more})


def observed(number: int = 2, **more: Any) -> dict[str, Any]:
    extras = {"metadata": {"exit_code": 0}}
    known = {"observation": "run", "content": "a.txt", "extras": extras, "cause": 1, "tool_call_metadata": metadata()}
    return event(number, "agent", **{**known, **more})


def test_a_response_beside_action_and_observation_is_one_model_call() -> None:
    recording = only(json_unit([asked(), acted(), observed()]), NAME)
    (call,) = model_calls(recording)
    assert (call.text, call.response_id, call.at) == ("Let me", "r1", 1.0)
    assert call.raw_response
    (tool,) = tool_calls(recording)
    assert (tool.name, tool.arguments, tool.result, tool.exit_code) == ("execute_bash", {"command": "ls"}, "a.txt", 0)
    assert user_turns(recording)[0].content == "List the files"


def test_an_action_without_a_recorded_response_is_answered_by_its_cause() -> None:
    action = acted(1, tool_call_metadata=None, args={"command": "ls", "thought": "look"})
    recording = only(json_unit([asked(), action, observed(tool_call_metadata=None)]), NAME)
    assert model_calls(recording)[0].text == "look"
    assert [(tool.name, tool.result) for tool in tool_calls(recording)] == [("run", "a.txt")]


def test_state_changes_are_harness_actions() -> None:
    change = event(1, "environment", observation="agent_state_changed", content="", extras={"agent_state": "running"})
    assert actions(only(json_unit([asked(), change]), NAME))[0].name == "agent state changed"


def test_a_session_that_ends_inside_a_call_was_interrupted_unless_it_finished() -> None:
    assert only(json_unit([asked(), acted()]), NAME).outcome is Outcome.INTERRUPTED
    assert only(json_unit([asked(), acted(action="finish")]), NAME).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("arguments", ['"a bare string"', '{"a":', "[1]", ""])
def test_arguments_are_kept_as_emitted_whatever_they_are(arguments: str) -> None:
    action = acted(tool_call_metadata=metadata(arguments=arguments))
    (tool,) = tool_calls(only(json_unit([asked(), action]), NAME))
    assert tool.raw == arguments
