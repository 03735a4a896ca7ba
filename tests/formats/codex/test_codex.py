from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import Usage
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.reading.inputs import Report
from tests.formats.building import (
    actions,
    file_unit,
    lines_unit,
    model_calls,
    only,
    recordings,
    sent,
    tool_calls,
    user_turns,
)

NAME = "codex"


def row(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "type": kind, "payload": payload}


def meta(name: str = "id-1", **more: Any) -> dict[str, Any]:
    told = {"text": "You are an agent"}
    return row("session_meta", id=name, cwd="/x", cli_version="0.106.0", base_instructions=told, **more)


def item(kind: str, second: int = 1, **payload: Any) -> dict[str, Any]:
    return row("response_item", second, type=kind, **payload)


def event(kind: str, second: int = 1, **payload: Any) -> dict[str, Any]:
    return row("event_msg", second, type=kind, **payload)


def asked(text: str = "List the files", second: int = 1) -> dict[str, Any]:
    return item("message", second, role="user", content=[{"type": "input_text", "text": text}])


def said(text: str, second: int = 4) -> dict[str, Any]:
    return item("message", second, role="assistant", content=[{"type": "output_text", "text": text}])


def call(call_id: str = "c1", arguments: str = '{"command": ["ls"]}') -> dict[str, Any]:
    return item("function_call", 2, call_id=call_id, name="shell", arguments=arguments)


def output(text: Any = "a.txt", call_id: str = "c1") -> dict[str, Any]:
    return item("function_call_output", 3, call_id=call_id, output=text)


TURN = row("turn_context", model="gpt-x", effort="high", sandbox_policy={"network_access": False})
COUNTED = {
    "input_tokens": 17_903,
    "cached_input_tokens": 17_817,
    "output_tokens": 9,
    "reasoning_output_tokens": 3,
}


def test_items_make_calls_and_tool_calls() -> None:
    thought = item("reasoning", 2, summary=[{"type": "summary_text", "text": "look"}])
    recording = only(lines_unit([meta(), TURN, asked(), thought, call(), output(), said("One.")]), NAME)
    first, second = model_calls(recording)
    assert (first.model, first.reasoning, second.text) == ("gpt-x", "look", "One.")
    (tool,) = tool_calls(recording)
    assert (tool.arguments, tool.result, tool.at) == ({"command": ["ls"]}, "a.txt", 3.0)
    assert sent(recording, first)[0] == {"role": "system", "content": "You are an agent"}
    assert text_of(user_turns(recording)[0].content) == "List the files"


def test_the_session_states_revision_model_and_network() -> None:
    recording = only(lines_unit([meta(), TURN, asked(), said("One.")]), NAME)
    assert (recording.case, recording.revision, recording.model) == ("id-1", "0.106.0", "gpt-x")
    assert recording.manifest.value("sampling.reasoning_effort") == "high"
    assert recording.manifest.value("environment.network") == {"access": False}


def test_a_token_count_belongs_to_the_call_before_it_and_counts_once() -> None:
    counted = event("token_count", info={"total_token_usage": COUNTED, "last_token_usage": COUNTED})
    rows = [meta(), TURN, asked(), call(), counted, output(), counted, said("One.")]
    first, second = model_calls(only(lines_unit(rows), NAME))
    assert first.usage == Usage(input=17_903, output=9, cache_read=17_817, reasoning=3)
    assert second.usage is None


def test_what_a_command_produced_stands_beside_what_the_model_saw() -> None:
    end = event(
        "exec_command_end",
        call_id="c1",
        aggregated_output="long",
        exit_code=2,
        duration={"secs": 1, "nanos": 500_000_000},
    )
    (tool,) = tool_calls(only(lines_unit([meta(), TURN, asked(), call(), end, output("short")]), NAME))
    assert (tool.result, tool.seen, tool.exit_code, tool.latency) == ("long", "short", 2, 1.5)


