"""tau-bench results: trials in their own order, a simulated user, tool calls compared as values."""

from __future__ import annotations

import json
from typing import Any

from harnesslab.core.comparing.comparison import compare_traces
from harnesslab.core.comparing.sentence import sentence
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.contracts.trace_reader import MemoryTraceReader
from harnesslab.core.running.rollout import Outcome, Recording
from harnesslab.core.trace.events import ToolCall, UserTurn, Verification
from harnesslab.formats import tau_bench
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.registry import recognise


def trial(number: int, greeting: str, calls: list[tuple[str, str]], reward: float | None = 1.0) -> dict[str, Any]:
    """One trial of a task: the user greets, the agent calls tools one by one, and says goodbye."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Follow the policy."},
        {"role": "user", "content": greeting},
    ]
    for index, (name, arguments) in enumerate(calls):
        call_id = f"call_{number}{index:023d}"
        function = {"name": name, "arguments": arguments}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": f"result of {arguments}"})
    messages.append({"role": "assistant", "content": "Goodbye."})
    return {"task_id": 7, "reward": reward, "trial": number, "info": {"task": {"user_id": "u"}}, "traj": messages}


def trials() -> list[dict[str, Any]]:
    """Three trials, out of order: 0 and 1 part at their second call; 0 and 2 call the same, spaced otherwise."""
    return [
        trial(2, "Good day!", [("find", '{"id":"A"}'), ("cancel", '{"id": "A", "fee": 5}')]),
        trial(0, "Hello!", [("find", '{"id": "A"}'), ("cancel", '{"fee":5,"id":"A"}')]),
        trial(1, "Hello.", [("find", '{"id": "A"}'), ("refund", '{"id": "A"}')], reward=0.0),
    ]


def recordings(document: Any = None) -> list[Recording]:
    data = json.dumps(trials() if document is None else document).encode()
    unit = Unit("t.json", {"t.json": InputFile.of_bytes("t.json", data)})
    found = recognise(unit)
    assert found.importer.NAME == tau_bench.NAME
    return list(found.importer.read(unit, Report()))


def reader(recording: Recording) -> MemoryTraceReader:
    return MemoryTraceReader(recording.trace, recording.manifest, recording.outcome.value)


def test_positions_follow_the_file_s_own_trial_numbers() -> None:
    found = recordings()
    assert [(item.trial, item.source.position) for item in found] == [(0, 0), (1, 1), (2, 2)]
    assert all(item.trial_stated for item in found)


def test_reward_decides_the_outcome_and_none_is_unknown() -> None:
    assert [item.outcome for item in recordings()] == [Outcome.SOLVED, Outcome.FAILED_VERIFICATION, Outcome.SOLVED]
    (unknown,) = recordings([trial(0, "Hi", [], reward=None)])
    assert (unknown.outcome, unknown.reward) == (Outcome.UNKNOWN, None)
    assert not any(isinstance(event, Verification) for event in unknown.trace.events)


def test_the_user_is_simulated_and_calls_have_their_results() -> None:
    first = recordings()[0]
    (user,) = [event for event in first.trace.events if isinstance(event, UserTurn)]
    calls = [event for event in first.trace.events if isinstance(event, ToolCall)]
    assert user.simulated
    assert [(call.name, call.arguments) for call in calls] == [("find", {"id": "A"}), ("cancel", {"id": "A", "fee": 5})]
    assert calls[0].result == 'result of {"id": "A"}'


def test_tool_calls_compare_by_value_whatever_their_spacing() -> None:
    zero, one, two = map(reader, recordings())
    contract = Contract.parse(only="tool-calls")
    assert compare_traces(zero, two, contract).identical
    found = compare_traces(zero, one, contract).contractual
    assert found is not None
    assert found.tool_call_index == 1


def test_whole_traces_part_at_the_simulated_user_s_first_message() -> None:
    zero, one, two = map(reader, recordings())
    for a, b in ((zero, one), (zero, two), (one, two)):
        found = compare_traces(a, b, Contract.parse())
        assert found.raw is not None
        assert (found.raw.boundary, found.raw.cause.value) == ("user", "user")
        assert "user" in sentence(found)
        assert "harness" not in sentence(found)


def test_nothing_is_invented() -> None:
    manifest = recordings()[0].manifest
    assert manifest.value("model.name") is None
    assert manifest.value("sampling.temperature") is None
    assert manifest.value("panel.case") == "7"
