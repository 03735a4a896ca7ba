"""harness-training runs: messages are put back, every event is kept, outcomes and decisions are taken verbatim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.events import Fidelity, HarnessAction, ModelCall, ToolCall, Usage, Verification
from harnesslab.core.trace.trace import messages_at
from harnesslab.formats.companions import INDEX, MEMO, memo_lines
from harnesslab.formats.harness_training import importer as harness_training
from harnesslab.formats.reading.inputs import InputFile, Report
from harnesslab.formats.registry import experiments, recognise
from tests.formats.making import events_of, facts_of, file_unit, folder_unit, lines, read

SYSTEM = {"role": "system", "content": "You control a shell.", "sha": "aaaaaaaaaaaa"}
ASK = {"role": "user", "content": "Make a folder", "sha": "bbbbbbbbbbbb"}
TOOLS = {"tools": [{"type": "function", "function": {"name": "run"}}], "sha": "cccccccccccc"}


def completion(step: int, messages: list[Any], calls: list[Any], **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "cached_input_tokens": 12, "reasoning_tokens": None}
    done = {
        "content": more.pop("content", None),
        "finish_reason": "tool_calls",
        "usage": usage,
        "response": {"id": f"r{step}", "model": "tiny", "system_fingerprint": "b0"},
        "served_from_cache": False,
        "calls": calls,
    }
    row = {"event": "completion_received", "t_sec": step * 1.0, "step_index": step, "attempt_index": 0}
    row["llm_latency_sec"] = 0.25
    tools = TOOLS if step == 1 and not more.get("attempt_index") else {"sha": TOOLS["sha"]}
    return {**row, "request_messages": messages, "request_tools": tools, "completion": done, **more}


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"call_index": 0, "name": name, "args": args}


def step(index: int, code: int = 0, **more: Any) -> dict[str, Any]:
    result = {"raw_env_output": {"exit_code": code, "stdout": ""}, "reward": 0.0, "verdict": None, **more}
    return {
        "event": "step_completed",
        "t_sec": index + 0.5,
        "step_index": index,
        "call_index": 0,
        "step_result": result,
        "terminal": result["verdict"] is not None,
    }


def answer(text: str, sha: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "x", "content": text, "sha": sha}


EPISODE = [
    completion(1, [SYSTEM, ASK], [call("run", command="mkdir data")]),
    step(1),
    completion(
        2,
        [{"role": "system", "sha": SYSTEM["sha"]}, {"role": "user", "sha": ASK["sha"]}, answer("rc=0", "dddddddddddd")],
        [call("submit")],
    ),
    step(2, verdict={"completed": True, "passed": True, "error": None}, reward=1.0),
]
CHAIN = [
    {"action": {"kind": "run", "command": "mkdir data", "cwd": None}, "audit_hash": "e" * 64, "timed_out": False},
    {"action": {"kind": "verify"}, "verdict": {"passed": True, "reward": 1.0}, "timed_out": False},
]


def result(mode: str, **more: Any) -> dict[str, Any]:
    times = {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:09Z"}
    return {"failure_mode": mode, "failure_origin": None, "error": None, "metrics": {"reward": 0.0}, **times, **more}


def experiment(tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    provider = {"model_name": "tiny", "provider": "openai_compatible", "temperature": 0.0, "seed": 7, "max_tokens": 72}
    return {
        "experiment_id": "run-1",
        "kind": "candidate",
        "git_commit_hash": "c0ffee",
        "git_dirty": False,
        "parent_commit_hash": "beef",
        "crash_reason": None,
        "decision": {"outcome": "rejected", "reason": "regressed_baseline_tasks", "regressions": ["t"]},
        "determinism_certification": {"t": {"verdict": "forked"}},
        "config": {
            "max_steps": 4,
            "llm_provider_config": provider,
            "environment": {"kind": "shell", "task_names": ["t"]},
            "training_target": {"module": "src.policy.core"},
        },
        "tasks": tasks,
        **more,
    }


def run_folder(document: dict[str, Any], **files: Any) -> Any:
    return folder_unit("run-1", {"experiment.json": document, **files})


def solved_run(**files: Any) -> Any:
    document = experiment({"t": result("solved", metrics={"reward": 1.0})})
    return run_folder(document, **{"tasks/t/agent/steps.jsonl": lines(EPISODE), **files})


def test_messages_and_tools_named_by_digest_are_put_back_in_file_order() -> None:
    (rollout,), _ = read(solved_run(), harness_training)
    first, second = events_of(rollout, ModelCall)
    assert messages_at(rollout.trace, rollout.trace.events.index(second)) == [
        {"role": "system", "content": "You control a shell."},
        {"role": "user", "content": "Make a folder"},
        {"role": "tool", "tool_call_id": "x", "content": "rc=0"},
    ]
    assert first.fidelity is Fidelity.RECORDED
    assert first.tools == second.tools
    assert rollout.trace.payloads[first.tools] == TOOLS["tools"]


def test_a_call_keeps_its_settings_usage_place_and_when_it_began() -> None:
    (rollout,), _ = read(solved_run(), harness_training)
    first = events_of(rollout, ModelCall)[0]
    assert first.settings == {"temperature": 0.0, "max_tokens": 72, "seed": 7}
    assert first.usage == Usage(input=20, output=5, cache_read=12)
    assert (first.step, first.at, first.latency) == (0, 0.75, 0.25)
    assert (first.response_id, first.fingerprint) == ("r1", "b0")
    assert first.tool_calls[0].arguments == {"command": "mkdir data"}


def test_a_result_is_kept_as_produced_and_as_the_model_saw_it() -> None:
    (rollout,), _ = read(solved_run(), harness_training)
    made = events_of(rollout, ToolCall)[0]
    assert made.result == {"exit_code": 0, "stdout": ""}
    assert made.seen == "rc=0"
    assert made.exit_code == 0


def test_a_digest_that_was_never_written_whole_becomes_a_placeholder_and_is_noted() -> None:
    rows = [completion(1, [{"role": "system", "sha": "ffffffffffff"}, ASK], [call("submit")])]
    unit = run_folder(experiment({"t": result("crash")}), **{"tasks/t/agent/steps.jsonl": lines(rows)})
    (rollout,), report = read(unit, harness_training)
    assert "ffffffffffff is not in the file" in str(rollout.trace.payloads[0])
    assert "ffffffffffff" in report.skipped[0].why
    assert rollout.replayability is Replayability.VIEW_ONLY


@pytest.mark.parametrize(
    ("mode", "outcome"),
    [
        ("solved", Outcome.SOLVED),
        ("verified_rejected", Outcome.FAILED_VERIFICATION),
        ("hit_step_cap", Outcome.STEP_CAP),
        ("hit_timeout", Outcome.TIMEOUT),
        ("verify_timeout", Outcome.VERIFY_TIMEOUT),
        ("no_valid_action", Outcome.NO_VALID_ACTION),
        ("crash", Outcome.CRASH),
        ("unscorable_infra", Outcome.INFRA_ERROR),
        ("something_new", Outcome.UNKNOWN),
    ],
)
def test_failure_modes_become_outcomes(mode: str, outcome: Outcome) -> None:
    (rollout,), _ = read(run_folder(experiment({"t": result(mode)})), harness_training)
    assert rollout.outcome is outcome
    assert [event.__class__.__name__ for event in rollout.trace.events] == ["RolloutStarted", "RolloutEnded"]


def test_an_unscorable_rollout_has_no_reward_even_where_the_metrics_say_zero() -> None:
    (rollout,), _ = read(run_folder(experiment({"t": result("verify_timeout")})), harness_training)
    assert rollout.reward is None


def test_a_task_that_never_ran_is_not_run_and_names_what_is_missing() -> None:
    (rollout,), _ = read(run_folder(experiment({"t": None}, crash_reason="worker died")), harness_training)
    assert rollout.outcome is Outcome.NOT_RUN
    assert rollout.replayability is Replayability.VIEW_ONLY
    assert rollout.missing.startswith("model: ")
    assert facts_of(rollout)["experiment"]["crash_reason"] == "worker died"


def test_a_run_that_crashed_before_any_rollout_is_refused_with_its_reason() -> None:
    with pytest.raises(FormatRefused, match="no rollout: worker died"):
        read(run_folder(experiment({}, crash_reason="worker died")), harness_training)


def test_the_experiment_is_one_object_with_decision_certificate_index_and_memo() -> None:
    document = experiment({"t": result("solved"), "u": result("crash")})
    unit = run_folder(document, **{INDEX: lines([{"experiment_id": "run-1", "verdict": "rejected"}]), MEMO: "- memo\n"})
    first, second = read(unit, harness_training)[0]
    facts: Any = facts_of(first)["experiment"]
    assert facts is facts_of(second)["experiment"]
    assert facts["decision"] == document["decision"]
    assert facts["determinism_certification"] == {"t": {"verdict": "forked"}}
    assert (facts["indexed"], facts["index"]["verdict"], facts["learning"]) == (True, "rejected", "- memo\n")
    assert (first.experiment, first.revision, first.case, second.case) == ("run-1", "c0ffee", "t", "u")
    assert [rollout.source.position for rollout in (first, second)] == [0, 1]


def test_conditions_come_from_the_configuration_and_the_rest_is_unknown() -> None:
    (rollout,), _ = read(solved_run(), harness_training)
    assert rollout.budgets == {"steps": 4.0, "output": 72.0}
    assert rollout.manifest.value("seeds.seed") == 7
    assert rollout.manifest.value("sampling.temperature") == 0.0
    unknown = {field.name: gap.reason for field, gap in rollout.manifest.unknowns()}
    assert "not the server behind them" in unknown["engine.name"]
    assert rollout.replayability is Replayability.RECORDED
    assert rollout.missing.startswith("environment: ")


def test_a_verdict_is_a_verification_with_the_verifiers_output() -> None:
    files = {
        "tasks/t/shell_verifier/test-stdout.txt": "all good\n",
        "tasks/t/determinism_check/shell_verifier/test-stdout.txt": "the check's\n",
    }
    (rollout,), _ = read(solved_run(**files), harness_training)
    (verdict,) = events_of(rollout, Verification)
    assert (verdict.passed, verdict.reward, verdict.output) == (True, 1.0, "all good\n")


def test_an_action_that_the_harness_added_is_told_from_what_the_model_asked() -> None:
    rows = [
        completion(1, [SYSTEM, ASK], [call("run", command="mkdir data")]),
        {"event": "policy_rule", "t_sec": 1.1, "step_index": 1, "rule": "check_writable", "fired": True},
        step(1),
        {**step(2), "call_index": 1},
    ]
    added = {"action": {"kind": "run", "command": "test -w ."}, "audit_hash": "f", "timed_out": False}
    files = {
        "tasks/t/agent/steps.jsonl": lines(rows),
        "tasks/t/infra/determinism_chain.jsonl": lines([added, CHAIN[0]]),
    }
    (rollout,), _ = read(run_folder(experiment({"t": result("hit_step_cap")}), **files), harness_training)
    guard, asked = events_of(rollout, ToolCall)
    assert guard.arguments == {"command": "test -w ."}
    assert guard.extra["added_by_harness"] is True
    assert asked.arguments == {"command": "mkdir data"}
    assert {guard.step, asked.step} == {0}
    (rule,) = events_of(rollout, HarnessAction)
    assert rule.mechanism == "check_writable"
    assert rollout.manifest.value("harness.mechanisms") == ["check_writable"]


def test_without_a_chain_an_action_that_cannot_be_told_is_not_invented() -> None:
    rows = [completion(1, [SYSTEM, ASK], [call("run", command="ls")]), step(1), {**step(2), "call_index": 1}]
    (rollout,), _ = read(file_unit("steps.jsonl", lines(rows)), harness_training)
    assert [made.name for made in events_of(rollout, ToolCall)] == ["run", "unnamed"]


def test_a_rule_that_did_not_fire_names_no_mechanism() -> None:
    rows = [
        completion(1, [SYSTEM, ASK], [call("submit")]),
        {"event": "policy_rule", "t_sec": 1.1, "step_index": 1, "rule": "guard", "fired": False},
        {"event": "observation_clipped", "t_sec": 1.2, "step_index": 1, "kept_chars": 10},
        {"event": "no_valid_action_step", "t_sec": 1.3, "step_index": 1},
    ]
    (rollout,), _ = read(file_unit("steps.jsonl", lines(rows)), harness_training)
    assert [(made.name, made.mechanism) for made in events_of(rollout, HarnessAction)] == [
        ("policy_rule", None),
        ("observation_clipped", "observation_clipped"),
        ("no_valid_action_step", None),
    ]


def test_a_rejected_completion_says_why_and_its_retry_is_the_same_step() -> None:
    rows = [
        completion(1, [SYSTEM, ASK], [], content="no call"),
        {"event": "action_parse_failed", "t_sec": 1.1, "step_index": 1, "error": "MissingToolCall", "detail": "none"},
        completion(1, [SYSTEM, ASK], [{"call_index": 0, "name": "run", "raw_arguments": '{"a":', "args_error": "cut"}]),
    ]
    rows[2]["attempt_index"] = 1
    (rollout,), _ = read(file_unit("steps.jsonl", lines(rows)), harness_training)
    first, second = events_of(rollout, ModelCall)
    assert first.rejected == "MissingToolCall: none"
    assert (second.step, second.attempt, second.tool_calls[0].raw) == (0, 1, '{"a":')
    assert second.tool_calls[0].arguments is None
    assert rollout.replayability is Replayability.VIEW_ONLY
    assert rollout.missing.startswith("harness: ")


def test_a_superseded_attempt_is_kept_apart_from_the_counted_one() -> None:
    files = {"tasks/t/agent/steps.execution-drift.jsonl": lines(EPISODE[:2])}
    counted, superseded = read(solved_run(**files), harness_training)[0]
    assert (counted.outcome, superseded.outcome) == (Outcome.SOLVED, Outcome.INTERRUPTED)
    assert superseded.tags == ("superseded attempt",)
    assert superseded.reward is None


def test_half_a_line_at_the_end_loses_only_itself() -> None:
    unit = file_unit("steps.jsonl", lines(EPISODE) + b'{"event": "step_compl')
    (rollout,), report = read(unit, harness_training)
    assert rollout.outcome is Outcome.SOLVED
    assert [note.where for note in report.skipped] == ["steps.jsonl line 5"]


def test_nul_and_lone_surrogates_pass() -> None:
    rows = [completion(1, [SYSTEM, {"role": "user", "content": "\x00 \udcb2", "sha": "1"}], [call("submit")])]
    (rollout,), _ = read(file_unit("steps.jsonl", lines(rows)), harness_training)
    assert rollout.trace.payloads[1] == {"role": "user", "content": "\x00 \udcb2"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("runs.jsonl", lines([{"experiment_id": "a", "git_commit_hash": "b", "verdict": None}] * 2)),
        ("learning.md", "# Learning memo\n"),
    ],
)
def test_the_companions_of_a_tree_alone_are_refused_with_what_would_help(name: str, content: Any) -> None:
    with pytest.raises(FormatRefused, match="import the experiments folder"):
        read(file_unit(name, content), harness_training)


def test_an_experiment_file_alone_gives_its_outcomes() -> None:
    unit = file_unit("experiment.json", experiment({"t": result("solved"), "u": None}))
    assert [rollout.outcome for rollout in read(unit, harness_training)[0]] == [Outcome.SOLVED, Outcome.NOT_RUN]


def test_a_run_without_its_experiment_is_read_from_its_steps() -> None:
    (rollout,), report = read(folder_unit("run-1", {"tasks/t/agent/steps.jsonl": lines(EPISODE)}), harness_training)
    assert (rollout.case, rollout.outcome) == ("t", Outcome.SOLVED)
    assert report.skipped[0].where == "experiment.json"


def record(unit: Any) -> Any:
    (found,) = experiments(recognise(unit), Report())
    return found


def run_in_tree(document: dict[str, Any], memo: str = "", **row: Any) -> Any:
    """A run with its row of the index, in a tree with a memo."""
    rows = lines([{"experiment_id": "run-1", **row}] if row else [])
    own = memo_lines(memo.encode(), "run-1", document["git_commit_hash"])
    unit = run_folder(document, **{INDEX: rows, MEMO: own})
    return replace(unit, beside={MEMO: InputFile.of_bytes(MEMO, memo.encode())})


def test_a_run_is_an_experiment_with_its_decision_and_certificates_verbatim() -> None:
    document = experiment({"t": result("solved")}, baseline_experiment_id="run-0", started_at="2026-01-01T00:00:00Z")
    found = record(run_in_tree(document, measurement_identity_digest="d" * 64))
    assert (found.external_id, found.kind, found.revision, found.parent_revision) == (
        "run-1",
        "candidate",
        "c0ffee",
        "beef",
    )
    assert (found.baseline, found.verdict, found.reason) == ("run-0", "rejected", "regressed_baseline_tasks")
    assert (found.decision, found.certification) == (document["decision"], document["determinism_certification"])
    assert (found.identity, found.facts["indexed"], found.facts["inherited_forks"]) == ("d" * 64, True, ["t"])


def test_a_promoted_run_is_a_baseline_with_a_decision() -> None:
    found = record(run_in_tree(experiment({}, kind="baseline", decision={"outcome": "promoted", "reason": "better"})))
    assert (found.kind, found.verdict, found.reason) == ("baseline", "promoted", "better")


def test_a_superseded_attempt_is_in_no_row_and_decides_nothing() -> None:
    found = record(run_in_tree(experiment({}, kind=None, decision=None, determinism_certification=None)))
    assert (found.kind, found.verdict, found.reason, found.facts["indexed"]) == (None, None, "", False)


def test_a_fork_with_its_evidence_is_not_inherited() -> None:
    evidence = {"tasks/t/infra/determinism_fork.json": {"action_index": 1}}
    assert "inherited_forks" not in record(run_folder(experiment({}), **evidence)).facts


def test_the_change_is_the_memos_line_on_the_commit_and_the_memo_is_whole() -> None:
    memo = "# Learning memo\n\n- `c0ffee` shorter: caps commands\n  - rejected\n- `aaaaaa` other: x\n"
    found = record(run_in_tree(experiment({}), memo, verdict="rejected"))
    assert (found.mechanism, found.memo) == ("shorter: caps commands", memo)


def test_a_memos_line_on_a_run_that_could_not_be_scored_names_no_change() -> None:
    memo = "# Learning memo\n\n- `c0ffee` exp-20260101-120000-1: crashed (exitcode=7)\n"
    assert record(run_in_tree(experiment({}), memo)).mechanism == ""


def test_a_steps_file_alone_states_no_experiment() -> None:
    assert list(experiments(recognise(file_unit("steps.jsonl", lines(EPISODE))), Report())) == []
