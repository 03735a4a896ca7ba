"""A rerun serves what its plan says from the record, executes the rest, and stops where the record doesn't hold."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.running.cases import SimulatedUser
from harnesslab.core.running.recipe import SideEffects
from harnesslab.core.running.record import altered
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ClockRead, HarnessAction, ModelCall, ToolCall, UserTurn, Verification
from harnesslab.core.trace.trace import Trace
from tests.runtime.driver.rig import HEAD, LOOP, Model, Rig, Rollout, case, model
from tests.runtime.engines.loopback import response

RECORDED = RerunPlan(mode=Mode.RECORDED)
LIVE = RerunPlan(mode=Mode.LIVE)


def path(trace: Trace) -> bytes:
    return comparators.path(trace, RAW).head


def recording(rig: Rig, *answers: str) -> Rollout:
    with model(*answers) as served:
        return rig.go(served)


def test_a_recorded_rerun_asks_nothing_runs_nothing_and_goes_the_same_way(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(files={"a": "one\n"}))
    parent = recording(rig, "cat a", "echo $RANDOM", "submit")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert served.bodies == []
    assert rollout.counts == {
        "requests": 0,
        "answers": 0,
        "response_ids": 0,
        "output_tokens": 0,
        "commands": 0,
        "served": 5,
    }
    calls, tools = rollout.of(ModelCall), rollout.of(ToolCall)
    assert [call.text for call in calls] == ["cat a", "echo $RANDOM", "submit"]
    assert [call.result for call in tools] == [call.result for call in parent.of(ToolCall)]
    assert {call.extra["served"] for call in (*calls, *tools)} == {"from the record"}


def test_a_recorded_rerun_ends_as_its_parent_also_where_commands_changed_files(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"it is there": "test -s made"}))
    parent = recording(rig, "echo one > made", "submit")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert parent.done.result.outcome is rollout.done.result.outcome is Outcome.SOLVED
    assert (rollout.done.result.diff, rollout.done.result.state, rollout.done.result.reward) == (
        parent.done.result.diff,
        parent.done.result.state,
        1.0,
    )
    assert path(rollout.trace) == path(parent.trace)
    assert [event.extra for event in rollout.of(Verification)] == [{"served": "from the record"}]


def test_where_served_commands_are_not_all_of_them_nothing_is_judged(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"it is there": "test -s made"}))
    parent = recording(rig, "echo one > made", "echo two", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"model": Switch.LIVE})
    with model("echo one > made", "submit") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert rollout.done.result.outcome is Outcome.UNKNOWN
    assert "no verdict" in rollout.done.result.why
    assert rollout.of(Verification) == []


def test_a_recorded_rerun_needs_no_engine_at_all(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "true", "submit")
    away = Model([])
    away.address = "http://127.0.0.1:9"
    assert rig.go(away, RECORDED, parent.trace).done.result.outcome is Outcome.UNKNOWN


def test_a_failure_that_the_harness_was_told_of_is_served_too(tmp_path: Path) -> None:
    code = HEAD + (
        'answer = episode.model([{"role": "user", "content": "q"}])\nepisode.end("gave_up", answer["error"]["kind"])\n'
    )
    refused = response(b'{"error": {"message": "no such thing as this model", "code": 400}}', "400 Bad Request")
    rig = Rig(tmp_path, code)
    with model(refused) as served:
        parent = rig.go(served)
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert not rollout.done.result.diverged
    assert rollout.done.result.why == parent.done.result.why
    assert path(rollout.trace) == path(parent.trace)


def test_an_altered_record_must_make_it_diverge(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "echo seen by the model", "submit")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, altered(parent.trace))
    assert rollout.done.result.diverged
    assert rollout.done.result.outcome is Outcome.INTERRUPTED


def test_a_miss_stops_it_and_shows_the_nearest_request_and_the_difference(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "true", "submit")
    other = msgspec.structs.replace(rig.recipe, case=case("do something else"))
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace, recipe=other)
    assert served.bodies == []
    left = rollout.of(HarnessAction)[0]
    assert left.name == "left the record"
    assert (left.detail["recorded"], left.detail["asked"]) == ("do it", "do something else")
    assert rollout.of(ModelCall)[0].error.startswith("not in the record")


def test_where_the_plan_says_so_a_miss_goes_live_and_is_labelled(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "true", "submit")
    other = msgspec.structs.replace(rig.recipe, case=case("do something else"))
    plan = RerunPlan(mode=Mode.HYBRID, on_miss=OnMiss.LIVE)
    with model("echo new", "submit") as served:
        rollout = rig.go(served, plan, parent.trace, recipe=other)
    calls = rollout.of(ModelCall)
    assert [call.text for call in calls] == ["echo new", "submit"]
    assert calls[0].extra["served"] == "live after a miss"
    assert rollout.of(HarnessAction)[0].name == "went live after a miss"
    assert "went_live_after" in rollout.done.facts
    assert rollout.of(ToolCall)[0].result == "new\n"


def test_a_live_rerun_asks_and_runs_everything_anew_with_the_same_seeds(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "echo one", "submit")
    with model("echo one", "submit") as served:
        rollout = rig.go(served, LIVE)
    assert rollout.counts["requests"] == 2
    assert path(rollout.trace) == path(parent.trace)
    seeds = [[call.settings["seed"] for call in each.of(ModelCall)] for each in (parent, rollout)]
    assert seeds[0] == seeds[1]


def test_a_live_rerun_that_sends_nothing_shows_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, HEAD + "episode.end()\n")
    with model("unused") as served:
        result = rig.go(served, LIVE).done.result
    assert result.outcome is Outcome.INFRA_ERROR
    assert "shows nothing" in result.why


def test_overrides_reach_every_request_and_no_served_one_is_missed_for_them(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings={"temperature": 0.2})
    parent = recording(rig, "true", "echo on", "submit")
    plan = RerunPlan(mode=Mode.LIVE, from_step=1, temperature=0.9, max_tokens=7)
    with model("submit") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert [(body["temperature"], body["max_tokens"]) for body in served.bodies] == [(0.9, 7)]
    assert rollout.done.result.outcome is Outcome.UNKNOWN


def test_a_fork_serves_its_prefix_and_rebuilds_the_environment_by_running_the_commands(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"kept": "cmp a b"}, files={"a": "one\n"}))
    parent = recording(rig, "cp a b", "rm b", "submit")
    plan = RerunPlan(mode=Mode.LIVE, from_step=1)
    with model("submit") as served:
        rollout = rig.go(served, plan, parent.trace)
    calls, tools = rollout.of(ModelCall), rollout.of(ToolCall)
    assert [call.extra.get("served") for call in calls] == ["from the record", None]
    assert tools[0].extra["rebuilt"] == "equal"
    assert served.bodies[0]["messages"][1] == {"role": "assistant", "content": "cp a b"}
    assert rollout.done.result.outcome is Outcome.SOLVED


def test_a_fork_stops_where_the_environment_drifted(tmp_path: Path) -> None:
    rig = Rig(tmp_path, pins=())
    parent = recording(rig, "head -c 16 /dev/urandom | od -An -tx1", "submit")
    with model("submit") as served:
        rollout = rig.go(served, RerunPlan(mode=Mode.LIVE, from_step=1), parent.trace)
    assert rollout.done.result.diverged
    assert "drifted" in rollout.done.result.why
    assert served.bodies == []


def test_what_only_a_scrub_rule_removes_is_no_drift_and_the_prefix_keeps_the_recorded_words(tmp_path: Path) -> None:
    rig = Rig(tmp_path, pins=())
    parent = recording(rig, "date +%H:%M:%S.%N", "submit")
    with model("submit") as served:
        rollout = rig.go(served, RerunPlan(mode=Mode.LIVE, from_step=1), parent.trace)
    tool = rollout.of(ToolCall)[0]
    assert tool.extra["rebuilt"] == "equal after the scrub rules"
    assert tool.result == parent.of(ToolCall)[0].result != tool.extra["rebuilt_result"]
    assert served.bodies[0]["messages"][-1]["content"] == tool.result


def test_under_another_revision_the_prefix_is_served_in_order_whatever_the_harness_asks(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "echo one", "submit")
    changed = Rig(
        tmp_path / "changed", LOOP.replace('"content": episode.start["instruction"]', '"content": "other words"')
    )
    plan = RerunPlan(mode=Mode.LIVE, from_step=1, revision="f" * 40)
    with model("submit") as served:
        rollout = changed.go(served, plan, parent.trace)
    assert rollout.of(ModelCall)[0].extra["served"] == "in order, whatever was asked"
    assert served.bodies[0]["messages"][0]["content"] == "other words"


def test_live_tools_under_a_recorded_model_match_after_the_scrub_rules(tmp_path: Path) -> None:
    rig = Rig(tmp_path, pins=())
    parent = recording(rig, "date +%H:%M:%S.%N", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.LIVE})
    with model("unused") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert served.bodies == []
    assert rollout.done.result.outcome is Outcome.UNKNOWN
    assert rollout.of(ToolCall)[0].result != parent.of(ToolCall)[0].result


def test_a_boundary_that_is_switched_off_fails_and_the_harness_is_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    parent = recording(rig, "true", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"tool:run": Switch.FAIL})
    with model("unused") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert "fail" in rollout.of(ToolCall)[0].error


def test_an_external_tool_is_served_and_never_executed_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools={"run": SideEffects.EXTERNAL})
    parent = recording(Rig(tmp_path / "parent"), "echo once", "submit")
    with model("unused") as served:
        rollout = rig.go(served, RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.LIVE}), parent.trace)
    assert rollout.of(ToolCall)[0].extra["served"] == "from the record"
    assert rollout.counts["commands"] == 0


def test_user_and_clock_are_served_and_a_further_question_is_a_miss(tmp_path: Path) -> None:
    code = HEAD + 'episode.user("what?")\nepisode.clock()\nepisode.end()\n'
    rig = Rig(tmp_path, code, case=case(user=SimulatedUser(replies=("blue", "red"))), pins=())
    parent = recording(rig, "x")
    with model("unused") as served:
        rollout = rig.go(served, RECORDED, parent.trace)
    assert [turn.content for turn in rollout.of(UserTurn)] == ["do it", "blue"]
    assert rollout.of(ClockRead)[0].value == parent.of(ClockRead)[0].value
    more = Rig(tmp_path / "more", code.replace("episode.end()", 'episode.user("and?")\nepisode.end()'), case=rig.case)
    with model("unused") as served:
        missed = more.go(served, RECORDED, parent.trace)
    assert missed.done.result.diverged


@pytest.mark.parametrize("boundary", ["user", "clock"])
def test_user_and_clock_can_be_live_alone(tmp_path: Path, boundary: str) -> None:
    code = HEAD + 'episode.user("what?")\nepisode.clock()\nepisode.end()\n'
    rig = Rig(tmp_path, code, case=case(user=SimulatedUser(replies=("blue",))), pins=())
    parent = recording(rig, "x")
    with model("unused") as served:
        rollout = rig.go(served, RerunPlan(mode=Mode.HYBRID, switches={boundary: Switch.LIVE}), parent.trace)
    served_from = {
        "user": rollout.of(UserTurn)[1].extra.get("served"),
        "clock": rollout.of(ClockRead)[0].extra.get("served"),
    }
    assert served_from.pop(boundary) is None
    assert set(served_from.values()) == {"from the record"}


def test_attempts_see_no_file_port_or_cache_of_each_other(tmp_path: Path) -> None:
    look = "ls -A /work /tmp $HOME; ps ax | grep -c [s]leep; (exec 3<>/dev/tcp/127.0.0.1/4444) 2>&1 | tail -c 20"
    leave = "for f in /work /tmp ~; do echo mine > $f/left; done; python3 -m http.server 4444 >/dev/null 2>&1 & sleep 1"
    rig = Rig(tmp_path, case=case(command=8.0))
    first = recording(rig, look, leave, "submit")
    second = recording(rig, look, leave, "submit")
    seen = [rollout.of(ToolCall)[0].result for rollout in (first, second)]
    assert seen[0] == seen[1]
    assert "left" not in seen[1]


def test_tests_run_in_the_order_that_a_stored_recipe_keeps(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"zebra": "true", "ant": "false"}))
    found = recording(rig, "true", "submit").of(Verification)
    assert [test.name for test in found[0].tests] == ["ant", "zebra"]


def test_commands_that_were_served_run_before_one_goes_live_on_what_they_left(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"joined": '[ "$(cat b)" = one ]'}))
    parent = recording(rig, "echo one > a", "true", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"model": Switch.LIVE}, on_miss=OnMiss.LIVE)
    with model("echo one > a", "cp a b", "submit") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert [call.extra.get("served") for call in rollout.of(ToolCall)] == ["from the record", "live after a miss"]
    assert any(action.name == "rebuilt the environment" for action in rollout.of(HarnessAction))
    assert rollout.done.result.outcome is Outcome.SOLVED


def test_catching_up_stops_where_the_environment_drifted(tmp_path: Path) -> None:
    rig = Rig(tmp_path, pins=())
    parent = recording(rig, "head -c 16 /dev/urandom | od -An -tx1", "true", "submit")
    plan = RerunPlan(mode=Mode.HYBRID, switches={"model": Switch.LIVE}, on_miss=OnMiss.LIVE)
    with model("head -c 16 /dev/urandom | od -An -tx1", "echo new", "submit") as served:
        rollout = rig.go(served, plan, parent.trace)
    assert rollout.done.result.diverged
    assert "run to catch up" in rollout.done.result.why
