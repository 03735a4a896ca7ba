from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.events import Fidelity, Usage
from harnesslab.formats import registry
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
    verifications,
)

NAME = "chat-log"
ASKED = {"role": "user", "content": "List the files"}


def calling(arguments: str, call_id: str = "c1") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(content: str, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m-2024",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 17_903, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 17_817}},
        **more,
    }


def row(messages: list[Any], message: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    request = {"model": "m", "messages": messages, "temperature": 0.2, "seed": 7, "tools": [{"type": "function"}]}
    return {"request": request, "response": completion(message) if message else None, **more}


def test_requests_that_extend_each_other_are_one_rollout() -> None:
    first = calling('{"command": "ls"}')
    done = {"role": "assistant", "content": "One file."}
    rows = [row([ASKED], first), row([ASKED, first, answered("a.txt")], done)]
    recording = only(lines_unit(rows), NAME)
    (tool,) = tool_calls(recording)
    assert (tool.arguments, tool.result, tool.step) == ({"command": "ls"}, "a.txt", 0)
    assert [call.step for call in model_calls(recording)] == [0, 1]
    assert [turn.content for turn in user_turns(recording)] == ["List the files"]


def test_other_requests_are_other_rollouts_and_equal_ones_are_trials_of_one_case() -> None:
    done = {"role": "assistant", "content": "ok"}
    other = {"role": "user", "content": "Something else"}
    found = recordings(lines_unit([row([ASKED], done), row([ASKED], done), row([other], done)]), NAME)
    assert [recording.trial for recording in found] == [0, 1, 0]
    assert found[0].case == found[1].case != found[2].case
    assert not any(recording.trial_stated for recording in found)


def test_the_request_is_recorded_with_its_settings_and_what_the_server_reports() -> None:
    recording = only(lines_unit([row([ASKED], {"role": "assistant", "content": "ok"})]), NAME)
    (call,) = model_calls(recording)
    assert call.fidelity is Fidelity.RECORDED
    assert call.settings == {"temperature": 0.2, "seed": 7}
    assert (call.response_id, call.fingerprint, call.finish_reason) == ("chatcmpl-1", "fp_1", "stop")
    assert call.usage == Usage(input=17_903, output=5, cache_read=17_817)
    assert recording.manifest.value("seeds.seed") == 7
    assert (recording.replayability, recording.outcome) == (Replayability.VIEW_ONLY, Outcome.UNKNOWN)
    assert recording.missing.startswith("harness: ")


def test_a_row_may_be_request_and_response_in_one() -> None:
    answer = completion({"role": "assistant", "content": "ok"})
    flat = {"messages": [ASKED], "model": "m", "seed": 7, "note": "mine", "response": answer}
    recording = only(lines_unit([flat]), NAME)
    (call,) = model_calls(recording)
    assert (call.text, call.settings, call.fidelity) == ("ok", {"seed": 7}, Fidelity.RECORDED)
    assert recording.facts["note"] == "mine"


def test_token_ids_and_log_probabilities_are_kept() -> None:
    message = {"role": "assistant", "content": "ok"}
    answer = completion(message, prompt_token_ids=[1, 2])
    tokens = [{"token": "ok", "logprob": -0.5, "top_logprobs": [{"token": "ok", "logprob": -0.5}]}]
    answer["choices"][0] |= {"token_ids": [3], "logprobs": {"content": tokens}}
    (call,) = model_calls(only(lines_unit([row([ASKED], None) | {"response": answer}]), NAME))
    assert (call.prompt_token_ids, call.token_ids, call.logprobs) == ((1, 2), (3,), (-0.5,))


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [('"a bare string"', "a bare string"), ('{"a":', None), ("[1]", [1]), ("", None), ('{"a": NaN}', None)],
)
def test_arguments_are_kept_as_emitted_whatever_they_are(arguments: str, parsed: Any) -> None:
    (call,) = model_calls(only(lines_unit([row([ASKED], calling(arguments))]), NAME))
    (request,) = call.tool_calls
    assert request.raw == arguments
    if "NaN" not in arguments:
        assert request.arguments == parsed


def test_a_call_that_no_later_request_answers_has_no_result() -> None:
    (tool,) = tool_calls(only(lines_unit([row([ASKED], calling("{}"))]), NAME))
    assert not tool.has_result


