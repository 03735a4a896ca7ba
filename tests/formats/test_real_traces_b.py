"""Traces that other people's tools wrote: what is imported of each file, and why the others are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import Fidelity
from harnesslab.formats import registry
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from tests.formats.building import actions, model_calls, tool_calls, user_turns

TRACES = Path(__file__).parents[2].parent / "shared" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.exists(), reason="the real traces are not beside this checkout")

IMPORTED = {
    "openai-chat/tau-bench/MockAirlineDomainEnv-few_shot.jsonl": ("chat-log", 19),
    "openai-chat/who-and-when/algorithm-generated_1.json": ("chat-log", 1),
    "openai-chat/who-and-when/algorithm-generated_10.json": ("chat-log", 1),
    "openai-chat/who-and-when/hand-crafted_1.json": ("chat-log", 1),
    "openai-chat/who-and-when/hand-crafted_14.json": ("chat-log", 1),
    "openai-chat/who-and-when/hand-crafted_18.json": ("chat-log", 1),
    "swe-agent/ft_xml_example.jsonl": ("chat-log", 3),
    "openai-responses/anyswe_claude_code_astropy-12907_k5.jsonl": ("openai-responses", 5),
    "openai-responses/anyswe_hermes_astropy-12907_k5.jsonl": ("openai-responses", 5),
    "openai-responses/anyswe_opencode_astropy-12907_k5.jsonl": ("openai-responses", 5),
    "openai-responses/anyterminal_hermes_5-tasks.jsonl": ("openai-responses", 5),
    "openai-responses/newton_bench.jsonl": ("openai-responses", 5),
    "openai-responses/workplace_assistant.jsonl": ("openai-responses", 5),
    "edge/nemo-gym_deepswe_ansi.jsonl": ("openai-responses", 5),
    "edge/nemo-gym_swebench_huge-string.jsonl": ("openai-responses", 5),
    "mini-swe-agent/nemo-gym_mini_swe_agent_2.rollouts.jsonl": ("openai-responses", 5),
    "mini-swe-agent/astropy__astropy-12907.traj.json": ("mini-swe-agent", 1),
    "mini-swe-agent/django__django-11163.traj.json": ("mini-swe-agent", 1),
    "mini-swe-agent/django__django-16255.traj.json": ("mini-swe-agent", 1),
    "mini-swe-agent/github_issue.traj.json": ("mini-swe-agent", 1),
    "mini-swe-agent/local.traj.json": ("mini-swe-agent", 1),
    "mini-swe-agent/sphinx-doc__sphinx-9258.traj.json": ("mini-swe-agent", 1),
    "edge/mini-swe_astropy-13977_ansi.traj.json": ("mini-swe-agent", 1),
    "edge/mini-swe_scikit-learn-25102_huge-string.traj.json": ("mini-swe-agent", 1),
    "edge/swe-agent_BabyTimeCapsule_ansi.traj": ("swe-agent", 1),
    "claude-code/1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl": ("claude-code", 1),
    "claude-code/30530d66-37fb-4f3b-aa5f-d92b6a8afae2.jsonl": ("claude-code", 1),
    "claude-code/4c289ca8-f8bb-4588-8400-88b78beb784d.jsonl": ("claude-code", 1),
    "claude-code/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl": ("claude-code", 1),
    "claude-code/agent-test-hash-123.jsonl": ("claude-code", 1),
    "claude-code/claude-code-log_representative_messages.jsonl": ("claude-code", 1),
    "claude-code/simonw_sample_session.json": ("claude-code", 1),
    "claude-code/simonw_sample_session.jsonl": ("claude-code", 1),
    "edge/claude-code-log_edge_cases.jsonl": ("claude-code", 2),
    "codex/codex_large.jsonl": ("codex", 1),
    "codex/codex_small.jsonl": ("codex", 1),
    "pi-session/pi_large-session.jsonl": ("coding-session", 1),
    "edge/droid_blank-lines.jsonl": ("coding-session", 1),
    "openhands/openhands_basic.json": ("openhands", 1),
    "openhands/openhands_basic_gui_mode.json": ("openhands", 1),
}
STEPS = {  # as the files' own README counts them
    "6e44b9__sweagenttestrepo-1c2844.traj": 5,
    "ctf_crypto_BabyEncryption.traj": 16,
    "ctf_crypto_katy.traj": 18,
    "ctf_rev_rock.traj": 12,
    "function_calling_simple.traj": 5,
    "humanevalfix-python-0.traj": 5,
    "marshmallow-1867__default_src.traj": 14,
    "marshmallow-1867__default_sys-env_cursors_window100.traj": 12,
    "marshmallow-1867__default_sys-env_window100.traj": 11,
    "marshmallow-1867__function_calling__install-1.traj": 11,
    "marshmallow-1867__function_calling_replace__install-1.traj": 11,
    "marshmallow-1867__xml_sys-env_window100.traj": 11,
    "pydantic__pydantic.acb0f10f.pr_8316.traj": 22,
    "pydicom__pydicom-1458.traj": 12,
    "swe-agent__test-repo-i1.traj": 5,
}
IMPORTED |= {f"swe-agent/{name}": ("swe-agent", 1) for name in STEPS}
REFUSED = {
    "otel/agentevals_helm.jaeger.json": "a Jaeger span export",
    "otel/agentevals_helm_2.jaeger.json": "a Jaeger span export",
    "otel/agentevals_tempo_batches.json": "a Grafana Tempo span export",
    "otel/open-agent-traces_otlp.json": "an OpenTelemetry span export (OTLP)",
    "otel/monocle_be1db024.json": "a dump of OpenTelemetry spans",
    "otel/monocle_*.json": "a ",
    "otel/openinference_vercel-v6_all-spans.json": "a list of OpenTelemetry spans",
    "otel/strands-evals_*.json": "a ",
    "langfuse/*.json": "a Langfuse trace export",
    "harness-matrix/*.md": "a Markdown text",
    "harness-training/*_history.json": "a history of commits or candidates",
    "harness-training/*candidates.json": "a history of commits or candidates",
    "harness-training/pull_request_commits.json": "a history of commits or candidates",
    "harness-training/auto_cycle_golden.json": "expected values of a test",
    "harness-training/harness-experiment_task_duration_priors.json": "a table of task durations",
    "harness-training/harness_result.json": "a table of measured results",
    "harness-training/*.yaml": "a YAML file",
    "harbor-trial/*/task.toml": "a TOML file",
    "harbor-index/*/aft-report_*.json": "an analysis of a trial",
    "openhands/openhands_resolver_output.jsonl": "OpenHands evaluation output",
    "openclaw/*.jsonl": "OpenClaw telemetry",
    "mini-swe-agent/gemini-3-pro_results_summary.json": "a summary of results per instance",
    "swe-agent/pydicom__pydicom-1458.all_preds.jsonl": "SWE-bench predictions",
    "edge/skeleton_empty.json": "a test case with its expected result",
    "edge/monocle_teamsai_concatenated.json": "several JSON documents one after another",
    "edge/qwen_truncated-line.jsonl": "several JSON documents one after another",
    "edge/vscode_workspace0.conversation.invalid.json": "not valid JSON: Expecting value at line 169, column 29",
}


def unit(path: str) -> Unit:
    file = InputFile.of_path(TRACES / path)
    return Unit(file.path, {file.path: file})


def read(path: str, report: Report | None = None) -> list[Recording]:
    found = registry.recognise(unit(path))
    return list(found.importer.read(found.unit, report or Report()))


def rows(path: str) -> Iterator[Any]:
    for line in (TRACES / path).read_text().splitlines():
        if line.strip():
            yield json.loads(line)


@pytest.mark.parametrize("path", IMPORTED)
def test_a_file_is_imported_whole_and_its_seals_hold_and_repeat(path: str) -> None:
    name, count = IMPORTED[path]
    assert name == registry.recognise(unit(path)).importer.NAME
    first = read(path)
    assert [recording.source.position for recording in first] == list(range(count))
    heads = []
    for recording in first:
        sealed = seals.seals(recording.trace)
        seals.verify(recording.trace, sealed)
        heads.append(sealed[-1])
        assert recording.missing
        assert recording.replayability is not Replayability.RECORDED
    assert [seals.seals(recording.trace)[-1] for recording in read(path)] == heads


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_file_is_refused_by_what_it_is(pattern: str) -> None:
    found = sorted(TRACES.glob(pattern))
    assert found
    for file in found:
        with pytest.raises(FormatRefused) as refusal:
            registry.recognise(unit(file.relative_to(TRACES).as_posix()))
        assert refusal.value.what.startswith(REFUSED[pattern])
        assert refusal.value.hint


@pytest.mark.parametrize("name", STEPS)
def test_each_swe_agent_step_has_its_action(name: str) -> None:
    (recording,) = read(f"swe-agent/{name}")
    assert len(model_calls(recording)) == len(tool_calls(recording)) == STEPS[name]
    assert recording.outcome is Outcome.UNKNOWN


def test_each_mini_swe_agent_reply_has_its_usage_or_none_is_recorded() -> None:
    (recording,) = read("mini-swe-agent/sphinx-doc__sphinx-9258.traj.json")
    calls = model_calls(recording)
    assert len(calls) == 108  # as its statistics count
    assert all(call.usage is not None for call in calls)
    rejected = [call for call in calls if call.rejected]
    reminders = [action for action in actions(recording) if "EXACTLY ONE action" in str(action.detail)]
    assert len(rejected) == len(reminders) == 10


def test_claude_code_replies_are_counted_by_message() -> None:
    for path, (name, _) in IMPORTED.items():
        if name != "claude-code" or not path.endswith(".jsonl") or path.startswith("edge/"):
            continue
        replies = [row["message"] for row in rows(path) if row["type"] == "assistant"]
        ids = [reply.get("id") for reply in replies]
        distinct = len(set(filter(None, ids))) + ids.count(None)
        uses = [block for reply in replies for block in reply["content"] if block["type"] == "tool_use"]
        (recording,) = read(path)
        handed = sum(event.__class__.__name__ == "SubagentCall" for event in recording.trace.events)
        assert len(model_calls(recording)) == distinct
        assert len(tool_calls(recording)) + handed == len(uses)


def test_a_claude_code_session_shows_its_two_sub_agents() -> None:
    (recording,) = read("claude-code/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl")
    assert {call.agent for call in model_calls(recording)} == {"", "sidechain/0", "sidechain/1"}


def test_the_bad_lines_of_the_edge_cases_are_listed() -> None:
    report = Report()
    first, second = read("edge/claude-code-log_edge_cases.jsonl", report)
    assert (first.case, second.case) == ("edge_cases", "todowrite_session")
    assert sorted(item.where for item in report.skipped) == [f"line {n}" for n in (10, 11, 13, 14, 15, 16)]


@pytest.mark.parametrize("path", [path for path, (name, _) in IMPORTED.items() if name == "openai-responses"])
def test_rollout_rows_keep_reward_number_and_calls(path: str) -> None:
    numbered = sorted(rows(path), key=lambda row: (row.get("_ng_task_index") or 0, row.get("_ng_rollout_index") or 0))
    for row, recording in zip(numbered, read(path), strict=True):
        assert recording.reward == (row["reward"] if row.get("evaluation_completed", True) else None)
        assert recording.trial_stated == ("_ng_rollout_index" in row)
        if recording.trial_stated:
            assert recording.trial == row["_ng_rollout_index"]
        kinds = [item["type"] for item in row["response"]["output"]]
        assert len(tool_calls(recording)) == kinds.count("function_call")
        assert sum(call.has_result for call in tool_calls(recording)) == kinds.count("function_call_output")


@pytest.mark.parametrize(
    ("harness", "rewards"),
    [("claude_code", [1, 0, 0, 0, 0]), ("hermes", [0, 0, 1, 1, 0]), ("opencode", [1, 0, 1, 1, 1])],
)
def test_five_rollouts_of_one_task_come_in_rollout_order(harness: str, rewards: list[int]) -> None:
    found = read(f"openai-responses/anyswe_{harness}_astropy-12907_k5.jsonl")
    assert {recording.case for recording in found} == {"astropy__astropy-12907"}
    assert [recording.reward for recording in found] == rewards
    assert [recording.outcome is Outcome.SOLVED for recording in found] == [bool(reward) for reward in rewards]


def test_rewards_of_newton_bench_are_kept_exactly() -> None:
    found = [recording.reward for recording in read("openai-responses/newton_bench.jsonl")]
    assert found[1] == 0.9999999999999998
    assert found[4] is not None
    assert found[4] < 0


def test_labelled_failures_keep_their_label() -> None:
    (recording,) = read("openai-chat/who-and-when/hand-crafted_1.json")
    assert recording.outcome is Outcome.FAILED_VERIFICATION
    assert (recording.facts["mistake_agent"], recording.facts["mistake_step"]) == ("WebSurfer", "12")
    assert len(model_calls(recording)) + len(user_turns(recording)) + len(tool_calls(recording)) == 29


def test_no_importer_claims_a_record_of_requests_that_are_rebuilt() -> None:
    for path in ("codex/codex_large.jsonl", "claude-code/simonw_sample_session.jsonl"):
        for recording in read(path):
            assert {call.fidelity for call in model_calls(recording)} == {Fidelity.REBUILT}


def test_a_large_pi_session_keeps_every_message() -> None:
    (recording,) = read("pi-session/pi_large-session.jsonl")
    said = [row["message"] for row in rows("pi-session/pi_large-session.jsonl") if row["type"] == "message"]
    roles = [message["role"] for message in said]
    asked = [block for message in said for block in message["content"] if block["type"] == "toolCall"]
    assert len(model_calls(recording)) == roles.count("assistant")
    assert len(tool_calls(recording)) == len(asked)
    assert sum(call.has_result for call in tool_calls(recording)) == roles.count("toolResult")
    assert len(user_turns(recording)) == roles.count("user")
