"""The tool boundary: commands run in the sandbox, results served from a record, or failing."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harnesslab.core.canonical import JSON, bytes_digest
from harnesslab.core.contracts import scrub
from harnesslab.core.running.ports import Execution
from harnesslab.core.running.recipe import RUN, SideEffects, side_effects
from harnesslab.core.running.record import Miss
from harnesslab.core.running.rerun import OnMiss, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction, ModelCall, ToolCall
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended, labelled

LIMIT = "limit"
"""Key in a tool call's `extra` of its time limit in seconds."""


def call_tool(episode: DrivenEpisode, name: str, arguments: JSON, call_id: str, raw: str | None) -> dict[str, JSON]:
    """Answer a harness's tool call; raises `Ended` where the episode can't go on."""
    episode.remaining()
    call = ToolCall(
        name=name,
        arguments=arguments,
        raw=raw,
        id=call_id,
        step=max(episode.step, 0),
        at=episode.at(),
        emitted=_emitted(episode, name, arguments, call_id),
    )
    external = _external(episode, name)
    switch = episode.switch(f"tool:{name}")
    if episode.rebuilding and not external:
        return _finish(episode, _rebuilt(episode, call))
    if switch is Switch.LIVE and external and episode.plan is not None:
        switch = Switch.RECORDED
    match switch:
        case Switch.LIVE:
            return _finish(episode, _executed(episode, call))
        case Switch.FAIL:
            return _finish(episode, _error(call, f"the rerun lets the tool {name} fail"))
        case Switch.RECORDED:
            return _finish(episode, _served(episode, call))


def _served(episode: DrivenEpisode, call: ToolCall) -> ToolCall:
    found = episode.record.tool(call.name, call.arguments, call.raw) if episode.record is not None else None
    if found is not None:
        episode.counts.served += 1
        if LIMIT in found.extra:
            episode.unbuilt.append(found)
        return _as_recorded(call, found, {"served": "from the record"})
    record, plan = episode.record, episode.plan
    if record is None or plan is None:
        return _error(call, f"there is no tool {call.name}")
    missed = record.missed_tool(call.name, call.arguments, episode.step)
    goes_on = plan.on_miss is OnMiss.LIVE and _runnable(episode, call.name)
    if not goes_on:
        episode.hold(_error(call, f"not in the record: {missed.why}"))
    episode.miss(missed, live=goes_on)
    done = _executed(episode, call)
    return msgspec.structs.replace(done, extra=labelled("live after a miss", done.extra))


def _rebuilt(episode: DrivenEpisode, call: ToolCall) -> ToolCall:
    """Run a recorded command again to rebuild the environment, and stop where it gives something else."""
    record = episode.record
    found = record.tool(call.name, call.arguments, call.raw) if record is not None else None
    if record is None or found is None:
        missed = record.missed_tool(call.name, call.arguments, episode.step) if record is not None else None
        missed = missed or Miss(f"tool:{call.name}", "there is no record to fork from")
        episode.hold(_error(call, f"not in the record: {missed.why}"))
        raise episode.left(missed)
    done = _executed(episode, call)
    now, then = _comparable(done), _comparable(found)
    if now != then:
        episode.hold(done)
        why = f"{call.name} in step {episode.step + 1} gave something else than recorded: the environment drifted"
        raise episode.left(Miss(f"tool:{call.name}", why, None, str(found.result), str(done.result)))
    exactly = done.result == found.result
    facts: dict[str, JSON] = {"rebuilt": "equal" if exactly else "equal after the scrub rules"}
    if not exactly:
        facts["rebuilt_result"] = done.result
    return _as_recorded(call, found, labelled("from the record, and run again", facts), done)


