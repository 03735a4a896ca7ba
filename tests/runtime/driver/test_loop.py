"""A loop harness is driven from the empty sandbox to the verdict, and whatever it does becomes an outcome."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from harnesslab.core.running.cases import SimulatedUser, Verifier
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import (
    ClockRead,
    Fidelity,
    HarnessAction,
    ModelCall,
    RolloutEnded,
    RolloutStarted,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.sent import body
from harnesslab.core.trace.trace import messages_at
from harnesslab.runtime.driver.episode import CALLS_A_STEP
from tests.runtime.driver.rig import HEAD, Rig, case, model
from tests.runtime.engines.loopback import response


def test_a_solved_case_is_recorded_from_start_to_verdict(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(files={"a": "one\n"}, tests={"copied": "cmp a b"}))
    with model("cp a b", "submit") as served:
        rollout = rig.go(served)
    kinds = [type(event) for event in rollout.trace.events]
    assert kinds == [RolloutStarted, UserTurn, ModelCall, ToolCall, ModelCall, Verification, RolloutEnded]
    assert rollout.done.result.outcome is Outcome.SOLVED
    ended = rollout.of(RolloutEnded)[0]
    assert "+++ b/b" in ended.diff
    assert ended.state != rollout.of(RolloutStarted)[0].state
    assert rollout.counts == {
        "requests": 2,
        "answers": 2,
        "response_ids": 2,
        "output_tokens": 4,
        "commands": 1,
        "served": 0,
    }


def test_a_model_call_keeps_the_body_as_it_was_sent(tmp_path: Path) -> None:
    with model("true", "submit") as served:
        rollout = Rig(tmp_path).go(served)
    calls = rollout.of(ModelCall)
    assert calls[0].fidelity is Fidelity.RECORDED
    whole = json.loads(body([(call.raw_request, call.extra["sent"]) for call in calls]))
    assert whole == served.bodies[1]
    assert len(calls[1].raw_request) < calls[1].extra["sent"]["bytes"]
    assert '"choices"' in calls[1].raw_response


def test_the_verdict_of_work_that_fails_is_no_error(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"there": "[ -f b ]", "says": "echo no; exit 3"}))
    with model("submit") as served:
        rollout = rig.go(served)
    verdict = rollout.of(Verification)[0]
    assert rollout.done.result.outcome is Outcome.FAILED_VERIFICATION
    assert [(test.name, test.passed) for test in verdict.tests] == [("says", False), ("there", False)]
    assert verdict.tests[0].detail == "no\n"


def test_a_verifier_that_takes_too_long_gives_no_verdict(tmp_path: Path) -> None:
    rig = Rig(tmp_path, case=case(tests={"slow": "sleep 9", "then": "true"}, verify=0.5))
    with model("submit") as served:
        rollout = rig.go(served)
    assert rollout.done.result.outcome is Outcome.VERIFY_TIMEOUT
    assert [test.passed for test in rollout.of(Verification)[0].tests] == [None, None]


def test_the_verifiers_files_appear_only_when_judging_begins(tmp_path: Path) -> None:
    judged = msgspec.structs.replace(case(), verifier=Verifier({"right": "sh .verifier/t.sh"}, {"t.sh": "exit 0\n"}))
    with model("ls -a", "submit") as served:
        rollout = Rig(tmp_path, case=judged).go(served)
    assert ".verifier" not in rollout.of(ToolCall)[0].result
    assert rollout.done.result.outcome is Outcome.SOLVED


def test_the_step_budget_ends_it(tmp_path: Path) -> None:
    with model("true") as served:
        rollout = Rig(tmp_path, case=case(steps=3)).go(served)
    assert rollout.done.result.outcome is Outcome.STEP_CAP
    assert [call.step for call in rollout.of(ModelCall)] == [0, 1, 2]


def test_the_time_budget_ends_it(tmp_path: Path) -> None:
    with model("sleep 30") as served:
        rollout = Rig(tmp_path, case=case(wall=1.5, command=20.0)).go(served)
    assert rollout.done.result.outcome is Outcome.TIMEOUT
    assert rollout.of(ToolCall)[0].timed_out


def test_a_command_that_takes_too_long_is_ended_and_its_output_kept(tmp_path: Path) -> None:
    with model("echo begun; sleep 30", "submit") as served:
        rollout = Rig(tmp_path, case=case(command=0.5)).go(served)
    call = rollout.of(ToolCall)[0]
    assert (call.timed_out, call.result) == (True, "begun\n")


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("raise SystemExit(3)\n", "exit code 3"),
        (HEAD + "1/0\n", "ZeroDivisionError"),
        ("import os\nos.write(1, b'no json\\n')\n", "no JSON"),
        ("import os\nos.write(1, b'[1]\\n')\n", "without a type"),
        ('import os\nos.write(1, b\'{"type": "dance"}\\n\')\n', "dance"),
        ('import os\nos.write(1, b\'{"type": "end", "reason": "bored"}\\n\')\n', "end"),
        ('import os\nos.write(1, b\'{"type": "model", "messages": []}\\n\')\n', "model"),
        ('import os\nos.write(1, b\'{"type": "reject", "reason": "x"}\\n\')\n', "reject"),
        ("import os\nos.write(1, b'{' * 1000000)\n", "no JSON"),
        ("import os\nos.close(1)\nimport time\ntime.sleep(60)\n", "still runs"),
    ],
)
def test_a_harness_that_breaks_is_a_crash_of_the_harness(tmp_path: Path, code: str, word: str) -> None:
    with model("submit") as served:
        rollout = Rig(tmp_path, code).go(served)
    result = rollout.done.result
    assert (result.outcome, result.origin) == (Outcome.CRASH, "harness")
    assert word in result.why


def test_a_harness_that_never_speaks_runs_out_of_time(tmp_path: Path) -> None:
    with model("submit") as served:
        rollout = Rig(tmp_path, "import time\ntime.sleep(60)\n", case=case(wall=1.0)).go(served)
    assert rollout.done.result.outcome is Outcome.TIMEOUT


def test_a_rejected_answer_is_an_attempt_of_its_step(tmp_path: Path) -> None:
    code = HEAD + (
        'ask = [{"role": "user", "content": "q"}]\n'
        "episode.model(ask)\n"
        'episode.reject("no action")\n'
        'episode.action("repair", mechanism="parse-and-repair", detail="no action")\n'
        "episode.model(ask)\n"
        "episode.model(ask)\n"
        "episode.end()\n"
    )
    with model("x") as served:
        rollout = Rig(tmp_path, code).go(served)
    calls = rollout.of(ModelCall)
    assert [(call.step, call.attempt, call.rejected) for call in calls] == [
        (0, 0, "no action"),
        (0, 1, None),
        (1, 0, None),
    ]
    assert rollout.of(HarnessAction)[0].mechanism == "parse-and-repair"


def test_what_the_model_is_shown_is_kept_beside_the_result(tmp_path: Path) -> None:
    code = (
        HEAD
        + 'episode.run("echo long")\nepisode.seen("short")\n'
        + 'episode.run("echo same")\nepisode.seen("same\\n")\nepisode.end()\n'
    )
    with model("x") as served:
        rollout = Rig(tmp_path, code).go(served)
    assert [(call.result, call.seen) for call in rollout.of(ToolCall)] == [("long\n", "short"), ("same\n", None)]


def test_output_that_is_no_text_keeps_its_size_and_digest(tmp_path: Path) -> None:
    with model("printf '\\377\\000x'", "submit") as served:
        rollout = Rig(tmp_path).go(served)
    call = rollout.of(ToolCall)[0]
    assert call.result == "\ufffd\x00x"
    assert call.extra["size"] == 3


def test_an_unknown_tool_is_an_error_that_the_harness_is_told(tmp_path: Path) -> None:
    code = HEAD + 'answer = episode.tool("mail", {"to": "x"})\nepisode.end("gave_up", answer["error"])\n'
    with model("x") as served:
        rollout = Rig(tmp_path, code).go(served)
    assert "no tool mail" in rollout.of(ToolCall)[0].error
    assert "no tool mail" in rollout.done.result.why


def test_failures_of_infrastructure_are_attempts_of_the_same_request(tmp_path: Path) -> None:
    busy = response(b'{"error": {"message": "busy"}}', "503 Service Unavailable", Retry_After="0")
    with model(busy, "submit") as served:
        rollout = Rig(tmp_path).go(served)
    calls = rollout.of(ModelCall)
    assert [(call.step, call.attempt, call.error is None) for call in calls] == [(0, 0, False), (0, 1, True)]
    assert calls[0].settings["seed"] == calls[1].settings["seed"]
    assert messages_at(rollout.trace, rollout.trace.events.index(calls[1])) == [{"role": "user", "content": "do it"}]


def test_an_engine_that_stays_away_is_an_infra_error(tmp_path: Path) -> None:
    with model(response(b"{}", "503 Service Unavailable", Retry_After="0")) as served:
        rollout = Rig(tmp_path).go(served)
    assert rollout.done.result.outcome is Outcome.INFRA_ERROR
    assert len(rollout.of(ModelCall)) == 2


def test_a_request_that_can_never_succeed_is_told_to_the_harness(tmp_path: Path) -> None:
    code = HEAD + (
        'answer = episode.model([{"role": "user", "content": "q"}])\n'
        'episode.end("no_valid_action", answer["error"]["kind"])\n'
    )
    why = "request (900 tokens) exceeds the available context size (512 tokens)"
    error = {"code": 400, "message": why, "type": "exceed_context_size_error", "n_prompt_tokens": 900, "n_ctx": 512}
    full = json.dumps({"error": error}).encode()
    with model(response(full, "400 Bad Request")) as served:
        rollout = Rig(tmp_path, code).go(served)
    assert rollout.done.result.outcome is Outcome.NO_VALID_ACTION
    assert rollout.done.result.why == "context exceeded"


def test_a_failed_setup_is_no_sample_of_the_case(tmp_path: Path) -> None:
    with model("submit") as served:
        rollout = Rig(tmp_path, case=case(setup=("echo broken; exit 1",))).go(served)
    assert rollout.done.result.outcome is Outcome.INFRA_ERROR
    assert "broken" in rollout.done.result.why


def test_the_simulated_user_answers_by_its_replies_and_then_no_more(tmp_path: Path) -> None:
    code = HEAD + (
        'first, second = episode.user("what?"), episode.user("and?")\nepisode.end("submitted", f"{first} {second}")\n'
    )
    user = SimulatedUser(replies=("blue",))
    with model("x") as served:
        rollout = Rig(tmp_path, code, case=case(user=user)).go(served)
    assert rollout.done.result.why == "blue None"
    assert [(turn.content, turn.simulated) for turn in rollout.of(UserTurn)] == [("do it", False), ("blue", True)]


def test_a_persona_is_played_by_the_model_with_seeds_of_its_own(tmp_path: Path) -> None:
    code = HEAD + 'episode.user("what?")\nepisode.user("and?")\nepisode.end()\n'
    with model("green", "red") as served:
        rollout = Rig(tmp_path, code, case=case(user=SimulatedUser(persona="You like colours."))).go(served)
    assert [turn.content for turn in rollout.of(UserTurn)][1:] == ["green", "red"]
    assert [len(sent["messages"]) for sent in served.bodies] == [2, 4]
    assert served.bodies[0]["seed"] != served.bodies[1]["seed"]


def test_the_pinned_clock_gives_the_same_readings_every_time(tmp_path: Path) -> None:
    code = HEAD + "episode.clock()\nepisode.clock()\nepisode.end()\n"
    with model("x") as served:
        rollout = Rig(tmp_path, code).go(served)
    readings = [read.value for read in rollout.of(ClockRead)]
    assert readings == ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"]


def test_a_rollout_that_is_stopped_ends_soon_and_says_so(tmp_path: Path) -> None:
    asked = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 8

    with model("sleep 50") as served:
        rollout = Rig(tmp_path, case=case(command=50.0)).go(served, stopped=stopped)
    assert rollout.done.result.outcome is Outcome.INTERRUPTED
    assert rollout.of(ToolCall)[0].result == ""


def test_events_are_stored_as_they_happen(tmp_path: Path) -> None:
    code = HEAD + 'episode.run("true")\nepisode.action("look")\nepisode.run("true")\nepisode.end()\n'
    with model("x") as served:
        rollout = Rig(tmp_path, code).go(served)
    # what the last answer to the harness followed on is stored; the call itself waits for the harness's next word
    assert rollout.flushed == len(rollout.trace.events) - 2
    assert rollout.done.result.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("ask", ['episode.model(m)\n    episode.reject("no")', 'episode.model(m, agent="other")'])
def test_no_harness_draws_answers_without_end_within_its_step_budget(tmp_path: Path, ask: str) -> None:
    start = 'm = [{"role": "user", "content": "q"}]\nepisode.model(m)\n'
    code = f"{HEAD}{start}try:\n  while True:\n    {ask}\nexcept Stopped:\n  pass\n"
    with model("x") as served:
        rollout = Rig(tmp_path, code).go(served)
    assert rollout.done.result.outcome is Outcome.STEP_CAP
    assert len(served.bodies) <= CALLS_A_STEP + 1


@pytest.mark.parametrize(("asked", "sent"), [("7", 7), ("9000", 256), ('"many"', 256), ("-1", 256)])
def test_what_the_harness_asks_for_stays_within_the_output_budget(tmp_path: Path, asked: str, sent: int) -> None:
    code = f'{HEAD}episode.model([{{"role": "user", "content": "q"}}], max_tokens={asked})\nepisode.end()\n'
    with model("x") as served:
        Rig(tmp_path, code).go(served)
    assert served.bodies[0]["max_tokens"] == sent
