"""What a record serves up to its end: errors, the user's silence, and the verdict of work that was not done again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harnesslab.core.running.cases import SimulatedUser
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ClockRead, HarnessAction, ToolCall, UserTurn, Verification
from tests.runtime.driver.rig import HEAD, LOOP, Rig, case, model
from tests.runtime.driver.test_reruns import RECORDED, path, recording


@pytest.mark.parametrize("call", ['episode.tool("mail", {"to": "x"})', 'episode.tool("run", {"command": 5})'])
def test_an_error_of_a_tool_is_served_as_one(tmp_path: Path, call: str) -> None:
    rig = Rig(tmp_path, HEAD + f'episode.end("gave_up", {call}["error"])\n')
    parent = recording(rig, "x")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert rollout.done.result.why == parent.done.result.why != ""
    assert path(rollout.trace) == path(parent.trace)


def test_a_user_who_had_no_more_to_say_has_none_in_a_rerun(tmp_path: Path) -> None:
    code = HEAD + 'while episode.user("what?") is not None:\n    pass\nepisode.end()\n'
    rig = Rig(tmp_path, code, case=case(user=SimulatedUser(replies=("blue", "red"))))
    parent = recording(rig, "x")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert path(rollout.trace) == path(parent.trace)


def test_user_and_clock_go_on_behind_a_fork_where_the_prefix_left_them(tmp_path: Path) -> None:
    turn = 'episode.model([{"role": "user", "content": "q"}])\nepisode.user("what?")\nepisode.clock()\n'
    rig = Rig(tmp_path, f"{HEAD}{turn}{turn}episode.end()\n", case=case(user=SimulatedUser(replies=("blue", "red"))))
    parent = recording(rig, "x")
    with model("x") as served:
        rollout = rig.go(served, RerunPlan(mode=Mode.LIVE, from_step=1), parent.trace)
    assert [event.content for event in rollout.of(UserTurn)] == ["do it", "blue", "red"]
    assert [event.value for event in rollout.of(ClockRead)] == [event.value for event in parent.of(ClockRead)]


def test_a_recorded_rerun_serves_the_verdict_of_work_that_it_does_not_do(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(files={"a": "one\n"}, tests={"copied": "cmp a b"}))
    parent = recording(rig, "cp a b", "submit")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert rollout.done.result.outcome is Outcome.SOLVED
    assert rollout.of(Verification)[0].extra["served"] == "from the record"
    assert path(rollout.trace) == path(parent.trace)


def test_other_work_than_recorded_gets_no_verdict_where_commands_were_served(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(files={"a": "one\n"}, tests={"copied": "cmp a b"}))
    parent = recording(rig, "cp a b", "rm b", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"model": Switch.LIVE}, on_miss=OnMiss.LIVE)
    with model("cp a b", "submit") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert rollout.done.result.outcome is Outcome.UNKNOWN
    assert "served" in rollout.done.result.why
    assert rollout.of(Verification) == []


def test_a_command_before_the_fork_that_the_record_lacks_is_shown(tmp_path: Path) -> None:
    parent = recording(Rig(tmp_path), "echo one", "submit")
    changed = Rig(tmp_path / "changed", LOOP.replace("episode.run(text)", 'episode.run(text + " two")'))
    with model("submit") as served:
        rollout = changed.go(served, RerunPlan(mode=Mode.LIVE, from_step=1), parent.trace)
    assert rollout.done.result.diverged
    assert rollout.of(HarnessAction)[0].name == "left the record"
    assert rollout.of(ToolCall)[0].error.startswith("not in the record")


@pytest.mark.parametrize("when", ["setup", "tests"])
def test_what_is_stopped_while_it_is_set_up_or_judged_is_interrupted(tmp_path: Path, when: str) -> None:
    slow = case(setup=("touch began; sleep 30",), command=40.0) if when == "setup" else case(tests={"slow": "sleep 30"})
    end = time.monotonic() + 4

    def stopped() -> bool:
        return time.monotonic() > end

    with model("submit") as served:
        rollout = Rig(tmp_path, case=slow).go(served, stopped=stopped)
    assert rollout.done.result.outcome is Outcome.INTERRUPTED
    assert bool(rollout.trace.events[:-1]) is (when == "tests")
    assert rollout.of(Verification) == []
