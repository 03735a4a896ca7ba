"""ATIF trajectories: every step is kept, sub-agents have a path, and copied context counts no tokens twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.events import Fidelity, HarnessAction, ModelCall, SubagentCall, ToolCall, Usage, UserTurn
from harnesslab.core.trace.stated import lines_of
from harnesslab.core.trace.trace import messages_at
from harnesslab.formats.atif import trajectory as atif
from tests.formats.making import events_of, facts_of, file_unit, read, sent


def step(number: int, source: str, message: Any, **more: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message, **more}


def asks(name: str, call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def observed(*results: dict[str, Any]) -> dict[str, Any]:
    return {"results": list(results)}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": "gpt-x", "extra": {"temperature": 0.7}}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": list(steps), **more}


def imported(*steps: dict[str, Any], **more: Any) -> Any:
    (rollout,), _ = read(file_unit("trajectory.json", trajectory(*steps, **more)), atif)
    return rollout


USER = step(1, "user", "Make a folder")


def test_each_agent_step_is_a_model_call_with_the_conversation_before_it() -> None:
    result = observed({"source_call_id": "c1", "content": "ok"})
    rollout = imported(
        step(1, "system", "You are helpful"),
        step(2, "user", "Make a folder"),
        step(
            3, "agent", "Will do", reasoning_content="hm", tool_calls=[asks("run", cmd="mkdir a")], observation=result
        ),
        step(4, "agent", "Done"),
    )
    first, second = events_of(rollout, ModelCall)
    assert (first.text, first.reasoning, first.fidelity) == ("Will do", "hm", Fidelity.REBUILT)
    roles = [message["role"] for message in sent(rollout, rollout.trace.events.index(second))]
    assert roles == ["system", "user", "assistant", "tool"]
    (made,) = events_of(rollout, ToolCall)
    assert (made.name, made.arguments, made.result, made.step) == ("run", {"cmd": "mkdir a"}, "ok", 0)


@pytest.mark.parametrize("version", [f"ATIF-v1.{minor}" for minor in range(9)])
def test_every_version_is_read(version: str) -> None:
    document = {**trajectory(USER, step(2, "agent", "hi")), "schema_version": version}
    (rollout,), _ = read(file_unit("t.json", document), atif)
    assert facts_of(rollout)["trajectory"]["schema_version"] == version


def test_prompt_tokens_include_cached_ones() -> None:
    metrics = {"prompt_tokens": 17_903, "completion_tokens": 412, "cached_tokens": 17_817, "cost_usd": 0.5}
    (call,) = events_of(imported(USER, step(2, "agent", "hi", metrics=metrics)), ModelCall)
    assert call.usage == Usage(input=17_903, output=412, cache_read=17_817)
    assert call.extra["cost_usd"] == 0.5


def test_copied_context_is_kept_and_marked_and_its_tokens_are_not_counted() -> None:
    metrics = {"prompt_tokens": 10, "completion_tokens": 2}
    rollout = imported(USER, step(2, "agent", "hi", metrics=metrics, is_copied_context=True))
    (call,) = events_of(rollout, ModelCall)
    assert call.usage is None
    assert call.extra["is_copied_context"] is True
    assert call.extra["copied_metrics"] == metrics


def test_token_ids_and_logprobs_are_kept() -> None:
    metrics = {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}
    (call,) = events_of(imported(USER, step(2, "agent", "hi", metrics=metrics)), ModelCall)
    assert (call.prompt_token_ids, call.token_ids, call.logprobs) == ((1, 2), (3,), (-0.5,))


def test_parallel_calls_keep_their_own_results_and_one_without_has_none() -> None:
    calls = [asks("a", "c1"), asks("b", "c2")]
    result = observed({"source_call_id": "c2", "content": "two"})
    first, second = events_of(imported(USER, step(2, "agent", "", tool_calls=calls, observation=result)), ToolCall)
    assert (first.has_result, second.result, second.emitted) == (False, "two", 1)


def test_one_result_without_an_id_answers_the_only_call() -> None:
    calls = [asks("run")]
    rollout = imported(USER, step(2, "agent", "", tool_calls=calls, observation=observed({"content": "$ "})))
    assert events_of(rollout, ToolCall)[0].result == "$ "


def test_an_observation_without_calls_is_an_observation_and_part_of_the_next_input() -> None:
    rollout = imported(
        USER, step(2, "agent", "echo hi", observation=observed({"content": "hi"})), step(3, "agent", "done")
    )
    assert [(made.name, made.detail) for made in events_of(rollout, HarnessAction)] == [("observation", "hi")]
    last = len(rollout.trace.events) - 2
    assert messages_at(rollout.trace, last)[-1] == {"role": "user", "content": "hi"}


def test_a_step_without_a_model_call_is_not_one() -> None:
    rollout = imported(USER, step(2, "agent", "", llm_call_count=0, tool_calls=[asks("delegate")]))
    assert events_of(rollout, ModelCall) == []
    assert [made.name for made in events_of(rollout, ToolCall)] == ["delegate"]


def test_an_embedded_sub_agent_has_its_own_path() -> None:
    child = {
        "trajectory_id": "child",
        "agent": {"name": "researcher", "version": "1", "model_name": "small"},
        "steps": [step(1, "user", "look"), step(2, "agent", "found")],
    }
    result = observed(
        {"source_call_id": "c1", "content": "sent", "subagent_trajectory_ref": [{"trajectory_id": "child"}]}
    )
    rollout = imported(
        USER,
        step(2, "agent", "", tool_calls=[asks("delegate", topic="x")], observation=result),
        step(3, "agent", "ok"),
        subagent_trajectories=[child],
    )
    (handed,) = events_of(rollout, SubagentCall)
    assert (handed.name, handed.child, handed.input) == ("researcher", "researcher", {"topic": "x"})
    assert [(call.agent, call.step, call.model) for call in events_of(rollout, ModelCall)] == [
        ("", 0, "gpt-x"),
        ("researcher", 1, "small"),
        ("", 2, "gpt-x"),
    ]
    assert rollout.model == "gpt-x"


def test_a_sub_agent_in_another_file_is_named_and_noted() -> None:
    ref = {"trajectory_path": "trajectory.summary.json", "session_id": "s2"}
    compacted = step(3, "system", "summarised", observation=observed({"subagent_trajectory_ref": [ref]}))
    document = trajectory(USER, step(2, "agent", "hi"), compacted, continued_trajectory_ref="trajectory.cont-1.json")
    (rollout,), report = read(file_unit("trajectory.json", document), atif)
    (handed,) = events_of(rollout, SubagentCall)
    assert (handed.name, handed.child, handed.error) == ("trajectory.summary", "", "its trajectory is not in the file")
    assert report.skipped[0].where == "trajectory.summary.json"
    facts: Any = facts_of(rollout)["trajectory"]
    assert facts["continued_trajectory_ref"] == "trajectory.cont-1.json"


def test_a_sub_agent_that_refers_to_itself_ends() -> None:
    result = observed({"content": "x", "subagent_trajectory_ref": [{"trajectory_id": "loop"}]})
    child: dict[str, Any] = {"trajectory_id": "loop", "agent": {"name": "a"}, "steps": []}
    child["steps"] = [step(1, "agent", "again", observation=result)]
    inner = child
    for _ in range(30):
        inner = {**child, "subagent_trajectories": [inner]}
    rollout = imported(USER, step(2, "agent", "", observation=result), subagent_trajectories=[inner])
    assert len(events_of(rollout, SubagentCall)) < 20


def test_pictures_stay_parts() -> None:
    parts = [{"type": "text", "text": "What?"}, {"type": "image", "source": {"path": "a.png"}}]
    rollout = imported(step(1, "user", parts), step(2, "agent", "A cat"))
    assert events_of(rollout, UserTurn)[0].content == parts


def test_no_verdict_is_unknown_and_repeats_are_grouped_by_instruction() -> None:
    one, two = imported(USER, step(2, "agent", "a")), imported(USER, step(2, "agent", "b"))
    assert (one.outcome, one.reward, one.replayability) == (Outcome.UNKNOWN, None, Replayability.VIEW_ONLY)
    assert one.case == two.case
    assert one.manifest.value("sampling.temperature") == 0.7
    assert one.missing.startswith("model: ")


def test_times_count_from_the_first_step() -> None:
    rollout = imported(
        {**USER, "timestamp": "2026-01-01T00:00:00Z"}, step(2, "agent", "a", timestamp="2026-01-01T00:00:02.500Z")
    )
    assert events_of(rollout, ModelCall)[0].at == 2.5


def test_numeric_times_are_read() -> None:
    steps = [step(1, "user", "go", timestamp=1782900000), step(2, "agent", "a", timestamp=1782900004500)]
    rollout = imported(*steps)
    assert rollout.started_at == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert events_of(rollout, ModelCall)[0].at == 4.5


def test_final_metrics_are_balanced_against_the_steps() -> None:
    steps = [USER, step(2, "agent", "a", metrics={"prompt_tokens": 40, "cost_usd": 0.5})]
    final = {"total_prompt_tokens": 100, "total_completion_tokens": 9, "total_cost_usd": 0.5, "total_steps": 4}
    (rollout,), report = read(file_unit("t.json", trajectory(*steps, final_metrics=final)), atif)
    assert [item.why for item in report.shortfalls] == [
        "steps: the source states 4, 2 stored",
        "input tokens: the source states 100, 40 stored",
        "output tokens: the source states 9, none is stored",
    ]
    assert [line.what for line in lines_of(rollout.trace.events[-1].extra)] == [
        "steps", "input tokens", "output tokens", "cost"
    ]  # fmt: skip


def test_totals_that_no_step_states_are_the_trajectorys() -> None:
    steps = [USER, step(2, "agent", "a")]
    final = {"total_prompt_tokens": 100, "total_completion_tokens": 9, "total_cached_tokens": 30}
    (rollout,), report = read(file_unit("t.json", trajectory(*steps, final_metrics=final)), atif)
    counted = trace_statistics(rollout.trace, rollout.outcome)
    assert (counted.input, counted.output, counted.cached) == (100, 9, 30)
    assert not report.shortfalls
