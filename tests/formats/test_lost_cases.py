"""Inputs in the shapes that people bring, with their right values: what they state is stored, or it is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome, Recording
from harnesslab.formats import registry
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading.inputs import Report

CASES = Path(__file__).parents[3] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the real traces are not beside this checkout")


def found(name: str, report: Report | None = None) -> Iterator[Recording]:
    for unit in discover([CASES / name]):
        for inner in expand(unit):
            yield from registry.recordings(registry.recognise(inner), report or Report())


def test_trials_without_a_trajectory_have_their_tokens_and_an_exception_beside_a_reward_marks_them() -> None:
    trials = {trial.case: trial for trial in found("b12_harbor_job.zip")}
    counted = [trace_statistics(trial.trace, trial.outcome) for trial in trials.values()]
    assert {(each.input, each.cached, each.output) for each in counted} == {(1000, 200, 50)}
    assert (trials["t3"].outcome, trials["t3"].tags) == (Outcome.SOLVED, ("AgentTimeoutError",))
    assert {name: trial.outcome for name, trial in trials.items()} == {
        "t1": Outcome.SOLVED,
        "t2": Outcome.TIMEOUT,
        "t3": Outcome.SOLVED,
        "t4": Outcome.CRASH,
        "t5": Outcome.FAILED_VERIFICATION,
    }


def test_two_spellings_of_one_name_are_told_apart_and_it_says_so() -> None:
    report = Report()
    cases = [rollout.case for rollout in found("b18_unicode_names.jsonl", report)]
    assert len(set(cases)) == 6
    assert any("told apart" in remark.why for remark in report.remarks)


def test_the_session_of_a_known_agent_is_refused_by_its_name() -> None:
    with pytest.raises(FormatRefused, match="Gemini CLI"):
        list(found("b22_gemini_cli_session.json"))


def test_a_number_of_five_thousand_digits_is_one_clear_sentence() -> None:
    with pytest.raises(FormatRefused, match="no known trace format: a JSON object with the keys a"):
        list(found("bigint.json"))


def test_the_revision_is_in_both_manifests() -> None:
    stated = [next(found(f"plant_revision_{side}.jsonl")).manifest.value("harness.revision") for side in "ab"]
    assert None not in stated
    assert stated[0] != stated[1]
