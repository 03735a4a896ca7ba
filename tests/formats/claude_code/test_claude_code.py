from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import SubagentCall, Usage
from harnesslab.formats.reading.inputs import Report
from tests.formats.building import (
    actions,
    file_unit,
    json_unit,
    lines_unit,
    model_calls,
    only,
    recordings,
    sent,
    tool_calls,
    user_turns,
)

NAME = "claude-code"
USAGE = {
    "input_tokens": 6,
    "cache_creation_input_tokens": 80,
    "cache_read_input_tokens": 17_817,
    "output_tokens": 12,
}


def line(kind: str, message: Any, second: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"u{second}",
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": "s1",
        "version": "1.0.98",
        "cwd": "/project",
        "gitBranch": "main",
        "timestamp": f"2025-06-14T10:00:{second:02d}.000Z",
        "message": message,
        **more,
    }


def asked(text: Any = "List the files", second: int = 0, **more: Any) -> dict[str, Any]:
    return line("user", {"role": "user", "content": text}, second, **more)


def reply(*blocks: dict[str, Any], name: str = "m1", second: int = 1, **more: Any) -> dict[str, Any]:
    message = {"id": name, "role": "assistant", "model": "claude-x", "content": list(blocks), "usage": USAGE}
    return line("assistant", {**message, **more.pop("message", {})}, second, requestId=f"r-{name}", **more)


def use(call_id: str = "t1", name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given or {"command": "ls"}}


def result(content: Any = "a.txt", call_id: str = "t1", second: int = 2, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": more.pop("error", False)}
    return line("user", {"role": "user", "content": [block]}, second, **more)


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_the_lines_of_one_reply_are_one_call_whose_usage_counts_once() -> None:
    rows = [asked(), reply({"type": "thinking", "thinking": "look"}), reply(said("Let me"), second=2)]
    rows += [reply(use(), second=3), result(second=4), reply(said("One."), name="m2", second=5)]
    first, second = model_calls(only(lines_unit(rows), NAME))
    assert (first.text, first.reasoning, len(first.tool_calls)) == ("Let me", "look", 1)
    assert first.usage == Usage(input=17_903, output=12, cache_read=17_817, cache_write=80)
    assert (first.response_id, first.extra["request_id"]) == ("m1", "r-m1")
    assert (first.at, second.at) == (1.0, 5.0)


def test_a_reply_whose_lines_have_a_result_between_is_still_one_call() -> None:
    rows = [asked(), reply(use("t1")), result(call_id="t1"), reply(use("t2"), second=3), result("b", "t2", 4)]
    recording = only(lines_unit(rows), NAME)
    assert len(model_calls(recording)) == 1
    assert [(call.emitted, call.completed, call.result) for call in tool_calls(recording)] == [
        (0, 0, "a.txt"),
        (1, 1, "b"),
    ]


def test_a_result_is_kept_as_produced_and_as_the_model_saw_it() -> None:
    produced = {"stdout": "a.txt\nb.txt", "stderr": "", "interrupted": False, "durationMs": 250}
    (call,) = tool_calls(only(lines_unit([asked(), reply(use()), result("a.txt", toolUseResult=produced)]), NAME))
    assert (call.result, call.seen, call.latency) == (produced, "a.txt", 0.25)


def test_an_error_result_is_the_error_of_its_call() -> None:
    (call,) = tool_calls(only(lines_unit([asked(), reply(use()), result("no such file", error=True)]), NAME))
    assert call.error == "no such file"


def test_requests_are_rebuilt_from_the_conversation() -> None:
    rows = [asked(), reply(use()), result(), reply(said("One."), name="m2", second=3)]
    recording = only(lines_unit(rows), NAME)
    assert [message["role"] for message in sent(recording, model_calls(recording)[1])] == ["user", "assistant", "user"]


def test_each_session_of_a_file_is_a_rollout() -> None:
    other: dict[str, Any] = {"sessionId": "s2"}
    rows = [asked(), asked("Other", **other), reply(said("a")), reply(said("b"), name="m9", **other)]
    found = recordings(lines_unit(rows), NAME)
    assert [recording.case for recording in found] == ["s1", "s2"]
    assert [model_calls(recording)[0].text for recording in found] == ["a", "b"]


def test_a_sidechain_is_a_sub_agent_of_the_call_that_began_it() -> None:
    side = {"isSidechain": True}
    rows = [
        asked(second=0),
        reply(use("t1", "Task", prompt="Look around", subagent_type="explorer"), second=1),
        asked("Look around", second=2, **side),
        reply(said("Found"), name="m2", second=3, parentUuid="u2", **side),
        result("Found", second=4),
        reply(said("Done"), name="m3", second=5),
    ]
    recording = only(lines_unit(rows), NAME)
    assert [call.agent for call in model_calls(recording)] == ["", "sidechain/0", ""]
    (handed,) = [event for event in recording.trace.events if isinstance(event, SubagentCall)]
    assert (handed.name, handed.child, handed.output) == ("explorer", "sidechain/0", "Found")
    assert recording.facts["sidechains"] == {"in_totals": True, "agents": ["sidechain/0"]}


def test_what_the_harness_adds_is_no_user_turn() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "sessionId": "s1", "content": "compacted"}
    rows = [asked(), reply(said("a")), boundary, asked("In short: …", 3, isCompactSummary=True)]
    rows += [asked("reminder", 4, isMeta=True), asked("Go on", 5), reply(said("b"), name="m2", second=6)]
    recording = only(lines_unit(rows), NAME)
    assert [turn.content for turn in user_turns(recording)] == ["List the files", "Go on"]
    assert [action.name for action in actions(recording)] == ["compact boundary", "compact summary", "meta message"]
    assert len(sent(recording, model_calls(recording)[1])) == 3


