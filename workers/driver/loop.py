"""One rollout of a loop harness, from the empty sandbox to the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.events import HarnessAction, ModelCall, RolloutStarted, ToolCall, UserTurn
from harnesslab.core.ports import Child, SandboxRefused
from harnesslab.core.recipe import POLICY
from harnesslab.core.rerun import Mode
from harnesslab.core.rollout import Outcome
from workers.driver.conversation import Conversation, HarnessFailed, HarnessSilent
from workers.driver.episode import Diverged, Ended, Episode
from workers.driver.model import call_model
from workers.driver.others import call_user, read_clock
from workers.driver.tools import call_tool
from workers.driver.verifier import FOLDER, verify
from workers.driver.workspace import workspace_diff

REASONS: Mapping[str, Outcome | None] = {
    "submitted": None,
    "gave_up": None,
    "no_valid_action": Outcome.NO_VALID_ACTION,
    "refused": Outcome.REFUSED,
}
"""How a harness may say that it ends, and the outcome where the verdict can't be better."""


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


def run_loop(episode: Episode, spawn: Callable[[], Child], manifest: str, after_step: Callable[[], None]) -> Result:
    """Run an episode; what goes wrong becomes its outcome. `after_step` is called whenever a step is recorded.

    The recorder is left open: the caller closes it with the result.
    """
    before: Mapping[str, bytes] = {}
    try:
        before = _prepared(episode, manifest)
        ended = _talk(episode, spawn, after_step)
    except Ended as end:
        ended = end
    except SandboxRefused as error:
        ended = Ended(Outcome.CRASH, error.sentence, origin="environment")
    episode.release()
    return _closed(episode, ended, before)


def _prepared(episode: Episode, manifest: str) -> Mapping[str, bytes]:
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


def _talk(episode: Episode, spawn: Callable[[], Child], after_step: Callable[[], None]) -> Ended:
    """Answer the harness until it ends or may not go on."""
    conversation = Conversation(spawn())
    try:
        conversation.send(_start(episode))
        while True:
            message = conversation.receive(episode.deadline, episode.stopped)
            reply = _answer(episode, message)
            if isinstance(reply, Ended):
                return reply
            if reply is not None:
                episode.writer.flush()
                after_step()
                conversation.send(reply)
    except HarnessSilent as error:
        try:
            episode.remaining()
        except Ended as end:
            return end
        return Ended(Outcome.TIMEOUT, error.sentence)
    except HarnessFailed as error:
        return Ended(Outcome.CRASH, error.sentence, origin="harness")
    except Ended as end:
        conversation.send({"type": "stop", "why": end.why})
        return end
    finally:
        conversation.close()


def _start(episode: Episode) -> dict[str, JSON]:
    case = episode.recipe.case
    budgets: dict[str, JSON] = {
        "steps": case.budgets.steps,
        "wall": case.budgets.wall,
        "command": case.budgets.command,
        "output": case.budgets.output,
        "context": case.budgets.context,
    }
    tools: dict[str, JSON] = {name: effects.value for name, effects in episode.recipe.tools.items()}
    start: dict[str, JSON] = {"protocol": POLICY, "instruction": case.instruction, "budgets": budgets, "tools": tools}
    return {"type": "start", **start, "settings": dict(episode.recipe.settings), "user": case.user is not None}


def _answer(episode: Episode, message: Mapping[str, JSON]) -> dict[str, JSON] | Ended | None:
    """Do what the harness asks; None where it expects no answer."""
    match message:
        case {"type": "model", "messages": list(messages), **rest} if messages:
            asked = rest.get("settings")
            settings: Mapping[str, JSON] = asked if isinstance(asked, dict) else {}
            return call_model(episode, messages, rest.get("tools"), settings, _text(rest.get("agent")))
        case {"type": "tool", "name": str(name), **rest}:
            raw = rest.get("raw")
            call_id = _text(rest.get("id"))
            return call_tool(episode, name, rest.get("arguments"), call_id, raw if isinstance(raw, str) else None)
        case {"type": "reject", "reason": str(reason)} if isinstance(episode.held, ModelCall):
            episode.amend(rejected=reason)
            episode.rejected = True
        case {"type": "seen", "text": str(text)} if isinstance(episode.held, ToolCall):
            episode.amend(seen=None if text == episode.held.result else text)
        case {"type": "user", "text": str(text)}:
            return call_user(episode, text)
        case {"type": "clock"}:
            return read_clock(episode)
        case {"type": "action", "name": str(name), **rest}:
            mechanism = rest.get("mechanism")
            fired = mechanism if isinstance(mechanism, str) else None
            step = max(episode.step, 0)
            action = HarnessAction(name=name, mechanism=fired, detail=rest.get("detail"), step=step, at=episode.at())
            episode.add(action)
        case {"type": "end", "reason": str(reason), **rest} if reason in REASONS:
            return _said_end(reason, _text(rest.get("detail")))
        case _:
            kind = message.get("type")
            raise HarnessFailed(
                f"a message that the protocol doesn't have here: {kind!r}", hint="see docs/harnesses.md"
            )
    return None


def _said_end(reason: str, detail: str) -> Ended:
    return Ended(REASONS[reason] or Outcome.UNKNOWN, detail)


def _closed(episode: Episode, ended: Ended, before: Mapping[str, bytes]) -> Result:
    """Verify where the agent came to an end, and say what became of the work folder."""
    outcome, why, origin = ended.outcome, ended.why, ended.origin
    reward: float | None = None
    state: str | None = None
    diff: str | None = None
    try:
        if outcome in (Outcome.UNKNOWN, Outcome.STEP_CAP):
            state, diff = episode.sandbox.state(), workspace_diff(before, _work(episode))
            verdict = verify(episode)
            outcome = verdict if outcome is Outcome.UNKNOWN and verdict is not None else outcome
            reward = {Outcome.SOLVED: 1.0, Outcome.FAILED_VERIFICATION: 0.0, Outcome.STEP_CAP: 0.0}.get(outcome)
        elif not isinstance(ended, Diverged):
            state, diff = episode.sandbox.state(), workspace_diff(before, _work(episode))
    except HarnessLabError as error:
        if outcome in (Outcome.UNKNOWN, Outcome.STEP_CAP):
            outcome, why, origin = Outcome.CRASH, error.sentence, "environment"
    if _never_live(episode, outcome):
        outcome, why = Outcome.INFRA_ERROR, "a live rerun that sent no request of its own shows nothing"
    return Result(outcome, why, origin, state, diff, reward, isinstance(ended, Diverged))


def _work(episode: Episode) -> Mapping[str, bytes]:
    return {name: data for name, data in episode.sandbox.files().items() if not name.startswith(f"{FOLDER}/")}


def _never_live(episode: Episode, outcome: Outcome) -> bool:
    plan = episode.plan
    counted = outcome not in (Outcome.INTERRUPTED, Outcome.CRASH, Outcome.TIMEOUT)
    return plan is not None and plan.mode is Mode.LIVE and counted and episode.counts.requests == 0


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
