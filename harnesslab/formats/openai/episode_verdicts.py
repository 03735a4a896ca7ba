"""What a NeMo-Gym row states of its episode as a whole: how it ended, its verdict, its tests and totals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import TestResult, Verification
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.values import items, mapping, without_nulls


def outcome_of(
    row: Mapping[str, JSON], response: Mapping[str, JSON], reward: float | None
) -> tuple[Outcome, str | None]:
    """Return the outcome and, where the verdict doesn't count, why."""
    fault = row.get("error_kind") or row.get("verifier_error") or row.get("evaluation_error") or response.get("error")
    if row.get("mask_sample") is True:
        return Outcome.INFRA_ERROR, f"masked by its source{f': {fault}' if fault else ''}"
    if row.get("eval_timed_out") is True:
        return Outcome.VERIFY_TIMEOUT, "the evaluation timed out"
    if row.get("evaluation_completed") is False:
        return Outcome.UNKNOWN, "the evaluation was not completed, so its reward is no verdict"
    if fault and reward is None:
        return Outcome.INFRA_ERROR, str(fault)
    if reward is not None and _full(reward):
        return Outcome.SOLVED, None
    if row.get("agent_timed_out") is True or row.get("container_timed_out") is True:
        return Outcome.TIMEOUT, "the agent timed out"
    if fault:
        return Outcome.INFRA_ERROR, str(fault)
    return (Outcome.UNKNOWN, None) if reward is None else (Outcome.FAILED_VERIFICATION, None)


def _full(reward: float) -> bool:
    return reward >= 1 or math.isclose(reward, 1, rel_tol=1e-9)


def add_verdict(
    builder: TraceBuilder, row: Mapping[str, JSON], outcome: Outcome, reward: float | None, why: str | None
) -> None:
    """Append the verdict; one that doesn't count is kept without saying passed or failed."""
    if reward is None and "resolved" not in row:
        return
    verdicts = {Outcome.SOLVED: True, Outcome.FAILED_VERIFICATION: False}
    step = builder.events[-1].step
    scores = without_nulls(
        {key: row.get(key) for key in ("resolved", "patch_exists", "f2p", "p2p", "exact_accuracy", "rmsle")}
    )
    kept: dict[str, Any] = {"scores": scores, "tests": _tests(row), "error": why if outcome not in verdicts else None}
    builder.add(Verification(step=step, passed=verdicts.get(outcome), reward=reward, **kept))


def _tests(row: Mapping[str, JSON]) -> tuple[TestResult, ...]:
    """Return the results of a SWE-bench report's tests, which it lists by what was expected of them."""
    found: list[TestResult] = []
    for report in mapping(mapping(row.get("metadata")).get("eval_report")).values():
        for group, results in mapping(mapping(report).get("tests_status")).items():
            for name, passed in (("success", True), ("failure", False)):
                tests = items(mapping(results).get(name))
                found.extend(TestResult(str(test), passed=passed, detail=group) for test in tests)
    return tuple(found)


def totals_of(response: Mapping[str, JSON], reward: float | None) -> Totals:
    """Return what a row states of its episode: the usage of all its calls together, and its verdict."""
    output = items(response.get("output"))
    passed = None if reward is None else _full(reward)
    counted = usage.openai(response.get("usage"))
    return Totals.of(counted, messages=len(output), kept_messages=len(output), rows="output items", passed=passed)
