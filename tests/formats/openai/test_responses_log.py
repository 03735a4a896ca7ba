from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.events import Fidelity, RolloutEnded, Usage
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.sniff import shape_of
from harnesslab.formats.registry import IMPORTERS
from tests.formats.building import (
    lines_unit,
    model_calls,
    only,
    recordings,
    sent,
    tool_calls,
    user_turns,
    verifications,
)

NAME = "openai-responses"


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def call(name: str = "c1", arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "bash", "arguments": arguments}


def output(name: str = "c1", text: str = "a.txt") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": text}


def episode(*items: Any, **more: Any) -> dict[str, Any]:
    create = {"input": [{"role": "user", "content": "Fix it"}], "temperature": 0.6, "model": None, "tools": []}
    zeros = {"input_tokens": 0, "output_tokens": 0}
    response = {"id": "resp", "model": "m", "output": list(items), "usage": zeros, "created_at": 1_700_000_000.0}
    return {"responses_create_params": create, "response": response, "reward": 1.0, **more}


def test_a_row_is_a_rollout_whose_calls_end_at_the_tools_outputs() -> None:
    items = [thought("look"), call("c1"), call("c2"), output("c2", "b"), output("c1", "a"), message("done")]
    recording = only(lines_unit([episode(*items)]), NAME)
    first, second = model_calls(recording)
    assert (first.reasoning, len(first.tool_calls), second.text) == ("look", 2, "done")
    assert [(tool.id, tool.result, tool.emitted, tool.completed) for tool in tool_calls(recording)] == [
        ("c2", "b", 1, 0),
        ("c1", "a", 0, 1),
    ]
    assert len(sent(recording, second)) == 6
    assert first.fidelity is Fidelity.REBUILT
    assert user_turns(recording)[0].content == "Fix it"


def test_rollouts_come_in_the_order_of_their_own_numbers() -> None:
    rows = [
        episode(message(str(n)), instance_id="x-1", _ng_task_index=0, _ng_rollout_index=n, reward=float(n == 2))
        for n in (2, 0, 1)
    ]
    found = recordings(lines_unit(rows), NAME)
    assert [recording.trial for recording in found] == [0, 1, 2]
    assert all(recording.trial_stated and recording.case == "x-1" for recording in found)
    assert [recording.outcome for recording in found][2] is Outcome.SOLVED


@pytest.mark.parametrize(
    ("more", "outcome", "reward"),
    [
        ({"reward": 1.0}, Outcome.SOLVED, 1.0),
        ({"reward": 0.9999999999999998}, Outcome.SOLVED, 0.9999999999999998),
        ({"reward": 0.0}, Outcome.FAILED_VERIFICATION, 0.0),
        ({"reward": -0.49}, Outcome.FAILED_VERIFICATION, -0.49),
        ({"reward": None}, Outcome.UNKNOWN, None),
        ({"reward": 0.0, "agent_timed_out": True}, Outcome.TIMEOUT, 0.0),
        ({"reward": 1.0, "agent_timed_out": True}, Outcome.SOLVED, 1.0),
        ({"reward": 0.0, "eval_timed_out": True}, Outcome.VERIFY_TIMEOUT, None),
        ({"reward": 0.0, "mask_sample": True}, Outcome.INFRA_ERROR, None),
        ({"reward": 0.0, "evaluation_completed": False}, Outcome.UNKNOWN, None),
    ],
)
def test_a_reward_counts_unless_the_row_says_that_it_does_not(
    more: dict[str, Any], outcome: Outcome, reward: float | None
) -> None:
    recording = only(lines_unit([episode(message("done"), **more)]), NAME)
    assert (recording.outcome, recording.reward) == (outcome, reward)


def test_a_reward_that_does_not_count_is_still_shown_with_the_reason() -> None:
    (verdict,) = verifications(only(lines_unit([episode(reward=0.0, evaluation_completed=False)]), NAME))
    assert (verdict.passed, verdict.reward) == (None, 0.0)
    assert verdict.error == "the evaluation was not completed, so its reward is no verdict"


def test_the_row_names_harness_case_image_and_patch() -> None:
    row = episode(message("done"), agent_ref={"name": "a_harness"}, model_patch="diff --git a/x b/x\n")
    row["instance_config"] = {"problem_info": {"instance_id": "x-1", "dataset_name": "bench"}, "container": "image:1"}
    recording = only(lines_unit([row]), NAME)
    ended = recording.trace.events[-1]
    assert (recording.harness, recording.case, recording.panel) == ("a_harness", "x-1", "bench")
    assert recording.manifest.value("environment.image") == "image:1"
    assert isinstance(ended, RolloutEnded)
    assert ended.diff == "diff --git a/x b/x\n"
    assert recording.replayability is Replayability.VIEW_ONLY


