from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.events import RolloutEnded, Usage
from harnesslab.formats import registry
from harnesslab.formats.reading.inputs import Report
from tests.formats.building import actions, file_unit, json_unit, model_calls, only, sent, tool_calls, user_turns

NAME = "mini-swe-agent"


def response(text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "gen-1",
        "created": 1_700_000_010,
        "system_fingerprint": "fp",
        "choices": [{"finish_reason": "stop", "message": {"content": text, "reasoning": "first, look"}}],
        "usage": {
            "prompt_tokens": 17_903,
            "completion_tokens": 40,
            "prompt_tokens_details": {"cached_tokens": 17_817},
        },
        **more,
    }


def said(command: str, **extra: Any) -> dict[str, Any]:
    text = f"THOUGHT: go on\n\n```bash\n{command}\n```"
    return {"role": "assistant", "content": text, "extra": {"response": response(text), **extra}}


def seen(output: str, code: int = 0) -> dict[str, Any]:
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"}


def run(*messages: dict[str, Any], **info: Any) -> dict[str, Any]:
    config = {
        "agent": {"step_limit": 250, "cost_limit": 3.0, "action_observation_template": "<returncode>"},
        "model": {"model_name": "a/model", "model_kwargs": {"temperature": 0.0, "seed": 7}},
        "environment": {"image": "image:1", "cwd": "/testbed"},
    }
    stated = {
        "mini_version": "1.15.0",
        "exit_status": "Submitted",
        "submission": "diff --git a/x b/x\n",
        "config": config,
    }
    first = [{"role": "system", "content": "You are a helper"}, {"role": "user", "content": "Fix it"}]
    return {
        "info": {**stated, **info},
        "messages": [*first, *messages],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "x__x-1",
    }


def test_a_command_and_its_observation_make_one_tool_call() -> None:
    recording = only(json_unit(run(said("ls"), seen("a.txt", 2))), NAME)
    (call,) = tool_calls(recording)
    assert (call.name, call.arguments, call.exit_code) == ("bash", {"command": "ls"}, 2)
    assert "a.txt" in str(call.result)
    assert user_turns(recording)[0].content == "Fix it"


def test_the_response_gives_usage_identity_and_reasoning() -> None:
    (call,) = model_calls(only(json_unit(run(said("ls"), seen(""))), NAME))
    assert call.usage == Usage(input=17_903, output=40, cache_read=17_817)
    assert (call.response_id, call.fingerprint, call.finish_reason) == ("gen-1", "fp", "stop")
    assert call.reasoning == "first, look"
    assert call.settings == {"temperature": 0.0, "seed": 7}


def test_a_submission_is_no_verdict() -> None:
    recording = only(json_unit(run(said("ls"), seen(""))), NAME)
    ended = recording.trace.events[-1]
    assert recording.outcome is Outcome.UNKNOWN
    assert recording.reward is None
    assert isinstance(ended, RolloutEnded)
    assert ended.diff == "diff --git a/x b/x\n"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("LimitsExceeded", Outcome.STEP_CAP),
        ("RateLimitError", Outcome.INFRA_ERROR),
        ("ZeroDivisionError", Outcome.CRASH),
        (None, Outcome.INTERRUPTED),
        ("", Outcome.INTERRUPTED),
    ],
)
def test_the_exit_status_is_the_outcome(status: str | None, outcome: Outcome) -> None:
    assert only(json_unit(run(said("ls"), exit_status=status)), NAME).outcome is outcome


def test_a_reply_without_exactly_one_command_is_rejected() -> None:
    talk = {"role": "assistant", "content": "I am done."}
    recording = only(
        json_unit(run(talk, {"role": "user", "content": "EXACTLY ONE action"}, said("ls"), seen(""))), NAME
    )
    first, second = model_calls(recording)
    assert first.rejected == "0 commands where the harness wants one"
    assert second.rejected is None
    assert actions(recording)[0].detail == "EXACTLY ONE action"