def test_a_repeated_request_after_an_error_is_its_retry() -> None:
    failed = row([ASKED], None, error={"message": "rate limited"}, status=429)
    recording = only(lines_unit([failed, row([ASKED], {"role": "assistant", "content": "ok"})]), NAME)
    first, second = model_calls(recording)
    assert (first.error, first.attempt, second.attempt) == ("rate limited", 0, 1)
    assert first.step == second.step == 0
    assert recording.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("status", "outcome"), [(503, Outcome.INFRA_ERROR), (400, Outcome.CRASH)])
def test_an_error_at_the_end_is_no_failure_of_the_case(status: int, outcome: Outcome) -> None:
    unit = lines_unit([row([ASKED], None, error={"message": "no"}, status=status)])
    assert only(unit, NAME).outcome is outcome


def test_a_refusal_at_the_end_is_the_outcome() -> None:
    unit = lines_unit([row([ASKED], {"role": "assistant", "content": None, "refusal": "I can't"})])
    assert only(unit, NAME).outcome is Outcome.REFUSED


def test_batch_requests_and_responses_are_paired_by_their_id() -> None:
    asked = {"custom_id": "case-1", "method": "POST", "url": "/v1", "body": {"model": "m", "messages": [ASKED]}}
    body = completion({"role": "assistant", "content": "ok"})
    told = {"id": "b", "custom_id": "case-1", "response": {"status_code": 200, "body": body}, "error": None}
    recording = only(lines_unit([asked, told]), NAME)
    assert (recording.case, model_calls(recording)[0].text) == ("case-1", "ok")
    assert model_calls(recording)[0].fidelity is Fidelity.RECORDED


def test_a_batch_response_alone_shows_no_request() -> None:
    body = completion({"role": "assistant", "content": "ok"})
    told = {"id": "b", "custom_id": "case-1", "response": {"status_code": 200, "body": body}, "error": None}
    recording = only(lines_unit([told]), NAME)
    assert model_calls(recording)[0].fidelity is Fidelity.REBUILT
    assert recording.missing.startswith("model: the requests are not in the log")


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "s1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def test_the_chunks_of_a_stream_are_joined() -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "bash", "arguments": '{"comm'}}
    rest = {"index": 0, "function": {"arguments": 'and": "ls"}'}}
    rows = [chunk({"role": "assistant", "content": "Let "}), chunk({"content": "me."}), chunk({"tool_calls": [piece]})]
    rows += [chunk({"tool_calls": [rest]}, "tool_calls", usage={"prompt_tokens": 3, "completion_tokens": 2})]
    (call,) = model_calls(only(lines_unit(rows), NAME))
    assert (call.text, call.finish_reason) == ("Let me.", "tool_calls")
    assert call.tool_calls[0].arguments == {"command": "ls"}
    assert call.usage == Usage(input=3, output=2)
    assert isinstance(call.raw_response, dict)
    assert len(call.raw_response["chunks"]) == 4


def test_a_stream_that_breaks_off_keeps_its_error() -> None:
    rows = [chunk({"content": "Let "}), {"error": {"message": "upstream closed"}}]
    (call,) = model_calls(only(lines_unit(rows), NAME))
    assert (call.text, call.error) == ("Let ", "upstream closed")


def test_a_document_of_messages_is_one_rollout() -> None:
    messages = [ASKED, calling('{"command": "ls"}'), answered("a.txt"), {"role": "assistant", "content": "One."}]
    recording = only(json_unit({"messages": messages, "id": "t1"}), NAME)
    assert [call.fidelity for call in model_calls(recording)] == [Fidelity.REBUILT] * 2
    assert tool_calls(recording)[0].result == "a.txt"
    assert recording.case == "t1"


@pytest.mark.parametrize("key", ["system_prompt", "system"])
def test_a_system_prompt_beside_the_messages_opens_every_input(key: str) -> None:
    said = {"role": "assistant", "content": "One."}
    recording = only(json_unit({"messages": [ASKED, said], key: "Be brief."}), NAME)
    prompt = {"role": "system", "content": "Be brief."}
    assert sent(recording, model_calls(recording)[0]) == [prompt, ASKED]
    recording = only(json_unit({"messages": [{"role": "system", "content": "x"}, ASKED, said], key: "Be brief."}), NAME)
    assert sent(recording, model_calls(recording)[0])[0]["content"] == "x"


def test_what_no_call_was_sent_is_kept_too() -> None:
    messages = [ASKED, {"role": "assistant", "content": "One."}, {"role": "system", "content": "stopped"}]
    recording = only(json_unit({"messages": messages}), NAME)
    assert [action.detail for action in actions(recording)] == [messages[-1]]


