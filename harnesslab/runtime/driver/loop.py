"""One rollout of a loop harness, from the empty sandbox to the verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import Child, SandboxRefused
from harnesslab.core.running.recipe import POLICY
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction, ModelCall, ToolCall
from harnesslab.runtime.driver.conversation import Conversation, HarnessFailed, HarnessSilent
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended
from harnesslab.runtime.driver.frame import Result, closed, prepared, whose
from harnesslab.runtime.driver.model import call_model
from harnesslab.runtime.driver.others import call_user, read_clock
from harnesslab.runtime.driver.tools import call_tool

REASONS: Mapping[str, Outcome | None] = {
    "submitted": None,
    "gave_up": None,
    "no_valid_action": Outcome.NO_VALID_ACTION,
    "refused": Outcome.REFUSED,
}
"""How a harness may say that it ends, and the outcome where the verdict can't be better."""


def run_loop(
    episode: DrivenEpisode, spawn: Callable[[], Child], manifest: str, after_step: Callable[[], None]
) -> Result:
    """Run an episode; what goes wrong becomes its outcome. `after_step` is called whenever a step is recorded.

    The recorder is left open: the caller closes it with the result.
    """
    before: Mapping[str, bytes] = {}
    try:
        before = prepared(episode, manifest)
        ended = _talk(episode, spawn, after_step)
    except Ended as end:
        ended = end
    except SandboxRefused as error:
        ended = Ended(Outcome.CRASH, error.sentence, origin=whose(episode))
    episode.release()
    return closed(episode, ended, before)


def _talk(episode: DrivenEpisode, spawn: Callable[[], Child], after_step: Callable[[], None]) -> Ended:
    """Answer the harness until it ends or may not go on."""
    conversation = Conversation(spawn())
    try:
        conversation.send(_start(episode), episode.deadline, episode.stopped)
        while True:
            message = conversation.receive(episode.deadline, episode.stopped)
            episode.bound()
            reply = _answer(episode, message)
            if isinstance(reply, Ended):
                return reply
            if reply is None:
                episode.remaining()
            else:
                episode.store()
                after_step()
                conversation.send(reply, episode.deadline, episode.stopped)
    except HarnessSilent as error:
        # that the time is used up or a stop was asked for says more than that nothing was heard
        try:
            episode.remaining()
        except Ended as end:
            return end
        return Ended(Outcome.TIMEOUT, error.sentence)
    except HarnessFailed as error:
        return Ended(Outcome.CRASH, error.sentence, origin="harness")
    except Ended as end:
        with contextlib.suppress(HarnessSilent):
            conversation.send({"type": "stop", "why": end.why}, 0.0, episode.stopped)
        return end
    finally:
        conversation.close()


def _start(episode: DrivenEpisode) -> dict[str, JSON]:
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


def _answer(episode: DrivenEpisode, message: Mapping[str, JSON]) -> dict[str, JSON] | Ended | None:
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


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