def test_hooks_permissions_and_snapshots_are_harness_actions() -> None:
    rows = [asked(), reply(said("a")), {"type": "permission-mode", "permissionMode": "plan", "sessionId": "s1"}]
    (action,) = actions(only(lines_unit(rows), NAME))
    assert (action.name, action.detail) == ("permission-mode", {"permissionMode": "plan"})


def test_a_reply_that_the_harness_made_up_is_no_model_call() -> None:
    synthetic = reply(said("API Error"), message={"model": "<synthetic>"}, isApiErrorMessage=True)
    recording = only(lines_unit([asked(), synthetic]), NAME)
    assert not model_calls(recording)
    assert actions(recording)[0].name == "api error"


def test_a_session_that_ends_inside_a_call_was_interrupted() -> None:
    recording = only(lines_unit([asked(), reply(use())]), NAME)
    (call,) = tool_calls(recording)
    assert not call.has_result
    assert recording.outcome is Outcome.INTERRUPTED


def test_a_session_has_no_verdict() -> None:
    recording = only(lines_unit([asked(), reply(said("Done"))]), NAME)
    assert (recording.outcome, recording.reward) == (Outcome.UNKNOWN, None)


def test_the_envelope_gives_revision_folder_and_branch() -> None:
    recording = only(lines_unit([asked(), reply(said("Done"))]), NAME)
    assert (recording.revision, recording.model) == ("1.0.98", "claude-x")
    assert recording.manifest.value("environment.platform") == "/project"
    assert recording.facts["branches"] == ["main"]


def test_a_summary_belongs_to_the_session_that_holds_its_leaf() -> None:
    rows = [{"type": "summary", "summary": "Listing", "leafUuid": "u1"}, asked(), reply(said("Done"))]
    report = Report()
    stray = {"type": "summary", "summary": "Elsewhere", "leafUuid": "zz"}
    found = recordings(lines_unit([*rows, asked("x", 7, sessionId="s2"), stray]), NAME, report)
    assert found[0].facts["summaries"] == [{"summary": "Listing", "leafUuid": "u1"}]
    assert [item.why for item in report.skipped] == ["a summary of a session that is not in the file"]


def test_one_document_with_the_lines_is_read_alike() -> None:
    rows = [{key: row[key] for key in ("type", "timestamp", "message")} for row in (asked(), reply(use()), result())]
    recording = only(json_unit({"loglines": rows}, "session.json"), NAME)
    assert (recording.case, len(tool_calls(recording))) == ("session", 1)


@pytest.mark.parametrize("given", ["a bare string", [1], "", None])
def test_input_that_is_no_object_is_kept(given: Any) -> None:
    rows = [asked(), reply({"type": "tool_use", "id": "t1", "name": "Bash", "input": given}), result()]
    (call,) = tool_calls(only(lines_unit(rows), NAME))
    assert (call.raw if isinstance(given, str) else call.arguments) == given


def test_bad_lines_are_listed_and_the_rest_is_read() -> None:
    rows: list[Any] = [asked(), "massive error", {"silly": "this"}, line("user", "error", 3), reply(said("Done"))]
    report = Report()
    data = "\n".join(map(json.dumps, rows)) + '\n\n{"type": "user", "mess'
    recording = only(file_unit(data.encode(), "s.jsonl"), NAME, report)
    assert len(model_calls(recording)) == 1
    assert {item.where: item.why for item in report.skipped} == {
        "line 2": "a JSON string, not an object",
        "line 3": "no type",
        "line 4": "a message without content",
        "line 7": "cut off: the file ends inside this line",
    }


def test_nul_surrogates_and_literal_escapes_are_kept() -> None:
    data = "\n".join(map(json.dumps, [asked(), reply(use()), result("@@")])).replace("@@", r"\u0000 \\u0000 \udcb2")
    (call,) = tool_calls(only(file_unit(data.encode(), "s.jsonl"), NAME))
    assert call.result == "\x00 \\u0000 \udcb2"


def test_a_file_of_summaries_alone_is_refused() -> None:
    rows = [{"type": "summary", "summary": "x", "leafUuid": "y"}] * 2
    with pytest.raises(FormatRefused):
        recordings(lines_unit(rows), NAME)


def test_the_file_of_a_sub_agent_is_no_trial_of_its_session() -> None:
    rows = [asked(isSidechain=True), reply(said("a"), isSidechain=True)]
    recording = only(lines_unit(rows, "agent-7.jsonl"), NAME)
    assert (recording.case, recording.facts["session"]) == ("agent-7", "s1")
