"""Matrices: a cell is an experiment, a trial keeps its checks and calls, and what broke off is no failure."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.core.measuring.experiments import ExperimentKind
from harnesslab.core.running.rollout import Outcome, Recording
from harnesslab.core.trace.events import ModelCall, ToolCall, UserTurn, Verification
from harnesslab.formats.harness_matrix import importer as harness_matrix
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.registry import experiments, recognise
from tests.formats.making import events_of, facts_of, file_unit, read


def trial(number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "cell": "claude",
        "scenario": "s-1",
        "class": "edit",
        "trial": number,
        "started_at": "2026-01-01T00:00:05Z",
        "duration_s": 2.5,
        "outcome": "one_shot",
        "one_shot": True,
        "eventual": True,
        "blocked_only_by_harness": False,
        "settled": {"settled": True},
        "checks": [{"check": "stored_len", "spec": {}, "failure": None}],
        "failures": [],
        "hard_fails": [],
        "wire": {
            "tool_calls": [{"name": "Edit", "outcome": "available"}],
            "tool_errors": [],
            "finish_reasons": ["stop"],
        },
        "usage": {"input": 10, "output": 5, "total": 100, "cost": 0.25, "turns": 1},
        "final_reply": "Done.",
        **more,
    }


def document(*trials: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": {
            "started_at": "2026-01-01T00:00:00Z",
            "stamps": {"_head": {"commit": "af6b"}},
            "trials_per_cell_scenario": 3,
        },
        "scenarios": ["s-1"],
        "scenario_defs": {
            "s-1": {"class": "edit", "turns": [{"prompt": "Change it."}], "budget": {"max_rounds": 8}, "checks": []}
        },
        "cells": {
            "claude": {
                "config": {"harness": "claude", "model": "haiku", "provider": "anthropic"},
                "scenarios": {"s-1": {"class": "edit", "trials": list(trials)}},
            }
        },
    }


def only(row: dict[str, Any]) -> Recording:
    (found,), _ = read(file_unit("m.json", document(row)), harness_matrix)
    return found


def test_a_cell_is_an_experiment_named_by_run_and_cell() -> None:
    found = recognise(file_unit("m.json", document(trial(1), trial(2))))
    (record,) = experiments(found, Report())
    assert (record.external_id, record.kind, record.revision) == ("20260101-000000 claude", ExperimentKind.EVAL, "af6b")
    first, second = found.importer.read(found.unit, Report())
    assert first.experiment == second.experiment == record.external_id
    assert (first.trial, second.trial, first.case, first.model) == (0, 1, "s-1", "haiku")


WIRE = {"settled": False, "why": "wire errors: agent run failed"}


@pytest.mark.parametrize(
    ("row", "outcome", "reward"),
    [
        (trial(), Outcome.SOLVED, 1.0),
        (trial(outcome="recovered", one_shot=False), Outcome.SOLVED, 1.0),
        (trial(outcome="no_action", one_shot=False, eventual=False), Outcome.FAILED_VERIFICATION, 0.0),
        (trial(hard_fails=["marker stored"]), Outcome.FAILED_VERIFICATION, 0.0),
        (trial(outcome="unsettled", one_shot=False, eventual=False, settled=WIRE), Outcome.CRASH, None),
        ({"cell": "claude", "scenario": "s-1", "trial": 1, "skip": True, "why": "no gateway"}, Outcome.NOT_RUN, None),
    ],
)
def test_how_a_trial_ended(row: dict[str, Any], outcome: Outcome, reward: float | None) -> None:
    found = only(row)
    assert (found.outcome, found.reward) == (outcome, reward)


def test_what_broke_off_has_no_verdict() -> None:
    found = only(trial(outcome="unsettled", one_shot=False, eventual=False, settled=WIRE))
    (verdict,) = (event for event in found.trace.events if isinstance(event, Verification))
    assert (verdict.passed, verdict.reward) == (None, None)


def test_why_a_trial_was_skipped_or_broke_off_is_kept() -> None:
    skipped = only({"cell": "claude", "scenario": "s-1", "trial": 1, "skip": True, "why": "no gateway"})
    assert skipped.trace.events[-1].error == "no gateway"  # type: ignore[union-attr]
    assert only(trial(settled=WIRE)).trace.events[-1].error == WIRE["why"]  # type: ignore[union-attr]


def test_turns_calls_reply_and_checks_are_events_and_both_scores_stay() -> None:
    failing = [{"check": "stored_len", "spec": {}, "failure": "3 entries"}, {"check": "kept", "failure": None}]
    calls = [{"name": "Edit", "input": {"path": "a"}, "outcome": "error", "error": "refused"}]
    found = only(trial(one_shot=False, eventual=False, outcome="no_action", checks=failing, debug_calls=calls))
    (said,), (call,), (reply,), (verdict,) = (
        events_of(found, kind) for kind in (UserTurn, ToolCall, ModelCall, Verification)
    )
    assert (said.content, call.arguments, call.error) == ("Change it.", {"path": "a"}, "refused")
    assert (reply.text, reply.usage.input, reply.usage.output) == ("Done.", 95, 5)
    assert [(test.name, test.passed, test.detail) for test in verdict.tests] == [
        ("stored_len", False, "3 entries"),
        ("kept", True, ""),
    ]
    assert verdict.scores == {"one_shot": False, "eventual": False}
    assert facts_of(found)["trial"]["usage"]["cost"] == 0.25


def test_a_call_whose_arguments_were_not_kept_has_its_name() -> None:
    (call,) = events_of(only(trial()), ToolCall)
    assert (call.name, call.arguments, call.has_result) == ("Edit", None, False)
