"""The verdict: the case's tests run in the sandbox once the agent has stopped."""

from __future__ import annotations

import time
from collections.abc import Callable

from harnesslab.core.running.cases import CaseDefinition, content
from harnesslab.core.running.ports import Execution, Sandbox
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import TestResult, Verification
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended

FOLDER = ".verifier"
SHOWN = 2000
"""Characters of a failed test's output that are kept."""


def verify(episode: DrivenEpisode) -> Outcome | None:
    """Run the case's tests and record the verdict; None where the case has none. Raises `Ended` where it is stopped."""
    if not episode.recipe.case.verifier.tests:
        return None
    at = episode.at()
    tests, timed_out = run_tests(episode.sandbox, episode.recipe.case, episode.stopped)
    if episode.stopped():
        raise Ended(Outcome.INTERRUPTED, "stopped while it was judged")
    passed = None if timed_out else all(test.passed for test in tests)
    episode.add(
        Verification(
            step=max(episode.step, 0),
            passed=passed,
            reward=None if passed is None else float(passed),
            tests=tuple(tests),
            error="the time to verify was used up" if timed_out else None,
            at=at,
            latency=episode.at() - at,
        )
    )
    return outcome_of(passed)


def run_tests(sandbox: Sandbox, case: CaseDefinition, stopped: Callable[[], bool]) -> tuple[list[TestResult], bool]:
    """Run a case's tests on what lies in a sandbox: (results, whether the time to verify was used up)."""
    verifier, began = case.verifier, time.monotonic()
    if verifier.files:
        sandbox.write({f"{FOLDER}/{name}": content(text) for name, text in verifier.files.items()})
    tests: list[TestResult] = []
    timed_out = False
    for name, command in sorted(verifier.tests.items()):  # a stored recipe keeps no other order
        left = case.budgets.verify - (time.monotonic() - began)
        if left <= 0:
            timed_out = True
        if timed_out:
            tests.append(TestResult(name=name, passed=None, detail="not run: the time to verify was used up"))
            continue
        done = sandbox.run(command, timeout=left, stopped=stopped)
        if stopped():
            break
        timed_out = done.timed_out
        tests.append(_result(name, done))
    return tests, timed_out


def outcome_of(passed: bool | None) -> Outcome:
    """Return the outcome of a verdict."""
    if passed is None:
        return Outcome.VERIFY_TIMEOUT
    return Outcome.SOLVED if passed else Outcome.FAILED_VERIFICATION


def _result(name: str, done: Execution) -> TestResult:
    if done.timed_out:
        return TestResult(name=name, passed=None, detail="timed out")
    passed = done.exit_code == 0 and done.error is None
    shown = done.output.decode(errors="replace")[:SHOWN]
    return TestResult(
        name=name, passed=passed, detail="" if passed else done.error or shown or f"exit {done.exit_code}"
    )
