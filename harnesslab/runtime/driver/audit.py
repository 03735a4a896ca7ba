"""The audit of a recorded rollout: its commands and its verification run again in a fresh sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable

from harnesslab.core.canonical import Digest
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.measuring.certification import (
    Certificate,
    CertificateVerdict,
    Chain,
    Fork,
    call_fork,
    chain_of,
    command_of,
    verification_fork,
)
from harnesslab.core.running.ports import Sandbox, Sandboxes
from harnesslab.core.running.recipe import Recipe
from harnesslab.core.trace.events import ToolCall
from harnesslab.core.trace.trace import Trace
from harnesslab.runtime.driver.frame import place_files
from harnesslab.runtime.driver.run import place
from harnesslab.runtime.driver.tools import with_execution
from harnesslab.runtime.driver.verifier import run_tests


class AuditFailed(HarnessLabError):
    """The audit itself came to no end; it says nothing of the case."""


def audit(
    recipe: Recipe | None,
    trace: Trace,
    identity: Digest,
    sandboxes: Callable[[Recipe], Sandboxes],
    stopped: Callable[[], bool],
) -> Certificate:
    """Certify one case; raises `AuditFailed` or `SandboxRefused` where the audit itself fails: no case is excluded."""
    chain = chain_of(trace, recipe)
    if recipe is None or chain.why_not:
        return Certificate(CertificateVerdict.NO_CHAIN, chain.digest, identity, chain.why_not)
    sandbox = sandboxes(recipe).open(place(recipe))
    try:
        fork = _fork(recipe, chain, sandbox, stopped)
    finally:
        sandbox.close()
    verdict = CertificateVerdict.DETERMINISTIC if fork is None else CertificateVerdict.FORKED
    return Certificate(verdict, chain.digest, identity, fork=fork, commands=len(chain.calls))


def _fork(recipe: Recipe, chain: Chain, sandbox: Sandbox, stopped: Callable[[], bool]) -> Fork | None:
    case = recipe.case
    if why := place_files(sandbox, case, stopped):
        raise AuditFailed(why, where=case.name)
    deadline = time.monotonic() + case.budgets.wall
    for index, recorded in enumerate(chain.calls):
        live = _again(recorded, sandbox, min(case.budgets.command, deadline - time.monotonic()), stopped)
        if fork := call_fork(index, recorded, live):
            return fork
    if not chain.tests:
        return None
    tests, timed_out = run_tests(sandbox, case, stopped)
    if timed_out or stopped():
        raise AuditFailed("its verification came to no end, though the recorded one did", where=case.name)
    return verification_fork(len(chain.calls), chain.tests, tests)


def _again(recorded: ToolCall, sandbox: Sandbox, limit: float, stopped: Callable[[], bool]) -> ToolCall:
    if limit <= 0:
        raise AuditFailed("the time budget is used up, though the recorded commands kept to it")
    done = sandbox.run(command_of(recorded), timeout=limit, stopped=stopped)
    if stopped():
        raise AuditFailed("the audit was stopped")
    if done.timed_out:
        raise AuditFailed(f"{command_of(recorded)!r} timed out, though the recorded one did not")
    return with_execution(recorded, done, limit)