def test_the_tests_of_a_report_are_listed() -> None:
    status = {"FAIL_TO_PASS": {"success": ["t1"], "failure": ["t2"]}}
    row = episode(message("done"), metadata={"eval_report": {"x-1": {"tests_status": status}}})
    (verdict,) = verifications(only(lines_unit([row]), NAME))
    assert [(test.name, test.passed) for test in verdict.tests] == [("t1", True), ("t2", False)]


def test_rows_without_any_id_are_cases_of_their_own() -> None:
    found = recordings(lines_unit([episode(message("a")), episode(message("b"))]), NAME)
    assert [recording.case.split(" (")[0] for recording in found] == ["line 1", "line 2"]
    assert found[0].manifest.value("panel.case") is None


def test_usage_of_a_whole_episode_is_given_to_no_single_call() -> None:
    row = episode(call(), output(), message("done"))
    row["response"]["usage"] = {"input_tokens": 900, "output_tokens": 10}
    recording = only(lines_unit([row]), NAME)
    assert [item.usage for item in model_calls(recording)] == [None, None]
    assert recording.facts["response"]["usage"]["input_tokens"] == 900  # type: ignore[call-overload,index]


def test_usage_of_zero_is_a_placeholder() -> None:
    assert model_calls(only(lines_unit([episode(message("done"))]), NAME))[0].usage is None


@pytest.mark.parametrize("arguments", ['"a bare string"', '{"a":', "[1]", ""])
def test_arguments_are_kept_as_emitted_whatever_they_are(arguments: str) -> None:
    (tool,) = tool_calls(only(lines_unit([episode(call(arguments=arguments), output())]), NAME))
    assert tool.raw == arguments


def test_a_call_without_output_has_no_result() -> None:
    (tool,) = tool_calls(only(lines_unit([episode(call())]), NAME))
    assert not tool.has_result


def test_rows_around_a_harbor_trial_belong_to_another_format() -> None:
    row = episode(message("done"), metadata={"trial_name": "t", "task_name": "x"})
    importer = next(item for item in IMPORTERS if item.NAME == NAME)
    assert not importer.recognises(shape_of(lines_unit([row])))


def exchange(asked: list[Any], *items: Any, **request: Any) -> dict[str, Any]:
    usage = {"input_tokens": 17_903, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 17_817}}
    body = {"id": f"resp_{len(asked)}", "object": "response", "output": list(items), "usage": usage}
    return {"request": {"model": "m", "input": asked, "seed": 7, **request}, "response": body | {"status": "completed"}}


def test_a_plain_log_of_responses_has_one_call_for_each_row() -> None:
    asked = {"role": "user", "content": "List"}
    rows = [exchange([asked], call()), exchange([asked, call(), output()], message("One."))]
    recording = only(lines_unit(rows), NAME)
    first, second = model_calls(recording)
    assert first.fidelity is Fidelity.RECORDED
    assert first.usage == Usage(input=17_903, output=5, cache_read=17_817)
    assert (second.text, second.response_id) == ("One.", "resp_3")
    assert tool_calls(recording)[0].result == "a.txt"
    assert recording.manifest.value("seeds.seed") == 7


def test_a_request_that_names_the_response_before_it_goes_on_from_it() -> None:
    rows = [
        exchange([{"role": "user", "content": "List"}], call()),
        exchange([output()], message("One."), previous_response_id="resp_1"),
    ]
    recording = only(lines_unit(rows), NAME)
    assert len(model_calls(recording)) == 2
    assert tool_calls(recording)[0].result == "a.txt"


def test_bad_lines_are_listed_and_the_rest_is_read() -> None:
    report = Report()
    rows = [episode(message("a")), {"response": {}}, "text"]
    assert len(recordings(lines_unit(rows), NAME, report)) == 1
    assert [item.where for item in report.skipped] == ["line 2", "line 3"]


def test_the_same_line_of_two_files_is_the_same_case_only_for_the_same_input() -> None:
    one, two = (
        recordings(lines_unit([episode(message("a"), responses_create_params={"input": said})]), NAME)[0].case
        for said in ("x", "y")
    )
    assert one != two


def test_the_usage_of_an_episode_of_several_calls_is_the_rollouts() -> None:
    output = [
        {"type": "function_call", "name": "run", "arguments": "{}", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "ok"},
        {"type": "message", "role": "assistant", "content": "done"},
    ]
    counted = {"input_tokens": 900, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 400}}
    episode = {
        "responses_create_params": {"input": "go"},
        "response": {"object": "response", "model": "m", "output": output, "usage": counted},
        "reward": 1.0,
    }
    report = Report()
    recording = only(lines_unit([episode]), "openai-responses", report)
    assert [call.usage for call in model_calls(recording)] == [None, None]
    statistics = trace_statistics(recording.trace, recording.outcome)
    assert (statistics.input, statistics.cached, statistics.output) == (900, 400, 30)
    assert not report.shortfalls
