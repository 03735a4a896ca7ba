"""An agent of any make in the sandbox: what it sends is passed on, and every step of it recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harnesslab.core.running.recipe import HarnessKind, HarnessSource
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace import sent
from harnesslab.core.trace.events import HarnessAction, ModelCall, RolloutStarted, ToolCall, Verification
from harnesslab.runtime.driver import agent as boundary
from tests.runtime.driver.rig import case, model
from tests.runtime.engines.loopback import response
from tests.runtime.gateway.rig import AgentRig, answer

DIALECTS = ["chat", "chat+", "responses", "responses+", "anthropic", "anthropic+"]
ANSWERS = (answer("I look", "echo hi > a; cat a", number=1), answer("done", number=2))
CASE = case("say hi", tests={"there": '[ "$(cat a)" = hi ]'})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_agent_of_each_dialect_is_recorded_step_by_step(tmp_path: Path, dialect: str) -> None:
    rig = AgentRig(tmp_path, dialect, "{instruction}", case=CASE)
    with model(*ANSWERS) as served:
        rollout = rig.go(served)
    assert (rollout.done.result.outcome, rollout.done.result.why) == (Outcome.SOLVED, "")
    first, second = rollout.of(ModelCall)
    assert [first.step, second.step] == [0, 1]
    assert (first.text, first.tool_calls[0].arguments) == ("I look", {"command": "echo hi > a; cat a"})
    assert first.extra["dialect"] == dialect.rstrip("+")
    assert first.usage.cache_read == 5
    (call,) = rollout.of(ToolCall)
    assert (call.name, call.arguments, call.result, call.step) == ("run", {"command": "echo hi > a; cat a"}, "hi\n", 0)
    assert call.extra["observed"] == "seen in the messages"
    assert [message["role"] for message in served.bodies[1]["messages"]] == ["system", "user", "assistant", "tool"]
    assert served.bodies[1]["messages"][1]["content"] == "say hi"
    assert served.bodies[1]["tools"][0]["function"]["name"] == "run"
    assert served.bodies[0]["seed"] != served.bodies[1]["seed"]
    assert (rollout.counts["requests"], rollout.counts["answers"]) == (2, 2)
    assert rollout.flushed >= 5
    ended = next(event for event in rollout.of(HarnessAction) if event.name == "agent ended")
    assert (ended.detail["exit_code"], ended.extra["last"]) == (0, "done\n")
    assert rollout.of(RolloutStarted)
    assert rollout.of(Verification)[0].passed


def test_the_agents_own_bytes_are_kept(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, "anthropic", "x", case=CASE)
    with model(*ANSWERS) as served:
        rollout = rig.go(served)
    calls = rollout.of(ModelCall)
    chain = [(event.raw_request, event.extra[sent.KEY]) for event in calls]
    body = json.loads(sent.body(chain))
    assert body["messages"][-1]["content"][0]["type"] == "tool_result"
    assert calls[1].extra[sent.KEY]["keeps"] > 0


def test_an_exit_code_is_a_fact_and_no_crash(tmp_path: Path) -> None:
    code = "import json, os, sys, urllib.request\n"
    code += "body = json.dumps({'messages': [{'role': 'user', 'content': 'x'}]}).encode()\n"
    code += "urllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body)\n"
    code += "open('a', 'w').write('hi'); print('bye'); sys.exit(7)\n"
    rig = AgentRig(tmp_path, code=code, case=CASE)
    with model("fine") as served:
        rollout = rig.go(served)
    assert rollout.done.result.outcome is Outcome.SOLVED
    assert rollout.done.result.why == "the agent ended with exit code 7"
    assert rollout.done.facts["agent"] == {"exit_code": 7, "last": "bye\n"}


def test_a_program_that_never_asks_and_fails_is_a_crash_of_the_harness(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, "chat", case=CASE)
    rig.source = HarnessSource("mine", "", kind=HarnessKind.COMMAND, command=("no-such-program",))
    with model("x") as served:
        rollout = rig.go(served)
    result = rollout.done.result
    assert (result.outcome, result.origin) == (Outcome.CRASH, "harness")
    assert "before it asked the model" in result.why


def test_the_step_budget_answers_with_an_error_and_ends_the_run(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, "chat", "x", case=case(steps=2, tests={"t": "true"}))
    with model(answer(None, "echo a", number=1)) as served:
        rollout = rig.go(served)
    result = rollout.done.result
    assert (result.outcome, result.reward) == (Outcome.STEP_CAP, 0.0)
    assert len(rollout.of(ModelCall)) == 2
    assert "refused 403" in rollout.done.facts["agent"]["last"]  # type: ignore[index,call-overload,operator]
    assert "the step budget of 2 is used up" in rollout.done.facts["agent"]["last"]  # type: ignore[index,call-overload,operator]


def test_the_time_budget_ends_an_agent_that_goes_on(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, code="import time\ntime.sleep(60)\n", case=case(wall=1.0))
    with model("x") as served:
        rollout = rig.go(served)
    assert rollout.done.result.outcome is Outcome.TIMEOUT


def test_a_request_to_stop_ends_it(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, code="import time\ntime.sleep(60)\n", case=case())
    asked: list[int] = []
    with model("x") as served:
        rollout = rig.go(served, stopped=lambda: asked.append(1) or len(asked) > 3)  # type: ignore[func-returns-value]
    assert rollout.done.result.outcome is Outcome.INTERRUPTED


def test_failures_of_the_engine_are_recorded_as_attempts_and_told_in_the_dialect(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, "anthropic", "x", case=CASE)
    with model(response(b"{}", "503 Service Unavailable", Retry_After="0")) as served:
        rollout = rig.go(served)
    assert [(event.attempt, event.error is None) for event in rollout.of(ModelCall)] == [(0, False), (1, False)]
    assert rollout.done.result.outcome is Outcome.INFRA_ERROR
    said = rollout.done.facts["agent"]["last"]  # type: ignore[index,call-overload]
    assert "refused 529" in str(said)
    assert "overloaded_error" in str(said)


RETRYING = """
import json, os, urllib.error, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
for count in range(3):
    headers = {"x-stainless-retry-count": str(count)}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    try:
        print(urllib.request.urlopen(request).read().decode())
        break
    except urllib.error.HTTPError as error:
        print(error.code, error.headers["x-should-retry"])
