from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import Usage
from harnesslab.formats.reading.inputs import Report
from tests.core.trace.pictures import png, written
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

NAME = "coding-session"
PI = {"type": "session", "id": "p1", "cwd": "/x", "provider": "anthropic", "modelId": "m", "thinkingLevel": "off"}
DROID = {"type": "session_start", "id": "d1", "cwd": "/x", "version": "0.81.0"}


def message(role: str, content: Any, second: int = 1, **more: Any) -> dict[str, Any]:
    at = f"2025-11-20T00:00:{second:02d}.000Z"
    return {"type": "message", "timestamp": at, "message": {"role": role, "content": content, **more}}


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def reply(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"input": 6, "output": 12, "cacheRead": 17_817, "cacheWrite": 80}
    return message("assistant", list(blocks), 2, model="m", usage=usage, **{"stopReason": "stop", **more})


CALL = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}}


def test_a_pi_session_has_calls_with_results_and_usage() -> None:
    shown = message("toolResult", text("content"), 3, toolCallId="t1", toolName="read", isError=False)
    recording = only(lines_unit([PI, message("user", text("Read a")), reply(*text("ok"), CALL), shown]), NAME)
    (call,) = model_calls(recording)
    assert call.usage == Usage(input=17_903, output=12, cache_read=17_817, cache_write=80)
    assert (call.text, call.finish_reason) == ("ok", "stop")
    (tool,) = tool_calls(recording)
    assert (tool.arguments, tool.result, tool.at) == ({"path": "a"}, "content", 2.0)
    assert (recording.harness, recording.case, recording.model) == ("pi", "p1", "m")


def test_a_command_that_a_person_ran_is_the_persons_and_told_to_the_model() -> None:
    ran = {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0, "cancelled": False}
    hidden = {**ran, "command": "env", "excludeFromContext": True}
    rows = [{"type": "message", "timestamp": "2025-11-20T00:00:01.000Z", "message": each} for each in (ran, hidden)]
    report = Report()
    recording = only(lines_unit([PI, *rows, message("user", text("What is there?")), reply(*text("a"))]), NAME, report)
    assert [(call.name, call.agent, call.result, call.exit_code) for call in tool_calls(recording)] == [
        ("bash", "user", "a.txt", 0),
        ("bash", "user", "a.txt", 0),
    ]
    told = [each["content"] for each in sent(recording, model_calls(recording)[0])]
    assert told == ["Ran `ls`\n```\na.txt\n```", text("What is there?")]
    assert trace_statistics(recording.trace, recording.outcome).actions == 0
    assert not report.skipped


def test_the_picture_of_a_tools_result_is_kept() -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": written(png())}
    shown = message("toolResult", [picture], 3, toolCallId="t1", toolName="read", isError=False)
    recording = only(lines_unit([PI, message("user", text("Read a")), reply(*text("ok"), CALL), shown]), NAME)
    assert tool_calls(recording)[0].result == [picture]


def test_a_droid_session_answers_calls_in_user_messages() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Execute", "input": {"command": "ls"}}
    shown = message("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}], 3)
    recording = only(lines_unit([DROID, message("user", text("List")), message("assistant", [use]), shown]), NAME)
    assert tool_calls(recording)[0].result == "a.txt"
    assert len(user_turns(recording)) == 1
    assert (recording.harness, recording.revision) == ("droid", "0.81.0")


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [("stop", Outcome.UNKNOWN), ("aborted", Outcome.INTERRUPTED), ("error", Outcome.INFRA_ERROR)],
)
def test_the_stop_of_the_last_reply_is_the_outcome(stop: str, outcome: Outcome) -> None:
    rows = [PI, message("user", text("Hi")), reply(*text("ok"), stopReason=stop)]
    assert only(lines_unit(rows), NAME).outcome is outcome


def test_a_session_that_ends_inside_a_call_was_interrupted() -> None:
    recording = only(lines_unit([PI, message("user", text("Hi")), reply(CALL, stopReason="toolUse")]), NAME)
    assert not tool_calls(recording)[0].has_result
    assert recording.outcome is Outcome.INTERRUPTED


def test_changes_of_settings_are_harness_actions() -> None:
    change = {"type": "model_change", "provider": "p", "modelId": "n"}
    recording = only(lines_unit([PI, change, message("user", text("Hi")), reply(*text("ok"))]), NAME)
    assert [(action.name, action.detail) for action in actions(recording)] == [
        ("model change", {"provider": "p", "modelId": "n"})
    ]


def test_each_header_begins_a_rollout() -> None:
    rows = [PI, message("user", text("a")), reply(*text("b"))]
    found = recordings(lines_unit([*rows, PI | {"id": "p2"}, *rows[1:]]), NAME)
    assert [recording.case for recording in found] == ["p1", "p2"]


def test_blank_lines_pass_and_half_a_last_line_is_listed() -> None:
    whole = "\n\n".join(map(json.dumps, [PI, message("user", text("a")), reply(*text("b"))]))
    report = Report()
    only(file_unit((whole + '\n{"type": "mess').encode(), "s.jsonl"), NAME, report)
    assert [item.where for item in report.skipped] == ["line 6"]
