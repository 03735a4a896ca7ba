"""τ²-bench: reward, seed and end are the simulation's own, and what the simulated user does is the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import RolloutEnded, Usage
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.values import mapping
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

NAME = "tau2-bench"
CASES = Path(__file__).parents[3] / "shared" / "cases"


def said(role: str, content: str | None, used: tuple[int, int] | None = None, **more: Any) -> dict[str, Any]:
    counted = {"prompt_tokens": used[0], "completion_tokens": used[1]} if used else None
    return {"role": role, "content": content, "usage": counted, "cost": 0.25, **more}


def asking(who: str, name: str, call_id: str) -> list[dict[str, Any]]:
    return [{"id": call_id, "name": name, "arguments": {"on": True}, "requestor": who}]


def answer(who: str, content: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {"id": call_id, "role": "tool", "content": content, "requestor": who, "error": False, **more}


TALK = [
    said("assistant", "Hi! How can I help?"),
    said("user", "No data.", (400, 20)),
    said("assistant", "Switch it off.", (1000, 30)),
    said("user", None, (450, 15), tool_calls=asking("user", "toggle", "x1")),
    answer("user", "off", "x1"),
    said("user", "It is off.", (480, 10)),
    said("assistant", None, (1200, 25), tool_calls=asking("assistant", "refuel", "x1")),
    answer("assistant", "2 GB", "x1", error=True),
    said("assistant", "Done.", (1300, 20)),
]


def simulation(reward: float | None = 1.0, end: str = "user_stop", **more: Any) -> dict[str, Any]:
    return {
        "id": "s",
        "task_id": "t1",
        "trial": 2,
        "seed": 626729,
        "start_time": "2026-07-01T10:00:00",
        "end_time": "2026-07-01T10:01:00",
        "termination_reason": end,
        "agent_cost": 0.75,
        "reward_info": None if reward is None else {"reward": reward, "reward_breakdown": {"DB": reward}},
        "messages": TALK,
        **more,
    }


def test_the_users_calls_are_the_users_and_in_no_input_of_the_agent() -> None:
    recording = only(json_unit(simulation()), NAME)
    mine, theirs = tool_calls(recording)[1], tool_calls(recording)[0]
    assert (theirs.name, theirs.agent, theirs.result, theirs.extra["requestor"]) == ("toggle", "user", "off", "user")
    assert (mine.name, mine.agent, mine.result, mine.error) == ("refuel", "", "2 GB", "2 GB")
    told = [message.get("content") for message in sent(recording, model_calls(recording)[-1])]
    assert told == ["Hi! How can I help?", "No data.", "Switch it off.", "It is off.", None, "2 GB"]
    assert trace_statistics(recording.trace, recording.outcome).actions == 1


def test_tokens_are_the_agents_and_the_greeting_is_no_models() -> None:
    recording = only(json_unit(simulation()), NAME)
    assert [call.usage for call in model_calls(recording)] == [Usage(1000, 30), Usage(1200, 25), Usage(1300, 20)]
    counted = trace_statistics(recording.trace, recording.outcome)
    assert (counted.input, counted.output, counted.unstated) == (3500, 75, 0)
    assert [action.name for action in actions(recording)] == ["greeting"]
    assert [mapping(turn.extra["usage"])["prompt_tokens"] for turn in user_turns(recording)] == [400, 480]


def test_reward_seed_and_end_are_the_simulations() -> None:
    recording = only(json_unit(simulation()), NAME)
    assert (recording.outcome, recording.reward, recording.case, recording.trial) == (Outcome.SOLVED, 1.0, "t1", 2)
    assert recording.manifest.value("seeds.seed") == "626729"
    assert (verifications(recording)[0].passed, verifications(recording)[0].scores) == (True, {"DB": 1.0})
    ended = recording.trace.events[-1]
    assert isinstance(ended, RolloutEnded)
    assert ended.extra["termination_reason"] == "user_stop"
    assert mapping(recording.trace.events[0].extra["times"])["started_at"] == "2026-07-01T10:00:00"


@pytest.mark.parametrize(
    ("reward", "end", "outcome"),
    [
        (0.0, "user_stop", Outcome.FAILED_VERIFICATION),
        (0.0, "max_steps", Outcome.STEP_CAP),
        (None, "user_stop", Outcome.UNKNOWN),
        (None, "infrastructure_error", Outcome.INFRA_ERROR),
        (1.0, "max_steps", Outcome.SOLVED),
    ],
)
def test_how_a_simulation_ended(reward: float | None, end: str, outcome: Outcome) -> None:
    assert only(json_unit(simulation(reward, end)), NAME).outcome is outcome


def test_the_agents_cost_is_balanced() -> None:
    report = Report()
    only(json_unit(simulation()), NAME, report)
    assert not report.shortfalls
    only(json_unit(simulation(agent_cost=0.8)), NAME, report)
    assert [item.why for item in report.shortfalls] == ["cost: the source states 0.8, 0.75 stored"]


def test_a_results_file_states_agent_domain_and_task() -> None:
    info = {
        "git_commit": "abc",
        "agent_info": {"implementation": "llm_agent", "llm": "m-1", "llm_args": {"temperature": 0.0}},
        "environment_info": {"domain_name": "telecom"},
    }
    rows = [simulation(trial=1), simulation(trial=0)]
    first, second = recordings(
        json_unit({"info": info, "tasks": [{"id": "t1", "ticket": "x"}], "simulations": rows}), NAME
    )
    assert (first.trial, second.trial) == (0, 1)
    assert (first.panel, first.model, first.harness, first.revision) == (
        "tau2-bench telecom",
        "m-1",
        "llm_agent",
        "abc",
    )
    assert first.manifest.value("sampling.temperature") == 0.0
    assert first.manifest.value("panel.case_digest")


def test_lines_of_simulations_are_read() -> None:
    assert len(recordings(lines_unit([simulation(), simulation(trial=3)]), NAME)) == 2


@pytest.mark.skipif(not CASES.is_dir(), reason="the real traces are not beside this checkout")
def test_the_case_of_one_simulation() -> None:
    recording = only(file_unit((CASES / "b19_tau2_one_simulation.json").read_bytes(), "b19.json"), NAME)
    counted = trace_statistics(recording.trace, recording.outcome)
    assert (recording.outcome, recording.reward) == (Outcome.SOLVED, 1.0)
    assert (counted.input, counted.output) == (3500, 75)
    assert next((call.name, call.agent) for call in tool_calls(recording)) == ("toggle_airplane_mode", "user")
