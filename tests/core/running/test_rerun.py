"""What a rerun may ask for, what it costs, and where it can't fork."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harnesslab.core.running.recipe import SideEffects
from harnesslab.core.running.rerun import Mode, OnMiss, RerunCost, RerunPlan, Switch, controls, cost, unsafe_fork
from harnesslab.core.trace.events import ClockRead, ModelCall, NetworkExchange, ToolCall, Usage, UserTurn
from harnesslab.core.trace.trace import Trace, TraceBuilder

SANDBOXED = {"run": SideEffects.SANDBOXED}


def trace(*tools: ToolCall) -> Trace:
    builder = TraceBuilder()
    for step, tool in enumerate(tools):
        usage = Usage(input=100 * (step + 1), output=10)
        builder.model_call([f"q{step}"], text="a", step=step, usage=usage, latency=1.0)
        builder.add(msgspec.structs.replace(tool, step=step))
    return builder.close("solved")


def run(**fields: Any) -> ToolCall:
    return ToolCall(name="run", arguments={"command": "ls"}, result="x", latency=0.5, **fields)


def test_a_plan_survives_being_stored() -> None:
    plan = RerunPlan(
        mode=Mode.HYBRID, switches={"tool:run": Switch.LIVE}, on_miss=OnMiss.LIVE, from_step=3, temperature=0
    )
    assert msgspec.convert(msgspec.to_builtins(plan), type=RerunPlan) == plan


def test_in_mode_hybrid_what_is_not_named_is_recorded_and_a_tool_goes_before_all_tools() -> None:
    plan = RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.LIVE, "tool:mail": Switch.FAIL})
    assert plan.switch("model") is Switch.RECORDED
    assert plan.switch("tool:run") is Switch.LIVE
    assert plan.switch("tool:mail") is Switch.FAIL


def test_a_fork_serves_the_steps_before_it() -> None:
    plan = RerunPlan(mode=Mode.LIVE, from_step=2)
    assert [plan.forked(step) for step in range(4)] == [True, True, False, False]
    assert not RerunPlan(mode=Mode.LIVE).forked(0)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (run(timed_out=True), "timed out"),
        (run(extra={"left_running": True}), "background"),
        (ToolCall(name="run", result="x", latency=4.2, extra={"limit": 5.0}), "near its time limit"),
    ],
)
def test_a_fork_behind_a_command_that_may_not_repeat_is_unsafe(bad: ToolCall, word: str) -> None:
    found = unsafe_fork(trace(run(), bad, run()), 3)
    assert found is not None
    assert found.nearest == 1
    assert word in found.why
    assert unsafe_fork(trace(run(), bad, run()), 1) is None


def test_a_quick_command_is_safe() -> None:
    assert unsafe_fork(trace(run(), run(extra={"limit": 5.0})), 2) is None


def test_the_cost_is_that_of_the_steps_that_are_asked_anew() -> None:
    recorded = trace(run(), run(), run())
    assert cost(recorded, RerunPlan(mode=Mode.LIVE)) == RerunCost(3, 600, 30, 4.5, 3)
    # the fork asks from step 1 on, and runs every command to rebuild what it starts from
    assert cost(recorded, RerunPlan(mode=Mode.LIVE, from_step=1)) == RerunCost(2, 500, 20, 3.5, 3)
    assert cost(recorded, RerunPlan(mode=Mode.RECORDED)) == RerunCost(0, 0, 0, 0, 0)
    assert cost(recorded, RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.LIVE})).commands == 3
    assert cost(recorded, RerunPlan(mode=Mode.LIVE, from_step=1), ["run"]).commands == 0
    assert cost(recorded, RerunPlan(mode=Mode.LIVE)).times(2) == RerunCost(6, 1200, 60, 9.0, 6)


def test_a_cost_that_the_recording_does_not_state_is_unknown() -> None:
    builder = TraceBuilder()
    builder.model_call(["q"], text="a")
    found = cost(builder.close("solved"), RerunPlan(mode=Mode.LIVE))
    assert (found.calls, found.prompt_tokens, found.seconds) == (1, None, None)


def every_boundary() -> Trace:
    builder = TraceBuilder()
    builder.add(UserTurn(content="q", simulated=True))
    builder.model_call(["q"], text="a")
    builder.add(run())
    builder.add(ToolCall(name="mail", result="sent"))
    builder.add(ClockRead(value="noon"))
    builder.add(NetworkExchange(target="x"))
    return builder.close("solved")


def test_a_loop_harness_has_every_boundary_under_control_but_those_no_worker_has() -> None:
    found = {item.boundary: item for item in controls(every_boundary(), SANDBOXED, kind="loop")}
    for boundary in ("model", "tool:run", "user", "clock"):
        assert found[boundary].switches == tuple(Switch)
    assert found["network"].switches == ()
    assert "harness" not in found


def test_an_external_tool_is_never_live_and_an_undeclared_one_is_external() -> None:
    found = {item.boundary: item for item in controls(every_boundary(), SANDBOXED, kind="loop")}
    assert Switch.LIVE not in found["tool:mail"].switches
    assert "external" in found["tool:mail"].why


def test_of_a_command_harness_the_model_alone_is_controlled() -> None:
    found = {item.boundary: item for item in controls(every_boundary(), SANDBOXED, kind="command")}
    assert found["model"].switches == tuple(Switch)
    assert found["tool:run"].switches == (Switch.LIVE,)


def test_without_a_harness_nothing_is_controlled() -> None:
    found = controls(every_boundary(), {}, kind="none")
    assert all(not item.switches and item.why for item in found)


def test_a_trace_without_calls_still_names_the_model() -> None:
    assert [item.boundary for item in controls(TraceBuilder().close("solved"), {}, kind="loop")] == ["model"]


def test_the_instruction_is_no_boundary_and_the_simulated_user_is_one() -> None:
    builder = TraceBuilder()
    builder.add(UserTurn(content="the task", simulated=False))
    assert "user" not in {item.boundary for item in controls(builder.trace(), {}, kind="loop")}
    builder.add(UserTurn(content="yes", simulated=True))
    assert {item.boundary: item.events for item in controls(builder.trace(), {}, kind="loop")}["user"] == 1


def test_events_are_counted_by_boundary() -> None:
    calls = [event for event in every_boundary().events if isinstance(event, ModelCall)]
    found = {item.boundary: item.events for item in controls(every_boundary(), {}, kind="loop")}
    assert found["model"] == len(calls) == 1
