"""The viewer's files: steps as they are, a verdict only where pytest's summary states it."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ModelCall, ToolCall, Verification
from harnesslab.formats.harbor import viewer as harbor_viewer
from harnesslab.formats.harbor.viewer import pytest_verdict
from tests.formats.making import events_of, file_unit, read


def step(index: int, role: str, said: str, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("reasoning", "toolCalls", "observation", "toolName", "tokens", "timestamp"))
    return {"index": index, "role": role, "text": said, **empty, **more}


def imported(*steps: dict[str, Any], **more: Any) -> Any:
    (rollout,), _ = read(file_unit("trial.json", {"steps": list(steps), **more}), harbor_viewer)
    return rollout


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        ("x\n====== 2 passed, 42 warnings in 89.68s (0:01:29) ======\n", True),
        ("====== 1 failed, 1 passed in 0.15s ======", False),
        ("====== 3 passed in 1s ======\n====== 2 failed in 0.06s ======\n", False),
        ("====== 1 passed, 1 error in 0.15s ======", None),
        ("====== 4 warnings in 0.15s ======", None),
        ("2 passed", None),
        ("", None),
        (None, None),
    ],
)
def test_only_a_summary_line_is_a_verdict(log: Any, verdict: bool | None) -> None:
    assert pytest_verdict(log) is verdict


def test_a_verdict_becomes_outcome_and_reward_and_its_log_is_kept() -> None:
    rollout = imported(step(0, "user", "go"), verifierLog="====== 2 failed in 0.06s ======")
    assert (rollout.outcome, rollout.reward) == (Outcome.FAILED_VERIFICATION, 0.0)
    assert events_of(rollout, Verification)[0].output == "====== 2 failed in 0.06s ======"


@pytest.mark.parametrize(
    ("log", "outcome"),
    [
        ("Predicted answer: 4\nJudge response: INCORRECT\nTraceback", Outcome.FAILED_VERIFICATION),
        ("Judge response: INCORRECT\nJudge response: CORRECT", Outcome.SOLVED),
        ("the answer may be incorrect", Outcome.UNKNOWN),
        ("Judge response: CORRECT\n====== 1 failed in 0.15s ======", Outcome.FAILED_VERIFICATION),
    ],
)
def test_a_judge_s_word_is_a_verdict_where_pytest_gives_none(log: str, outcome: Outcome) -> None:
    assert imported(step(0, "user", "go"), verifierLog=log).outcome is outcome


def test_trials_of_one_task_are_one_case_whatever_host_or_newline_their_prompts_hold() -> None:
    said = ["Sort it.\nhostname: box-1", "Sort it.\nhostname: box-2\n", "Sort it.\r\nhostname: box-3"]
    assert len({imported(step(0, "user", text)).case for text in said}) == 1
    assert imported(step(0, "user", "Sort it twice.\nhostname: box-1")).case != imported(step(0, "user", said[0])).case


def test_a_log_that_says_nothing_is_no_verdict() -> None:
    rollout = imported(step(0, "user", "go"), verifierLog="killed")
    assert (rollout.outcome, rollout.reward) == (Outcome.UNKNOWN, None)


def test_a_turn_has_its_calls_usage_and_observation() -> None:
    calls = [{"name": "Read", "args": '{"path": "a"}'}, {"name": "Run", "args": "{broken"}]
    rollout = imported(
        step(0, "user", "go"),
        step(1, "agent", "hi", toolCalls=calls, observation="seen", tokens={"prompt": 7, "completion": 2}),
        step(2, "agent", "bye", tokens={"prompt": 0, "completion": 0}),
    )
    first, second = events_of(rollout, ModelCall)
    assert (first.usage.input, first.usage.output, second.usage) == (7, 2, None)
    read_, run = events_of(rollout, ToolCall)
    assert (read_.arguments, read_.has_result) == ({"path": "a"}, False)
    assert (run.arguments, run.raw, run.result) == (None, "{broken", "seen")
    assert rollout.trace.steps == 2


def test_times_that_go_backwards_are_kept_in_file_order_and_noted() -> None:
    steps = [
        step(0, "user", "go", timestamp="2026-01-01T00:00:05Z"),
        step(1, "agent", "a", timestamp="2026-01-01T00:00:01.000000+00:00"),
    ]
    (rollout,), report = read(file_unit("trial.json", {"steps": steps}), harbor_viewer)
    assert events_of(rollout, ModelCall)[0].at == -4.0
    assert report.remarks[0].where == "timestamps"
    assert not report.skipped


def test_nul_characters_pass() -> None:
    assert imported(step(0, "agent", "a\x00b")).trace.events[1].text == "a\x00b"


def test_tasks_that_begin_with_the_same_message_are_different_cases() -> None:
    cases = {imported(step(0, "user", "Rules."), step(1, "user", task), step(2, "agent", "ok")).case for task in "ab"}
    assert len(cases) == 2