def test_an_exit_code_inside_the_output_is_read() -> None:
    shown = json.dumps({"output": "a", "metadata": {"exit_code": 1, "duration_seconds": 0.2}})
    (tool,) = tool_calls(only(lines_unit([meta(), TURN, asked(), call(), output(shown)]), NAME))
    assert (tool.exit_code, tool.latency) == (1, 0.2)


def test_copies_for_display_are_left_out_and_other_events_kept() -> None:
    rows = [meta(), TURN, event("user_message", message="List the files"), asked(), said("One.")]
    rows += [event("agent_message", message="One."), event("agent_message", message="Something else")]
    recording = only(lines_unit(rows), NAME)
    assert [action.detail for action in actions(recording) if action.name == "agent message"] == [
        {"message": "Something else"}
    ]
    assert len(user_turns(recording)) == 1


def test_injected_context_is_no_user_turn() -> None:
    recording = only(lines_unit([meta(), TURN, asked("<environment_context>x"), asked(), said("One.")]), NAME)
    assert len(user_turns(recording)) == 1
    assert "context message" in [action.name for action in actions(recording)]


def test_a_compaction_replaces_what_is_sent() -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "In short"}]}]
    compacted = row("compacted", message="", replacement_history=history)
    recording = only(lines_unit([meta(), TURN, asked(), said("One."), compacted, asked("More"), said("Two.", 5)]), NAME)
    assert len(sent(recording, model_calls(recording)[1])) == 2
    assert "compacted" in [action.name for action in actions(recording)]


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ([event("task_started"), said("One."), event("task_complete")], Outcome.UNKNOWN),
        ([event("task_started"), said("One.")], Outcome.INTERRUPTED),
        ([event("task_started"), event("turn_aborted", reason="interrupted")], Outcome.INTERRUPTED),
        ([event("task_started"), event("error", message="stream lost")], Outcome.INFRA_ERROR),
        ([said("One.")], Outcome.UNKNOWN),
    ],
)
def test_the_end_of_the_last_turn_is_the_outcome(rows: list[dict[str, Any]], outcome: Outcome) -> None:
    assert only(lines_unit([meta(), TURN, asked(), *rows]), NAME).outcome is outcome


def test_another_session_is_another_rollout_and_a_fork_is_not() -> None:
    fork = meta("id-2", forked_from_id="id-1")
    rows = [meta(), TURN, asked(), fork, said("One."), meta("id-9"), TURN, asked(), said("Two.")]
    assert [recording.case for recording in recordings(lines_unit(rows), NAME)] == ["id-1", "id-9"]


def test_a_late_output_still_answers_its_call() -> None:
    rows = [meta(), TURN, asked(), call("c1"), call("c2"), output("b", "c2"), said("Wait."), output("a", "c1")]
    found = tool_calls(only(lines_unit(rows), NAME))
    assert [(tool.id, tool.result, tool.step) for tool in found] == [("c2", "b", 0), ("c1", "a", 0)]


@pytest.mark.parametrize("arguments", ['"a bare string"', '{"a":', "[1]", ""])
def test_arguments_are_kept_as_emitted_whatever_they_are(arguments: str) -> None:
    (tool,) = tool_calls(only(lines_unit([meta(), TURN, asked(), call(arguments=arguments), output()]), NAME))
    assert tool.raw == arguments


def test_a_call_without_output_has_no_result() -> None:
    (tool,) = tool_calls(only(lines_unit([meta(), TURN, asked(), call()]), NAME))
    assert not tool.has_result


def test_half_a_last_line_is_listed_and_the_rest_is_read() -> None:
    rows = [meta(), TURN, asked(), said("One.")]
    data = "\n".join(map(json.dumps, rows)) + '\n{"timestamp": "2026'
    report = Report()
    assert len(model_calls(only(file_unit(data.encode(), "s.jsonl"), NAME, report))) == 1
    assert [(item.where, item.why) for item in report.skipped] == [
        ("line 5", "cut off: the file ends inside this line")
    ]
