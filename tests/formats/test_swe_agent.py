from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.events import Fidelity, RolloutEnded
from harnesslab.formats.reading.inputs import Report
from tests.formats.building import actions, json_unit, model_calls, only, sent, tool_calls, user_turns

NAME = "swe-agent"
CONFIG = {
    "env": {"deployment": {"image": "image:1"}},
    "agent": {
        "model": {"name": "gpt-4o", "temperature": 0.0, "per_instance_cost_limit": 3.0},
        "history_processor": {"type": "last_n_observations"},
    },
    "problem_statement": {"id": "x__x-1"},
}


def step(action: str, observation: str, **more: Any) -> dict[str, Any]:
    said = f"I will do it.\n```\n{action}\n```"
    state = {"working_dir": "/x"}
    return {"action": action, "observation": observation, "response": said, "state": state, "thought": "do", **more}


def history(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a programmer", "agent": "primary"},
        {"role": "user", "content": "A demonstration", "agent": "primary", "is_demo": True},
        {"role": "user", "content": "The issue", "agent": "primary"},
    ]
    for item in steps:
        reply = {"role": "assistant", "content": item["response"], "action": item["action"], "agent": "primary"}
        messages += [reply, {"role": "user", "content": item["observation"] + "\nbash-$", "agent": "primary"}]
    return messages


def run(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    info = {"exit_status": "submitted", "submission": "\ndiff --git a/x b/x\n", "model_stats": {"api_calls": 2}}
    return {"environment": "swe_main", "trajectory": list(steps), "history": history(*steps), "info": info, **more}


def test_a_step_is_a_model_call_and_its_action() -> None:
    recording = only(json_unit(run(step("ls", "a.txt"), step("pwd", "/x"))), NAME)
    first, second = tool_calls(recording)
    assert first.arguments == {"command": "ls"}
    assert (first.result, first.seen) == ("a.txt", "a.txt\nbash-$")
    assert [call.step for call in (first, second)] == [0, 1]
    assert [turn.content for turn in user_turns(recording)] == ["The issue"]


def test_requests_are_rebuilt_from_the_history_with_its_demonstration() -> None:
    recording = only(json_unit(run(step("ls", "a.txt"), step("pwd", "/x"))), NAME)
    first, second = model_calls(recording)
    assert [len(sent(recording, call)) for call in (first, second)] == [3, 5]
    assert first.fidelity is Fidelity.REBUILT


def test_a_query_is_a_record_of_the_request() -> None:
    query = [{"role": "user", "content": "as it was sent"}]
    recording = only(json_unit(run(step("ls", "a.txt", query=query))), NAME)
    (call,) = model_calls(recording)
    assert call.fidelity is Fidelity.RECORDED
    assert sent(recording, call) == query


def test_the_copy_of_the_history_of_a_step_ends_before_its_completion() -> None:
    first = step("ls", "a.txt")
    recording = only(json_unit(run(first | {"messages": history(first)})), NAME)
    (call,) = model_calls(recording)
    assert [message["role"] for message in sent(recording, call)] == ["system", "user", "user"]
    assert call.fidelity is Fidelity.REBUILT


@pytest.mark.parametrize("form", [CONFIG, json.dumps(CONFIG)])
def test_the_configuration_may_be_text(form: Any) -> None:
    info = {"exit_status": "submitted", "swe_agent_hash": "abc", "submission": ""}
    recording = only(json_unit(run(step("ls", ""), replay_config=form, info=info)), NAME)
    assert (recording.case, recording.model, recording.revision) == ("x__x-1", "gpt-4o", "abc")
    assert recording.replayability is Replayability.LIVE
    assert recording.manifest.value("environment.image") == "image:1"
    assert recording.manifest.value("budgets.cost") == 3.0


def test_a_broken_configuration_is_listed_and_the_steps_are_read() -> None:
    report = Report()
    recording = only(json_unit(run(step("ls", ""), replay_config="{broken")), NAME, report)
    assert len(model_calls(recording)) == 1
    assert [(item.where, item.why) for item in report.skipped] == [("replay_config", "text that is not JSON")]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("submitted", Outcome.UNKNOWN),
        ("submitted (exit_cost)", Outcome.UNKNOWN),
        ("exit_cost", Outcome.STEP_CAP),
        ("exit_format", Outcome.NO_VALID_ACTION),
        ("exit_api", Outcome.INFRA_ERROR),
        (None, Outcome.INTERRUPTED),
    ],
)
def test_the_exit_status_is_the_outcome(status: str | None, outcome: Outcome) -> None:
    recording = only(json_unit(run(step("ls", ""), info={"exit_status": status})), NAME)
    ended = recording.trace.events[-1]
    assert recording.outcome is outcome
    assert isinstance(ended, RolloutEnded)
    assert ended.error != "submitted"


def test_the_state_may_be_text() -> None:
    recording = only(json_unit(run(step("ls", "", state='{"open_file": "n/a"}\n', execution_time=0.5))), NAME)
    (call,) = tool_calls(recording)
    assert call.extra["state"] == {"open_file": "n/a"}
    assert call.latency == 0.5


@pytest.mark.parametrize("arguments", ['"a bare string"', '{"a":', "[1]", ""])
def test_arguments_are_kept_whatever_they_are(arguments: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    document = run(step("ls", "a"))
    document["history"][3]["tool_calls"] = [call]
    (tool,) = tool_calls(only(json_unit(document), NAME))
    assert tool.raw == arguments
    assert tool.extra["action"] == "ls"


def test_a_step_without_an_action_is_the_harness_s_reply() -> None:
    recording = only(json_unit(run(step("", "Your output was not formatted correctly"))), NAME)
    assert actions(recording)[0].detail == "Your output was not formatted correctly"
    assert not tool_calls(recording)


def test_a_demonstration_may_hold_only_a_history() -> None:
    recording = only(json_unit({"history": history(step("ls", "a.txt"), step("pwd", "/x"))}, "demo.traj"), NAME)
    assert [call.result for call in tool_calls(recording)] == ["a.txt\nbash-$", "/x\nbash-$"]
    assert (recording.case, recording.outcome) == ("demo", Outcome.UNKNOWN)


def test_a_submission_that_is_no_diff_is_a_fact() -> None:
    recording = only(json_unit(run(step("submit", ""), info={"exit_status": "submitted", "submission": "FLAG"})), NAME)
    ended = recording.trace.events[-1]
    assert isinstance(ended, RolloutEnded)
    assert ended.diff is None
    assert recording.facts["submission"] == "FLAG"


def test_model_statistics_are_facts_since_no_call_states_its_usage() -> None:
    recording = only(json_unit(run(step("ls", ""))), NAME)
    assert recording.facts["model_stats"] == {"api_calls": 2}
    assert model_calls(recording)[0].usage is None
