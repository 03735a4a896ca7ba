"""A trace reader reads a trace by position."""

from __future__ import annotations

from harnesslab.core.contracts.contract import RAW
from harnesslab.core.contracts.trace_reader import turns
from harnesslab.core.trace.events import UserTurn
from tests.core.traces import bash, episode, model, reader


def test_a_tape_gives_events_messages_payloads_and_paths() -> None:
    trace = episode([UserTurn(content="go"), model("a")], [bash("ls"), model("b")], tools=[{"name": "ls"}])
    read = reader(trace)
    assert read.kinds == ["rollout_started", "user_turn", "model_call", "tool_call", "model_call", "rollout_ended"]
    assert read.steps == [0, 0, 0, 1, 1, 1]
    assert read.event(1) == trace.events[1]
    assert read.messages(2) == [{"role": "system", "content": "You fix bugs."}, {"role": "user", "content": "go"}]
    assert read.payload(2) == [{"name": "ls"}]
    assert read.path(RAW) is read.path(RAW)


def test_turns_are_steps_with_a_model_call_or_else_any() -> None:
    assert turns(reader(episode([model("a"), model("b")], [model("c")], [bash("ls")]))) == 2
    assert turns(reader(episode([bash("ls")], [bash("ls")]))) == 2
