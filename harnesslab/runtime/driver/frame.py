"""What every rollout begins and ends with, whatever kind its harness is: the case's files, and the verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.cases import CaseDefinition, content
from harnesslab.core.running.ports import Sandbox
from harnesslab.core.running.rerun import Mode
from harnesslab.core.running.rollout import CrashOrigin, Outcome
from harnesslab.core.trace.events import RolloutStarted, UserTurn
from harnesslab.runtime.driver.episode import Diverged, DrivenEpisode, Ended, labelled
from harnesslab.runtime.driver.verifier import FOLDER, outcome_of, verify
from harnesslab.runtime.driver.workspace import workspace_diff

_JUDGED = (Outcome.UNKNOWN, Outcome.STEP_CAP)
"""Ends after which the work is judged."""
ALIVE_S = 10.0
"""Seconds that a sandbox has to show that it still runs commands."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a rollout ended."""

    outcome: Outcome
    why: str = ""
    origin: str = ""
    """Of a crash, see `CrashOrigin`."""
    state: str | None = None
    diff: str | None = None
    reward: float | None = None
    diverged: bool = False
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """What else is known of how it went."""


def prepared(episode: DrivenEpisode, manifest: str) -> Mapping[str, bytes]:
    """Put the case's files into the sandbox, run its setup, and record the beginning."""
    case, sandbox = episode.recipe.case, episode.sandbox
    why = place_files(sandbox, case, episode.stopped)
    episode.remaining()
    if why:
        raise Ended(Outcome.INFRA_ERROR, why)
    episode.add(RolloutStarted(manifest=manifest, state=sandbox.state()))
    episode.add(UserTurn(content=case.instruction, simulated=False, at=episode.at()))
    return sandbox.files()


def place_files(sandbox: Sandbox, case: CaseDefinition, stopped: Callable[[], bool]) -> str:
    """Put a case's files into a sandbox and run its setup; returns why that failed, or nothing."""
    sandbox.write({name: content(text) for name, text in case.files.items()})
    for command in case.setup:
        done = sandbox.run(command, timeout=case.budgets.command, stopped=stopped)
        if done.exit_code != 0:
            said = done.output.decode(errors="replace")[-300:].strip()
            return f"the case's setup failed: {command!r}: {said or done.error}"
    return ""


def closed(episode: DrivenEpisode, ended: Ended, before: Mapping[str, bytes]) -> Result:
    """Verify where the agent came to an end, and say what became of the work folder."""
    try:
        result = _judged(episode, ended, before)
    except Ended as end:  # stopped while it was judged: no verdict
        result = Result(end.outcome, end.why, end.origin)
    except HarnessLabError as error:
        result = Result(ended.outcome, ended.why, ended.origin, diverged=isinstance(ended, Diverged))
        if ended.outcome in _JUDGED:
            result = Result(Outcome.CRASH, error.sentence, whose(episode))
    if _never_live(episode, result.outcome):
        why = "a live rerun that sent no request of its own shows nothing"
        return dataclasses.replace(result, outcome=Outcome.INFRA_ERROR, why=why)
    return result


def whose(episode: DrivenEpisode) -> CrashOrigin:
    """Say what a failure of the work folder's sandbox is owed to: one that still runs commands was not lost.

    What then fails is what the agent left behind: a link or file where the verifier's folder should be, a full disk.
    """
    try:
        episode.sandbox.run("true", timeout=ALIVE_S, stopped=episode.stopped)
    except HarnessLabError:
        return CrashOrigin.ENVIRONMENT
    return CrashOrigin.WORKSPACE


def _judged(episode: DrivenEpisode, ended: Ended, before: Mapping[str, bytes]) -> Result:
    found = Result(ended.outcome, ended.why, ended.origin, diverged=isinstance(ended, Diverged))
    if found.diverged:
        return found
    if episode.unbuilt:
        return _judged_then(episode, found)
    state, diff = episode.sandbox.state(), workspace_diff(before, _work(episode))
    verdict = verify(episode) if ended.outcome in _JUDGED else None
    return _with_verdict(dataclasses.replace(found, state=state, diff=diff), verdict)


def _judged_then(episode: DrivenEpisode, found: Result) -> Result:
    """Serve the verdict too where commands were served and did not run: the work folder here has nothing to judge."""
    kept = episode.record.verdict() if episode.record is not None and not episode.counts.commands else None
    if kept is None:
        unknown = "no verdict: results of commands were served, so that the work folder lacks what they did"
        return dataclasses.replace(found, why=found.why or unknown)
    verification, end = kept
    verdict = None
    if verification is not None and found.outcome in _JUDGED:
        extra = labelled("from the record", verification.extra)
        episode.add(msgspec.structs.replace(verification, step=max(episode.step, 0), at=episode.at(), extra=extra))
        verdict = outcome_of(verification.passed)
    return _with_verdict(dataclasses.replace(found, state=end.state, diff=end.diff), verdict)


def _with_verdict(found: Result, verdict: Outcome | None) -> Result:
    outcome = verdict if found.outcome is Outcome.UNKNOWN and verdict is not None else found.outcome
    reward = {Outcome.SOLVED: 1.0, Outcome.FAILED_VERIFICATION: 0.0, Outcome.STEP_CAP: 0.0}.get(outcome)
    return dataclasses.replace(found, outcome=outcome, reward=reward)


def _work(episode: DrivenEpisode) -> Mapping[str, bytes]:
    return {name: data for name, data in episode.sandbox.files().items() if not name.startswith(f"{FOLDER}/")}


def _never_live(episode: DrivenEpisode, outcome: Outcome) -> bool:
    plan = episode.plan
    counted = outcome not in (Outcome.INTERRUPTED, Outcome.CRASH, Outcome.TIMEOUT, Outcome.INFRA_ERROR)
    return plan is not None and plan.mode is Mode.LIVE and counted and episode.counts.requests == 0