def _catch_up(episode: DrivenEpisode) -> None:
    """Run the commands whose results were served, before one runs live on what they would have left behind."""
    waiting, episode.unbuilt = episode.unbuilt, []
    for served in waiting:
        done = _run(episode, served)
        if _comparable(done) != _comparable(served):
            episode.hold(done)
            why = f"{served.name} of step {served.step + 1}, run to catch up, gave something else than recorded"
            raise episode.left(Miss(f"tool:{served.name}", why, None, str(served.result), str(done.result)))
    if waiting:
        detail: JSON = {"commands": len(waiting)}
        episode.add(HarnessAction(name="rebuilt the environment", detail=detail, step=max(episode.step, 0)))


def _comparable(call: ToolCall) -> JSON:
    text = call.result if isinstance(call.result, str) else ""
    return [scrub.scrub(text, scrub.newest()), call.exit_code, call.timed_out]


def _as_recorded(call: ToolCall, found: ToolCall, extra: Mapping[str, JSON], done: ToolCall | None = None) -> ToolCall:
    """Return the call with the recorded answer; its time is the one it took now, if it ran."""
    return msgspec.structs.replace(
        call,
        result=found.result,
        has_result=found.has_result,
        exit_code=found.exit_code,
        error=found.error,
        timed_out=found.timed_out,
        retries=found.retries,
        latency=None if done is None else done.latency,
        extra={**found.extra, **extra},
    )


def _external(episode: DrivenEpisode, name: str) -> bool:
    return side_effects(episode.recipe.tools, name) is SideEffects.EXTERNAL


def _runnable(episode: DrivenEpisode, name: str) -> bool:
    return name == RUN and not (episode.plan is not None and _external(episode, name))


def _executed(episode: DrivenEpisode, call: ToolCall) -> ToolCall:
    if not _runnable(episode, call.name):
        return _error(call, f"there is no tool {call.name}; workers run {RUN}")
    if not isinstance(_command(call), str):
        return _error(call, f"{RUN} needs a command that is text")
    _catch_up(episode)
    return _run(episode, call)


def _run(episode: DrivenEpisode, call: ToolCall) -> ToolCall:
    """Run a command; what is known so far is stored before, since it may take long."""
    episode.settle()
    limit = min(episode.recipe.case.budgets.command, episode.remaining())
    done = episode.sandbox.run(str(_command(call)), timeout=limit, stopped=episode.stopped)
    episode.counts.commands += 1
    return with_execution(call, done, limit)


def _command(call: ToolCall) -> JSON:
    return call.arguments.get("command") if isinstance(call.arguments, Mapping) else None


def with_execution(call: ToolCall, done: Execution, limit: float) -> ToolCall:
    """Return a call with what its command did."""
    text = done.output.decode(errors="replace")
    facts: dict[str, JSON] = {LIMIT: limit}
    if done.left_running:
        facts["left_running"] = True
    if done.size != len(done.output) or text.encode() != done.output:
        facts |= {"size": done.size, "digest": done.digest or bytes_digest(done.output)}
    return msgspec.structs.replace(
        call,
        result=text,
        exit_code=done.exit_code,
        error=done.error,
        timed_out=done.timed_out,
        latency=done.latency,
        extra=facts,
    )


def _error(call: ToolCall, why: str) -> ToolCall:
    return msgspec.structs.replace(call, result=None, has_result=False, error=why)


def _finish(episode: DrivenEpisode, call: ToolCall) -> dict[str, JSON]:
    if episode.stopped():
        episode.add(call)
        raise Ended(Outcome.INTERRUPTED, "stopped on request")
    episode.hold(call)
    return {
        "type": "result",
        "output": call.result if isinstance(call.result, str) else "",
        "exit_code": call.exit_code,
        "timed_out": call.timed_out,
        "error": call.error,
    }


def _emitted(episode: DrivenEpisode, name: str, arguments: JSON, call_id: str) -> int | None:
    """Return the position of a call among those of the answer that asked for it, where it can be told."""
    for event in reversed([*episode.writer.builder.events, *([episode.held] if episode.held else [])]):
        if isinstance(event, ModelCall):
            for position, asked in enumerate(event.tool_calls):
                if (asked.id and asked.id == call_id) or (asked.name, asked.arguments) == (name, arguments):
                    return position
            return None
    return None
