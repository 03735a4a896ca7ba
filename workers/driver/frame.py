"""What every rollout begins and ends with, whatever kind its harness is: the case's files, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.events import RolloutStarted, UserTurn
from harnesslab.core.rerun import Mode
from harnesslab.core.rollout import Outcome
from workers.driver.episode import Diverged, Ended, Episode
from workers.driver.verifier import FOLDER, verdict_from, verify
from workers.driver.workspace import workspace_diff

REWARDS = {Outcome.SOLVED: 1.0, Outcome.FAILED_VERIFICATION: 0.0, Outcome.STEP_CAP: 0.0}
UNJUDGED = "commands were served and did not run, so that there is nothing to judge"


@dataclass(frozen=True, slots=True)
class Result:
    """How a rollout ended."""

    outcome: Outcome
    why: str = ""
    origin: str = ""
    """Of a crash: `harness` or `environment`."""
    state: str | None = None
    diff: str | None = None
    reward: float | None = None
    diverged: bool = False
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """What else is known of how it went."""


def prepared(episode: Episode, manifest: str) -> Mapping[str, bytes]:
    """Put the case's files into the sandbox, run its setup, and record the beginning."""
    case, sandbox = episode.recipe.case, episode.sandbox
    sandbox.write({name: text.encode("utf-8", "surrogateescape") for name, text in case.files.items()})
    for command in case.setup:
        done = sandbox.run(command, timeout=case.budgets.command, stopped=episode.stopped)
        if done.exit_code != 0:
            said = done.output.decode(errors="replace")[-300:].strip()
            raise Ended(Outcome.INFRA_ERROR, f"the case's setup failed: {command!r}: {said or done.error}")
    episode.add(RolloutStarted(manifest=manifest, state=sandbox.state()))
    episode.add(UserTurn(content=case.instruction, simulated=False, at=episode.at()))
    return sandbox.files()


def closed(episode: Episode, ended: Ended, before: Mapping[str, bytes]) -> Result:
    """Verify where the agent came to an end, and say what became of the work folder."""
    if episode.unrun and not isinstance(ended, Diverged):
        return _served(episode, ended)
    outcome, why, origin = ended.outcome, ended.why, ended.origin
    reward: float | None = None
    state: str | None = None
    diff: str | None = None
    try:
        if outcome in (Outcome.UNKNOWN, Outcome.STEP_CAP):
            state, diff = episode.sandbox.state(), workspace_diff(before, _work(episode))
            verdict = verify(episode)
            outcome = verdict if outcome is Outcome.UNKNOWN and verdict is not None else outcome
            reward = REWARDS.get(outcome)
        elif not isinstance(ended, Diverged):
            state, diff = episode.sandbox.state(), workspace_diff(before, _work(episode))
    except HarnessLabError as error:
        if outcome in (Outcome.UNKNOWN, Outcome.STEP_CAP):
            outcome, why, origin = Outcome.CRASH, error.sentence, "environment"
    if _never_live(episode, outcome):
        outcome, why = Outcome.INFRA_ERROR, "a live rerun that sent no request of its own shows nothing"
    return Result(outcome, why, origin, state, diff, reward, isinstance(ended, Diverged))


def _served(episode: Episode, ended: Ended) -> Result:
    """Serve what became of the work folder, too, where commands were served and did not run."""
    outcome, why = ended.outcome, ended.why
    recorded = episode.record.ending() if episode.record is not None and episode.missed is None else None
    if recorded is None:
        unjudged = outcome in (Outcome.UNKNOWN, Outcome.STEP_CAP)
        return Result(outcome, why or (UNJUDGED if unjudged else ""), ended.origin)
    verdict, closing = recorded
    if outcome in (Outcome.UNKNOWN, Outcome.STEP_CAP) and verdict is not None:
        judged = verdict_from(episode, verdict)
        outcome = judged if outcome is Outcome.UNKNOWN else outcome
    state, diff = (None, None) if closing is None else (closing.state, closing.diff)
    return Result(outcome, why, ended.origin, state, diff, REWARDS.get(outcome))


def _work(episode: Episode) -> Mapping[str, bytes]:
    return {name: data for name, data in episode.sandbox.files().items() if not name.startswith(f"{FOLDER}/")}


def _never_live(episode: Episode, outcome: Outcome) -> bool:
    plan = episode.plan
    counted = outcome not in (Outcome.INTERRUPTED, Outcome.CRASH, Outcome.TIMEOUT)
    return plan is not None and plan.mode is Mode.LIVE and counted and episode.counts.requests == 0