def test_the_answer_of_a_rejected_step_is_kept_beside_the_harness_reply() -> None:
    rejected = {
        "role": "user",
        "content": "EXACTLY ONE action",
        "extra": {"interrupt_type": "FormatError", "n_actions": 0, "model_response": "I am done."},
    }
    recording = only(json_unit(run(rejected, said("ls"), seen(""))), NAME)
    first, second = model_calls(recording)
    assert (first.text, first.rejected, first.step) == ("I am done.", "EXACTLY ONE action", 0)
    assert (second.rejected, second.step) == (None, 1)
    assert [message["content"] for message in sent(recording, second)][2:] == ["EXACTLY ONE action"]


def test_a_rejected_step_whose_answer_the_file_lacks_says_so() -> None:
    rejected = {"role": "user", "content": "no call", "extra": {"interrupt_type": "FormatError"}}
    recording = only(json_unit(run(rejected, said("ls"), seen(""))), NAME)
    assert model_calls(recording)[0].extra["answer"] == "not kept by the source"


def test_calls_and_cost_are_balanced() -> None:
    report = Report()
    stated = {"api_calls": 3, "instance_cost": 0.5}
    only(json_unit(run(said("ls", cost=0.2), seen(""), model_stats=stated)), NAME, report)
    assert [item.why for item in report.shortfalls] == [
        "model calls: the source states 3, 1 stored",
        "cost: the source states 0.5, 0.2 stored",
    ]


def test_later_versions_state_the_raw_output_beside_what_the_model_saw() -> None:
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call], "extra": {"actions": [], "timestamp": 100.0}}
    answer: dict[str, Any] = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "<returncode>0",
        "extra": {"timestamp": 101.5},
    }
    answer["extra"] |= {"raw_output": "a" * 10, "returncode": 0, "exception_info": ""}
    end = {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}}
    document = run(asked, answer, end) | {"trajectory_format": "mini-swe-agent-1.1"}
    recording = only(json_unit(document), NAME)
    (tool,) = tool_calls(recording)
    assert (tool.result, tool.seen, tool.exit_code, tool.at) == ("a" * 10, "<returncode>0", 0, 1.5)
    assert actions(recording)[-1].name == "exit"


def test_a_response_kept_as_its_printed_form_stays_that_text() -> None:
    message = said("ls") | {"extra": {"response": "ModelResponse(id='x')"}}
    assert model_calls(only(json_unit(run(message)), NAME))[0].raw_response == "ModelResponse(id='x')"


def test_a_command_without_an_observation_has_no_result() -> None:
    (call,) = tool_calls(only(json_unit(run(said("ls"))), NAME))
    assert not call.has_result


def test_each_call_has_sent_the_conversation_before_it() -> None:
    recording = only(json_unit(run(said("ls"), seen("a"), said("pwd"), seen("b"))), NAME)
    first, second = model_calls(recording)
    assert [len(sent(recording, call)) for call in (first, second)] == [2, 4]


def test_a_bare_list_of_messages_is_view_only_and_named_by_its_file() -> None:
    messages = run(said("ls"), seen("a"))["messages"]
    recording = only(json_unit(messages, "local.traj.json"), NAME)
    assert (recording.case, recording.replayability, recording.outcome) == (
        "local",
        Replayability.VIEW_ONLY,
        Outcome.UNKNOWN,
    )
    assert recording.manifest.value("panel.case") is None


def test_older_files_have_no_format_name() -> None:
    document = run(said("ls"), seen("a"))
    del document["trajectory_format"]
    assert only(json_unit(document), NAME).case == "x__x-1"


def test_known_case_harness_model_and_image_can_be_run_again_live() -> None:
    recording = only(json_unit(run(said("ls"), seen("a"))), NAME)
    assert recording.replayability is Replayability.LIVE
    assert recording.missing.startswith("model: ")
    assert recording.manifest.value("seeds.seed") == 7
    assert recording.budgets == {"steps": 250}


def test_nul_surrogates_and_literal_escapes_are_kept() -> None:
    data = json.dumps(run(said("ls"), seen("@@"))).replace("@@", r"\u0000 \\u0000 \udcb2").encode()
    (call,) = tool_calls(only(file_unit(data), NAME))
    assert "\x00 \\u0000 \udcb2" in str(call.result)


def test_nan_in_the_statistics_is_no_fault() -> None:
    unit = json_unit(run(said("ls"), model_stats={"instance_cost": float("nan"), "x": float("-inf")}))
    assert registry.recognise(unit).importer.NAME == NAME
    assert only(unit, NAME).facts["model_stats"]
