"""A Harbor trial's `result.json`: how the trial ended, with what, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import TestResult, Verification
from harnesslab.core.trace.stated import Totals
from harnesslab.formats.reading.values import instant, mapping, not_empty, number, objects, seconds, text

TRIAL_KEYS = {"trial_name", "task_name"}
_INFRA = re.compile(
    r"Environment|Docker|Daytona|Modal|Sandbox|Setup|RateLimit|Connection|Unavailable|Download|Upload|Reward|Output"
)
_CANCELLED = re.compile(r"Cancel|KeyboardInterrupt|Interrupt")


def is_trial(document: Mapping[str, JSON]) -> bool:
    """Say whether a document is the result of one Harbor trial."""
    return document.keys() >= TRIAL_KEYS and bool(
        {"verifier_result", "agent_result", "exception_info"} & document.keys()
    )


def reward_of(result: Mapping[str, JSON]) -> float | None:
    """Return the reward: the one of that name, or the only one; None where the verifier gave none."""
    rewards = mapping(mapping(result.get("verifier_result")).get("rewards"))
    if "reward" in rewards:
        return number(rewards["reward"])
    return number(next(iter(rewards.values()))) if len(rewards) == 1 else None


def outcome_of(result: Mapping[str, JSON], reward: float | None) -> Outcome:
    """Say how a trial ended; an exception is never a failure of verification, and no reward is not zero.

    A full reward counts also after an exception, since Harbor still verifies what the agent left.
    """
    if reward is not None and reward >= 1:
        return Outcome.SOLVED
    exception = mapping(result.get("exception_info"))
    if exception:
        return _failure(text(exception.get("exception_type")))
    if reward is not None:
        return Outcome.FAILED_VERIFICATION
    if result and not result.get("finished_at"):
        return Outcome.INTERRUPTED
    return Outcome.UNKNOWN


def _failure(kind: str) -> Outcome:
    if "Timeout" in kind:
        if "Verifier" in kind:
            return Outcome.VERIFY_TIMEOUT
        return Outcome.INFRA_ERROR if _INFRA.search(kind) else Outcome.TIMEOUT
    if _CANCELLED.search(kind):
        return Outcome.INTERRUPTED
    return Outcome.INFRA_ERROR if _INFRA.search(kind) else Outcome.CRASH


def verification(
    result: Mapping[str, JSON], reward: float | None, output: str | None, tests: tuple[TestResult, ...]
) -> Verification | None:
    """Return what the verifier said, or None where it said nothing."""
    rewards = mapping(mapping(result.get("verifier_result")).get("rewards"))
    if reward is None and not rewards and output is None and not tests:
        return None
    ran = mapping(result.get("verifier"))
    return Verification(
        passed=None if reward is None else reward >= 1,
        reward=reward,
        scores=dict(rewards),
        tests=tests,
        output=output,
        at=seconds(instant(result.get("started_at")), instant(ran.get("started_at"))),
        latency=seconds(instant(ran.get("started_at")), instant(ran.get("finished_at"))),
        origin="verifier",
    )


def ctrf_tests(document: JSON) -> tuple[TestResult, ...]:
    """Return the verdicts of a CTRF test report."""
    tests = objects(mapping(mapping(document).get("results")).get("tests"))
    verdicts = {"passed": True, "failed": False}
    return tuple(
        TestResult(
            text(test.get("name")) or "unnamed", verdicts.get(text(test.get("status"))), text(test.get("message"))
        )
        for test in tests
    )


def conditions(result: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the manifest values that a trial's result states."""
    config, info = mapping(result.get("config")), mapping(result.get("agent_info"))
    agent, environment = mapping(config.get("agent")), mapping(config.get("environment"))
    kwargs, model = mapping(agent.get("kwargs")), mapping(info.get("model_info"))
    return {
        "harness.name": text(info.get("name")) or text(agent.get("name")) or None,
        "harness.revision": text(info.get("version")) or None,
        "panel.name": panel_of(result) or None,
        "panel.revision": text(mapping(config.get("task")).get("git_commit_id")) or None,
        "panel.case": text(result.get("task_name")) or None,
        "panel.case_digest": text(result.get("task_checksum")) or None,
        "budgets.steps": number(kwargs.get("max_turns")),
        "budgets.wall": number(agent.get("override_timeout_sec")) or number(agent.get("max_timeout_sec")),
        "model.name": text(agent.get("model_name")) or text(model.get("name")) or None,
        "model.provider": text(model.get("provider")) or None,
        "sampling.temperature": number(kwargs.get("temperature")),
        "environment.platform": text(environment.get("type")) or text(environment.get("import_path")) or None,
        "evaluator.name": "the task's own verifier" if result.get("verifier_result") else None,
    }


def totals(result: Mapping[str, JSON], reward: float | None) -> Totals:
    """Return what a trial's result states of its tokens, cost and verdict."""
    agent = mapping(result.get("agent_result"))
    passed = None if reward is None else reward >= 1
    return Totals.of(usage.harbor(agent), cost=number(agent.get("cost_usd")), passed=passed)


def panel_of(result: Mapping[str, JSON]) -> str:
    """Return the data set a trial's task comes from."""
    return text(result.get("source")) or text(mapping(mapping(result.get("config")).get("task")).get("source"))


def budgets(result: Mapping[str, JSON]) -> dict[str, float]:
    """Return the declared limits of a trial."""
    known = conditions(result)
    return {name: value for name in ("steps", "wall") if (value := number(known[f"budgets.{name}"])) is not None}


def facts_of(result: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the whole result; token ids are held by the events."""
    agent = dict(mapping(result.get("agent_result")))
    details = objects(agent.get("rollout_details"))
    if details:
        agent["rollout_details"] = f"{len(details)} parts, kept with the model calls where they match"
    return not_empty({**result, "agent_result": not_empty(agent)})
