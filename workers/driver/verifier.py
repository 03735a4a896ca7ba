"""The verdict: the case's tests run in the sandbox once the agent has stopped."""

from __future__ import annotations

from harnesslab.core.events import TestResult, Verification
from harnesslab.core.ports import Execution
from harnesslab.core.rollout import Outcome
from workers.driver.episode import Ended, Episode

FOLDER = ".verifier"
SHOWN = 2000
"""Characters of a failed test's output that are kept."""


def verify(episode: Episode) -> Outcome | None:
    """Run the case's tests and record the verdict; None where the case has none. Raises `Ended` where it is stopped."""
    verifier, budgets = episode.recipe.case.verifier, episode.recipe.case.budgets
    if not verifier.tests:
        return None
    if verifier.files:
        episode.sandbox.write(
            {f"{FOLDER}/{name}": text.encode("utf-8", "surrogateescape") for name, text in verifier.files.items()}
        )
    began, at = episode.at(), episode.at()
    tests: list[TestResult] = []
    timed_out = False
    for name, command in sorted(verifier.tests.items()):  # a stored recipe keeps no other order
        left = budgets.verify - (episode.at() - began)
        if left <= 0:
            timed_out = True
        if timed_out:
            tests.append(TestResult(name=name, passed=None, detail="not run: the time to verify was used up"))
            continue
        done = episode.sandbox.run(command, timeout=left, stopped=episode.stopped)
        if episode.stopped():
            raise Ended(Outcome.INTERRUPTED, "stopped while it was judged")
        timed_out = done.timed_out
        tests.append(_result(name, done))
    passed = None if timed_out else all(test.passed for test in tests)
    episode.add(
        Verification(
            step=max(episode.step, 0),
            passed=passed,
            reward=None if passed is None else float(passed),
            tests=tuple(tests),
            error="the time to verify was used up" if timed_out else None,
            at=at,
            latency=episode.at() - began,
        )
    )
    return outcome_of(passed)


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