"""


def test_the_agents_own_retries_are_marked_and_are_no_steps(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, code=RETRYING, case=case(), repeats=0)
    busy = response(b"{}", "503 Service Unavailable")
    with model(busy, busy, answer("fine")) as served:
        rollout = rig.go(served)
    calls = rollout.of(ModelCall)
    assert [(event.step, event.attempt, event.extra.get("retry")) for event in calls] == [
        (0, 0, None),
        (0, 1, 1),
        (0, 2, 2),
    ]
    assert len({body["seed"] for body in served.bodies}) == 1
    assert "503 true" in str(rollout.done.facts["agent"])


PARALLEL = """
import json, os, threading, urllib.request
def talk(name):
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": name}]
    for _ in range(3):
        body = json.dumps({"messages": messages}).encode()
        with urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body) as answer:
            messages += [json.load(answer)["choices"][0]["message"], {"role": "user", "content": "on"}]
threads = [threading.Thread(target=talk, args=(str(n),)) for n in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_conversations_at_once_are_told_apart_and_not_interleaved(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, code=PARALLEL, case=case(steps=50))
    with model("fine") as served:
        rollout = rig.go(served)
    calls = rollout.of(ModelCall)
    assert len(calls) == 18
    by_agent: dict[str, list[int]] = {}
    windows: dict[str, list[int]] = {}
    for event in calls:
        by_agent.setdefault(event.agent, []).append(event.step)
        positions = windows.setdefault(event.agent, [])
        del positions[event.input.keep :]
        positions.extend(event.input.add)
        assert len(positions) == 2 * len(by_agent[event.agent])
    assert set(by_agent) == {"", *(f"conversation/{n}" for n in range(2, 7))}
    assert sorted(step for steps in by_agent.values() for step in steps) == list(range(18))


def go_again(rig: AgentRig, plan: RerunPlan, *answers: bytes, trace: object) -> tuple[object, list[object]]:
    with model(*answers or (b"",)) as served:
        return rig.go(served, plan, trace), served.bodies  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", ["chat", "anthropic+", "responses"])
def test_the_model_is_served_from_the_record_without_being_asked(tmp_path: Path, dialect: str) -> None:
    rig = AgentRig(tmp_path, dialect, "{instruction}", case=CASE)
    with model(*ANSWERS) as served:
        first = rig.go(served)
    with model(response(b"{}", "500 no")) as served:
        again = rig.go(served, RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.LIVE}), first.trace)
        assert served.bodies == []
    assert again.done.result.outcome is Outcome.SOLVED
    assert again.counts["served"] == 2
    assert [event.text for event in again.of(ModelCall)] == ["I look", "done"]
    assert all(event.extra["served"] == "from the record" for event in again.of(ModelCall))
    assert again.of(ToolCall)[0].result == "hi\n"


def test_a_miss_stops_with_the_nearest_request_and_goes_on_live_where_asked(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, "chat", "{instruction}", case=CASE)
    with model(answer(None, "date +%N > b; cat b", number=1), answer("done", number=2)) as served:
        first = rig.go(served)
    changed = AgentRig(tmp_path / "second", "chat", "another instruction", case=CASE)
    with model(*ANSWERS) as served:
        stopped = changed.go(served, RerunPlan(mode=Mode.HYBRID), first.trace)
        assert served.bodies == []
        assert stopped.done.result.diverged
        assert "left its record" in stopped.done.result.why
        detail = next(event.detail for event in stopped.of(HarnessAction) if event.name == "left the record")
        assert (detail["recorded"], detail["asked"]) == ("say hi", "another instruction")
        live = changed.go(served, RerunPlan(mode=Mode.HYBRID, on_miss=OnMiss.LIVE), first.trace)
    assert live.done.result.outcome is Outcome.SOLVED
    assert [event.extra.get("served") for event in live.of(ModelCall)] == ["live after a miss", None]


def test_a_boundary_that_is_switched_off_fails(tmp_path: Path) -> None:
    rig = AgentRig(tmp_path, "chat", "x", case=CASE)
    with model(*ANSWERS) as served:
        first = rig.go(served)
        off = rig.go(served, RerunPlan(mode=Mode.HYBRID, switches={"model": Switch.FAIL}), first.trace)
    assert "refused 400" in str(off.done.facts["agent"])
    assert off.of(ModelCall)[0].error == "the rerun lets the boundary model fail"


def test_an_agent_can_not_fill_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "MOST_BYTES", 600)
    rig = AgentRig(tmp_path, "chat", "x" * 200, case=CASE)
    with model(*ANSWERS) as served:
        rollout = rig.go(served)
    result = rollout.done.result
    assert (result.outcome, result.origin) == (Outcome.CRASH, "harness")
    assert "the agent sent more than" in result.why
    assert len(rollout.of(ModelCall)) == 1
