"""Traces that nobody here wrote: they import whole, their seals verify, and reading twice gives the same."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import ModelCall, RolloutStarted, ToolCall, from_json, to_json
from harnesslab.core.trace.usage import total
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.registry import recognise
from tests.formats.making import facts_of

TRACES = Path(__file__).parents[2].parent / "shared" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.exists(), reason="the real traces are not beside this checkout")
EDGE = ("harbor-index_NUL-chars.json", "harbor-index_aborted-gemini.json", "harbor-index_timestamps-not-monotonic.json")
PATHS = (
    "harness-training",
    "harbor-trial",
    "harbor-atif",
    "harbor-index",
    "inspect",
    *(f"edge/{name}" for name in EDGE),
)


def imported(path: str) -> tuple[dict[str, list[Recording]], dict[str, str]]:
    """Return (recordings by unit, refusals by unit) of a file or folder below the traces."""
    found: dict[str, list[Recording]] = {}
    refused: dict[str, str] = {}
    for given in discover([TRACES / path]):
        for unit in expand(given):
            key = unit.name if unit.name not in found else f"{unit.name} {len(found)}"
            try:
                found[key] = list(recognise(unit).importer.read(unit, Report()))
            except FormatRefused as refusal:
                refused[key] = refusal.sentence
    return found, refused


once = cache(imported)


def rollouts(path: str) -> list[Recording]:
    return [rollout for group in once(path)[0].values() for rollout in group]


@pytest.mark.parametrize("path", PATHS)
def test_every_trace_is_sealed_and_reading_it_twice_gives_the_same(path: str) -> None:
    again = [rollout for group in imported(path)[0].values() for rollout in group]
    assert len(again) == len(rollouts(path))
    for first, second in zip(rollouts(path), again, strict=True):
        recorded = seals.seals(first.trace)
        seals.verify(second.trace, recorded)
        assert first.manifest.digest == second.manifest.digest
        assert canonical_bytes(first.facts) == canonical_bytes(second.facts)
        started = first.trace.events[0]
        assert isinstance(started, RolloutStarted)
        assert started.manifest == first.manifest.digest


@pytest.mark.parametrize("path", PATHS)
def test_every_event_survives_its_json(path: str) -> None:
    for rollout in rollouts(path):
        for event in rollout.trace.events:
            document = to_json(event)
            assert canonical_bytes(to_json(from_json(document))) == canonical_bytes(document)


@pytest.mark.parametrize("path", PATHS)
def test_every_rollout_names_what_keeps_it_from_a_better_grade(path: str) -> None:
    for rollout in rollouts(path):
        boundary, _, why = rollout.missing.partition(": ")
        assert boundary in ("model", "harness", "environment")
        assert why
        assert rollout.case
        assert all(gap.reason for _, gap in rollout.manifest.unknowns())


def test_the_experiments_tree_has_its_22_runs_with_all_their_rollouts() -> None:
    runs, _ = once("harness-training")
    found = [rollout for group in runs.values() for rollout in group]
    assert len(runs) == 22
    assert Counter(rollout.outcome for rollout in found) == {
        Outcome.SOLVED: 66,
        Outcome.STEP_CAP: 112,
        Outcome.FAILED_VERIFICATION: 16,
        Outcome.VERIFY_TIMEOUT: 4,
        Outcome.INFRA_ERROR: 4,
        Outcome.CRASH: 2,
        Outcome.NOT_RUN: 16,
        Outcome.INTERRUPTED: 1,
    }
    assert sum(isinstance(event, ModelCall) for rollout in found for event in rollout.trace.events) == 614
    assert sum(isinstance(event, ToolCall) for rollout in found for event in rollout.trace.events) == 622
    assert Counter(rollout.replayability for rollout in found) == {
        Replayability.RECORDED: 199,
        Replayability.VIEW_ONLY: 22,
    }


def test_the_index_and_decisions_of_the_experiments_are_taken_verbatim() -> None:
    facts = [facts_of(group[0])["experiment"] for group in once("harness-training")[0].values()]
    assert Counter(item["indexed"] for item in facts) == {True: 19, False: 3}
    verdicts = Counter((item.get("index") or {}).get("verdict") for item in facts)
    assert verdicts == {"promoted": 4, "rejected": 7, "invalid_infra": 2, None: 9}
    crashed = [item for item in facts if item["crash_reason"]]
    assert len(crashed) == 2
    forked = [item for item in facts if "forked" in str(item["determinism_certification"])]
    assert len(forked) == 5


def test_the_companions_of_the_experiments_are_refused_with_a_reason() -> None:
    _, refused = once("harness-training")
    assert "RUN.md" in refused
    assert not {"runs.jsonl", "learning.md"} & refused.keys()


@pytest.mark.parametrize(
    ("name", "count", "solved"),
    [
        ("vivaria_oxdna_simple_6-epochs.eval", 6, 6),
        ("docent_intercode-ctf.eval", 15, 9),
        ("2025-09-23T08-09-58-04-00_popularity_DN2wbX2ZvACsBpjwptzBRo.eval", 100, 63),
        ("2025-09-23T08-09-58-04-00_security-guide_LuxZJVwvymC3S3SyoJczxB.eval", 16, 11),
        ("2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval", 10, 0),
        ("2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval", 10, 8),
        ("2024-11-05T13-31-45-05-00_input-task_8zXjbRzCWrL9GXiXo2vus9.json", 1, 1),
        ("2025-05-12T20-27-36-04-00_browser.json", 1, 1),
        ("log_streaming.eval", 4, 3),
        ("log_message_deduplication.eval", 1, 0),
        ("log_formats.json", 1, 0),
        ("log_formats.eval", 1, 0),
        ("log_images.json", 1, 0),
        ("log_tool_call_error.json", 1, 0),
        ("skeleton_legacy_steps.json", 1, 1),
    ],
)
def test_inspect_logs_have_their_samples_and_verdicts(name: str, count: int, solved: int) -> None:
    found = once("inspect")[0][name]
    assert len(found) == count
    assert sum(rollout.outcome is Outcome.SOLVED for rollout in found) == solved


def test_epochs_are_trials() -> None:
    found = once("inspect")[0]["vivaria_oxdna_simple_6-epochs.eval"]
    assert [(rollout.case, rollout.trial, rollout.source.position) for rollout in found] == [
        ("default", trial, trial) for trial in range(6)
    ]


def test_inspect_usage_agrees_with_the_log_s_own_totals() -> None:
    for rollout in once("inspect")[0]["vivaria_oxdna_simple_6-epochs.eval"]:
        calls = [event for event in rollout.trace.events if isinstance(event, ModelCall)]
        counted = total([call.usage for call in calls if call.usage])
        stated = facts_of(rollout)["sample"]["model_usage"]["testing-dummy"]
        assert counted.output == stated["output_tokens"]
        assert counted.input == stated["total_tokens"] - stated["output_tokens"]


def test_inspect_logs_without_samples_are_refused_with_their_status() -> None:
    _, refused = once("inspect")
    assert len(refused) == 3
    statuses = Counter(sentence.split("its status is ")[1].split(" ")[0] for sentence in refused.values())
    assert statuses == {"success": 1, "error": 1, "cancelled": 1}


def test_a_cut_inspect_archive_gives_its_whole_samples(tmp_path: Path) -> None:
    name = "vivaria_oxdna_simple_6-epochs.eval"
    data = (TRACES / "inspect" / name).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) * 2 // 3])
    (unit,) = discover([tmp_path / name])
    report = Report()
    found = list(recognise(unit).importer.read(unit, report))
    assert [rollout.trial for rollout in found] == [0, 1, 2, 3]
    assert {"sample default epoch 5", "sample default epoch 6"} <= {note.where for note in report.skipped}


def test_the_usaco_task_was_solved_twice_in_21_trials() -> None:
    found = rollouts("harbor-index/usaco-assign-cows-to-barns")
    assert Counter(rollout.outcome for rollout in found) == {Outcome.SOLVED: 2, Outcome.FAILED_VERIFICATION: 19}


def test_harbor_trials_have_their_verdicts() -> None:
    (trial,) = rollouts("harbor-trial")
    assert (trial.case, trial.outcome, trial.reward) == ("gpt-ioi-circuit", Outcome.FAILED_VERIFICATION, 0.0)
    assert (trial.harness, trial.revision, trial.trace.steps) == ("claude-code", "2.1.79", 127)
    rows = once("harbor-atif")[0]["nemo-gym_harbor_agent_3-trials.jsonl"]
    assert [rollout.reward for rollout in rows] == [0.0, 1.0, 0.0]


def test_every_atif_trajectory_is_read() -> None:
    found = [rollout for rollout in rollouts("harbor-atif") if rollout.source.format == "atif"]
    assert len(found) == 16
    assert sum(rollout.trace.steps for rollout in found) == 48