def test_a_list_of_messages_is_one_rollout() -> None:
    recording = only(json_unit([ASKED, {"role": "assistant", "content": "One."}], "chat.json"), NAME)
    assert recording.case == "chat"
    assert sent(recording, model_calls(recording)[0]) == [ASKED]


def test_lines_of_messages_are_rollouts_of_their_own() -> None:
    lines = [{"messages": [ASKED, {"role": "assistant", "content": text}]} for text in "ab"]
    found = recordings(lines_unit(lines, "sft.jsonl"), NAME)
    assert [recording.case for recording in found] == ["sft line 1", "sft line 2"]


def test_several_results_in_one_message_answer_each_its_call() -> None:
    uses = [{"type": "tool_use", "id": name, "name": "run", "input": {"n": name}} for name in ("a", "b")]
    results = [{"type": "tool_result", "tool_use_id": name, "content": f"result {name}"} for name in ("b", "a")]
    messages = [ASKED, {"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    found = tool_calls(only(json_unit({"messages": messages}), NAME))
    assert [(call.id, call.result) for call in found] == [("a", "result a"), ("b", "result b")]


def test_a_result_whose_call_is_not_in_the_transcript_is_kept() -> None:
    messages = [ASKED, {"role": "assistant", "content": "ok"}, answered("late", "zz")]
    (call,) = tool_calls(only(json_unit({"messages": messages}), NAME))
    assert (call.name, call.id, call.result) == ("unnamed", "zz", "late")


def test_a_labelled_history_has_an_agent_for_each_speaker() -> None:
    history = [
        {"role": "human", "content": "Question"},
        {"role": "Orchestrator (thought)", "content": "A plan"},
        {"role": "Orchestrator (-> WebSurfer)", "content": "Look it up"},
        {"role": "WebSurfer", "content": "Found"},
        {"role": "Computer_terminal", "content": "exitcode: 1 (execution failed)\n"},
    ]
    labels = {"mistake_agent": "WebSurfer", "mistake_step": "3", "mistake_reason": "wrong page"}
    recording = only(json_unit({"history": history, "question_ID": "q1", **labels}), NAME)
    calls = model_calls(recording)
    assert [call.agent for call in calls] == ["Orchestrator", "Orchestrator", "WebSurfer"]
    assert [call.extra.get("manner") for call in calls] == ["thought", "-> WebSurfer", None]
    assert tool_calls(recording)[0].exit_code == 1
    assert recording.outcome is Outcome.FAILED_VERIFICATION
    assert verifications(recording)[0].extra == labels
    assert recording.facts["mistake_agent"] == "WebSurfer"


def test_a_displayed_transcript_is_split_at_its_labels() -> None:
    shown = "user: Hi\nthere\nassistant: None\ntool: Error: not found\nassistant: Sorry"
    recording = only(lines_unit([{"messages_display": shown}]), NAME)
    assert user_turns(recording)[0].content == "Hi\nthere"
    assert [call.text for call in model_calls(recording)] == [None, "Sorry"]
    assert (tool_calls(recording)[0].name, tool_calls(recording)[0].result) == ("unnamed", "Error: not found")


def test_half_a_last_line_is_listed_and_the_rest_is_read() -> None:
    whole = json.dumps(row([ASKED], {"role": "assistant", "content": "ok"}))
    report = Report()
    assert len(recordings(file_unit(f"{whole}\n{whole[:50]}".encode(), "log.jsonl"), NAME, report)) == 1
    assert [(item.where, item.why) for item in report.skipped] == [
        ("line 2", "cut off: the file ends inside this line")
    ]


def test_nul_surrogates_literal_escapes_and_nan_are_kept() -> None:
    text = json.dumps(row([ASKED, calling("{}"), answered("@@")], {"role": "assistant", "content": "ok"}))
    data = text.replace("@@", r"\u0000 \\u0000 \udcb2 ok").replace("0.2", "NaN").encode()
    recording = only(file_unit(data, "log.jsonl"), NAME)
    assert sent(recording, model_calls(recording)[0])[2]["content"] == "\x00 \\u0000 \udcb2 ok"


@pytest.mark.parametrize("data", [b"", b" \n ", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(data: bytes) -> None:
    with pytest.raises(FormatRefused, match="the file is empty"):
        registry.recognise(file_unit(data))
