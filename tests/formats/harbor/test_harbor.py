"""Harbor trials: an error is not a failure, a missing reward is not zero, and all files of a trial count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome, Recording
from harnesslab.core.trace.events import ModelCall, SubagentCall, ToolCall, Verification
from harnesslab.core.trace.stated import lines_of
from harnesslab.formats.discovery import discover
from harnesslab.formats.harbor import importer as harbor
from harnesslab.formats.reading.inputs import Report
from tests.formats.atif.test_atif import USER, observed, step, trajectory
from tests.formats.making import events_of, file_unit, folder_unit, lines, read


def result(reward: float | None = None, exception: str = "", **more: Any) -> dict[str, Any]:
    return {
        "task_name": "chess",
        "trial_name": "chess__abc",
        "task_checksum": "f" * 64,
        "source": "tb",
        "config": {"agent": {"name": "terminus-2", "model_name": "gpt-x", "kwargs": {"max_turns": 20}}, "job_id": "j"},
        "agent_info": {"name": "terminus-2", "version": "2.0.0", "model_info": None},
        "agent_result": {"n_input_tokens": 10, "rollout_details": None},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": {"exception_type": exception, "exception_message": "m"} if exception else None,
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:10:00Z",
        **more,
    }


def trial(document: Any, **files: Any) -> Any:
    (rollout,), _ = read(folder_unit("chess__abc", {"result.json": document, **files}), harbor)
    return rollout


@pytest.mark.parametrize(
    ("reward", "exception", "outcome"),
    [
        (1.0, "", Outcome.SOLVED),
        (0.0, "", Outcome.FAILED_VERIFICATION),
        (0.4, "", Outcome.FAILED_VERIFICATION),
        (None, "", Outcome.UNKNOWN),
        (1.0, "AgentTimeoutError", Outcome.SOLVED),
        (0.0, "AgentTimeoutError", Outcome.TIMEOUT),
        (None, "VerifierTimeoutError", Outcome.VERIFY_TIMEOUT),
        (None, "EnvironmentStartTimeoutError", Outcome.INFRA_ERROR),
        (None, "AgentSetupTimeoutError", Outcome.INFRA_ERROR),
        (None, "RewardFileNotFoundError", Outcome.INFRA_ERROR),
        (None, "CancelledError", Outcome.INTERRUPTED),
        (None, "NonZeroAgentExitCodeError", Outcome.CRASH),
    ],
)
def test_how_a_trial_ended(reward: float | None, exception: str, outcome: Outcome) -> None:
    rollout = trial(result(reward, exception))
    assert rollout.outcome is outcome
    assert rollout.reward == reward


def test_an_exception_beside_a_reward_marks_the_trial() -> None:
    rollout = trial(result(1.0, "AgentTimeoutError"))
    assert rollout.tags == ("AgentTimeoutError",)
    assert rollout.trace.events[-1].error == "AgentTimeoutError: m"
    assert trial(result(1.0)).tags == ()


def test_the_tokens_of_a_trial_without_a_trajectory_are_its_own() -> None:
    used = {"n_input_tokens": 1000, "n_cache_tokens": 200, "n_output_tokens": 50, "cost_usd": 0.01}
    rollout = trial(result(1.0, agent_result=used))
    counted = trace_statistics(rollout.trace, rollout.outcome)
    assert (counted.input, counted.cached, counted.output, counted.calls) == (1000, 200, 50, 0)
    assert [(line.what, line.short) for line in lines_of(rollout.trace.events[-1].extra)] == [
        ("input tokens", False), ("output tokens", False), ("cached tokens", False), ("cost", False), ("verdict", False)
    ]  # fmt: skip


def test_tokens_that_the_trajectory_lacks_are_named_as_missing() -> None:
    steps = [USER, step(2, "agent", "a", metrics={"prompt_tokens": 600, "completion_tokens": 50})]
    used = {"n_input_tokens": 1000, "n_cache_tokens": 0, "n_output_tokens": 50}
    files = {"result.json": result(1.0, agent_result=used), "agent/trajectory.json": trajectory(*steps)}
    (rollout,), report = read(folder_unit("chess__abc", files), harbor)
    assert trace_statistics(rollout.trace, rollout.outcome).input == 600
    assert [item.why for item in report.shortfalls] == ["input tokens: the source states 1,000, 600 stored"]


def test_a_trial_that_never_finished_was_interrupted() -> None:
    assert trial(result(finished_at=None)).outcome is Outcome.INTERRUPTED


def test_a_trial_names_its_conditions() -> None:
    rollout = trial(result(1.0))
    assert (rollout.case, rollout.panel, rollout.experiment) == ("chess", "tb", "j")
    assert (rollout.harness, rollout.revision, rollout.model) == ("terminus-2", "2.0.0", "gpt-x")
    assert rollout.manifest.value("panel.case_digest") == "f" * 64
    assert rollout.budgets == {"steps": 20.0}
    assert rollout.missing == "model: the trial holds no trajectory, only its result"


def test_a_folder_has_trajectory_continuation_sub_agents_and_verifier() -> None:
    handed = step(2, "agent", "a", observation=observed({"subagent_trajectory_ref": [{"trajectory_path": "sub.json"}]}))
    files = {
        "agent/trajectory.json": trajectory(USER, handed, continued_trajectory_ref="cont.json"),
        "agent/cont.json": trajectory(step(1, "agent", "b")),
        "agent/sub.json": {**trajectory(step(1, "agent", "c")), "agent": {"name": "helper"}},
        "verifier/test-stdout.txt": "1 passed",
        "verifier/ctrf.json": {"results": {"tests": [{"name": "t", "status": "failed", "message": "no"}]}},
    }
    rollout = trial(result(0.0), **files)
    assert [(call.text, call.agent) for call in events_of(rollout, ModelCall)] == [
        ("a", ""),
        ("c", "helper"),
        ("b", ""),
    ]
    assert events_of(rollout, SubagentCall)[0].child == "helper"
    (said,) = events_of(rollout, Verification)
    assert (said.output, said.tests[0].name, said.tests[0].passed) == ("1 passed", "t", False)


def test_token_ids_of_the_result_go_to_the_calls_where_they_match() -> None:
    details = [{"completion_token_ids": [[1, 2]], "logprobs": [[-0.1, -0.2]], "prompt_token_ids": [[9], [8]]}]
    document = result(1.0, agent_result={"rollout_details": details})
    rollout = trial(document, **{"agent/trajectory.json": trajectory(USER, step(2, "agent", "a"))})
    (call,) = events_of(rollout, ModelCall)
    assert (call.token_ids, call.logprobs, call.prompt_token_ids) == ((1, 2), (-0.1, -0.2), None)


def test_a_trial_without_its_result_still_has_its_trajectory_and_reward() -> None:
    files = {
        "config.json": {"trial_name": "chess__abc", "agent": {"name": "x"}},
        "agent/trajectory.json": trajectory(USER, step(2, "agent", "a")),
        "verifier/reward.txt": "1\n",
    }
    (rollout,), report = read(folder_unit("chess__abc", files), harbor)
    assert (rollout.case, rollout.outcome, rollout.reward) == ("chess", Outcome.SOLVED, 1.0)
    assert report.skipped[0].where == "result.json"


def test_a_result_alone_is_a_rollout_without_steps() -> None:
    (rollout,), _ = read(file_unit("result.json", result(1.0)), harbor)
    assert rollout.outcome is Outcome.SOLVED
    assert events_of(rollout, ModelCall) == []


def nemo_row(name: str, reward: float | None) -> dict[str, Any]:
    output = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "plan"}]},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": '{"cmd": "ls"}'},
        {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "go"}]},
        "response": {"model": "nano", "output": output, "usage": {"input_tokens": 5}},
        "metadata": result(reward, task_name=name),
        "reward": reward,
    }


@pytest.mark.parametrize("count", [1, 2])
def test_rows_with_a_trials_result_are_trials(count: int) -> None:
    rows = [nemo_row("a", 1.0), nemo_row("b", None)][:count]
    rollouts, _ = read(file_unit("rollouts.jsonl", lines(rows)), harbor)
    assert [(rollout.case, rollout.outcome) for rollout in rollouts] == [
        ("a", Outcome.SOLVED),
        ("b", Outcome.UNKNOWN),
    ][:count]
    assert [rollout.source.position for rollout in rollouts] == list(range(count))
    first, second = events_of(rollouts[0], ModelCall)
    assert (first.text, first.tool_calls[0].name, second.text) == ("plan", "bash", "done")
    assert events_of(rollouts[0], ToolCall)[0].result == "a.txt"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"n_total_trials": 2, "stats": {}, "trial_results": []}, "a Harbor job's summary"),
        ({"agents": [], "datasets": [], "jobs_dir": "jobs", "n_attempts": 3}, "a Harbor job's configuration"),
        ({"trials_dir": "j", "agent": {}, "verifier": {}}, "a Harbor trial's configuration"),
        ({"results": [{"task_id": "a", "is_resolved": True}]}, "terminal-bench results"),
    ],
)
def test_files_beside_trials_are_refused_with_a_true_reason(document: Any, reason: str) -> None:
    with pytest.raises(FormatRefused, match=reason):
        read(file_unit("result.json", document), harbor)
    if "results" not in document:
        with pytest.raises(FormatRefused):
            read(folder_unit("job", {"result.json": document, "config.json": {}}), harbor)


JOB = {"jobs_dir": "jobs", "n_attempts": 1, "agents": [{"name": "terminus-2"}], "datasets": []}


def job(tmp_path: Path, config: dict[str, Any] | None, *trials: dict[str, Any]) -> list[Recording]:
    """Write a job with its trials, and read what is found there."""
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    for number, document in enumerate(trials):
        folder = tmp_path / f"chess__{number}"
        (folder / "agent").mkdir(parents=True)
        document = {**document, "trial_name": folder.name}
        (folder / "result.json").write_text(json.dumps(document))
        (folder / "config.json").write_text("{}")
    return [found for unit in discover([tmp_path]) for found in harbor.read(unit, Report())]


def begun(hour: int, *stated: Any) -> dict[str, Any]:
    return result(*stated, started_at=f"2026-01-01T{hour:02d}:00:00Z")


def counted(recordings: list[Recording]) -> list[tuple[int, Outcome]]:
    return [(found.trial, found.outcome) for found in recordings]


def test_the_trials_of_a_task_count_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    found = job(tmp_path, {**JOB, "n_attempts": 3}, begun(3, 1.0), begun(1, 0.0), begun(2, None, "AgentError"))
    assert counted(found) == [(2, Outcome.SOLVED), (0, Outcome.FAILED_VERIFICATION), (1, Outcome.CRASH)]


def test_a_trial_that_was_tried_again_is_one_sample(tmp_path: Path) -> None:
    found = job(tmp_path, JOB, begun(1, None, "AgentError"), begun(2, 1.0))
    assert counted(found) == [(0, Outcome.INTERRUPTED), (0, Outcome.SOLVED)]
    assert found[0].tags == ("superseded attempt",)


def test_a_trial_whose_every_attempt_failed_is_still_one_sample(tmp_path: Path) -> None:
    found = job(tmp_path, JOB, begun(1, None, "AgentError"), begun(2, None, "DockerError"))
    assert counted(found) == [(0, Outcome.INTERRUPTED), (0, Outcome.INFRA_ERROR)]


def test_a_graded_trial_is_never_taken_for_a_retried_one(tmp_path: Path) -> None:
    found = job(tmp_path, JOB, begun(1, 0.0, "AgentTimeoutError"), begun(2, 1.0))
    assert counted(found) == [(0, Outcome.TIMEOUT), (1, Outcome.SOLVED)]


def test_a_stray_configuration_beside_trials_is_no_trial_and_no_job(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"theme": "dark"}')
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray" / "config.json").write_text("{}")
    job(tmp_path, None, begun(1, 1.0))
    units = list(discover([tmp_path]))
    assert [(unit.name, unit.folder) for unit in units] == [
        ("chess__0", True),
        ("config.json", False),
        ("config.json", False),
    ]


def test_a_job_is_one_experiment_with_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(
        json.dumps({"n_total_trials": 2, "stats": {"n_errors": 0}, "started_at": "2026-01-01T00:00:00Z"})
    )
    job(tmp_path, JOB, begun(1, 1.0), begun(2, 0.0))
    records = [record for unit in discover([tmp_path]) for record in harbor.experiments(unit, Report())]
    assert {record.external_id for record in records} == {"j"}
    assert (records[0].kind, records[0].metrics, records[0].facts["config"]) == ("eval", {"n_errors": 0}, JOB)


def test_each_agent_of_a_job_is_an_experiment_of_its_own(tmp_path: Path) -> None:
    several = {**JOB, "agents": [{"name": "terminus-2"}, {"name": "other"}]}
    (found,) = job(tmp_path, several, begun(1, 1.0))
    assert found.experiment == "j terminus-2 gpt-x"


def test_what_a_job_adds_later_does_not_make_a_trial_another(tmp_path: Path) -> None:
    job(tmp_path, JOB, begun(1, 1.0))
    before = next(iter(discover([tmp_path]))).digest()
    (tmp_path / "result.json").write_text(json.dumps({"n_total_trials": 1, "stats": {}}))
    assert next(iter(discover([tmp_path]))).digest() == before
