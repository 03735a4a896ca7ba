"""The model boundary: live with every attempt recorded, served from a record, or failing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import RETRIED, Exchange, FailureKind, ModelRequest
from harnesslab.core.running.rerun import OnMiss, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ModelCall, ToolRequest, Window
from harnesslab.runtime.driver.calls import (
    FROM_RECORD,
    IN_ORDER,
    SWITCHED_OFF,
    Request,
    count,
    count_call,
    live_call,
    next_seed,
    served_call,
    settings_of,
    unasked_call,
)
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended

LONGEST_WAIT_S = 30.0
POLL_S = 0.5


def call_model(
    episode: DrivenEpisode, messages: Sequence[JSON], tools: JSON, settings: Mapping[str, JSON], agent: str
) -> dict[str, JSON]:
    """Answer a harness's request for the model; raises `Ended` where the episode can't go on."""
    _next_step(episode, agent)
    window, schemas = episode.writer.builder.ask(messages, tools=tools, agent=agent)
    request = Request(messages, tools, settings, agent, window, schemas)
    key = episode.keys.key(agent, window, schemas, settings)
    match episode.switch("model"):
        case Switch.LIVE:
            return _live(episode, request, "")
        case Switch.FAIL:
            return _failed(episode, request)
        case Switch.RECORDED:
            return _served(episode, request, key)


def _next_step(episode: DrivenEpisode, agent: str) -> None:
    """A call of the main agent opens a step, unless the harness rejected the answer before it."""
    episode.release()
    if episode.rejected:
        episode.rejected = False
        episode.attempt += 1
        episode.another_call()
        return
    episode.attempt = 0
    if agent and episode.step >= 0:
        episode.another_call()
        return
    episode.open_step()


def _served(episode: DrivenEpisode, request: Request, key: bytes) -> dict[str, JSON]:
    record, plan = episode.record, episode.plan
    if record is None or plan is None:
        raise Ended(Outcome.INFRA_ERROR, "there is no record to serve from")
    frozen = episode.rebuilding and plan.revision
    attempts = record.model_in_order() if frozen else record.model(key)
    if attempts is None:
        missed = record.missed_model(request.messages, episode.step)
        goes_on = plan.on_miss is OnMiss.LIVE and not episode.rebuilding
        if not goes_on:
            episode.hold(unasked_call(episode, request, f"not in the record: {missed.why}"))
        episode.miss(missed, live=goes_on)
        return _live(episode, request, "live after a miss")
    episode.counts.served += 1
    count_call(episode, request.agent)
    label = IN_ORDER if frozen else FROM_RECORD
    for position, event in enumerate(attempts):
        window = request.window if position == 0 else _again(episode, request)
        episode.hold(served_call(episode, request, window, event, label))
    return _reply(attempts[-1])


def _live(episode: DrivenEpisode, request: Request, label: str) -> dict[str, JSON]:
    seed = next_seed(episode, request.agent)
    settings = settings_of(episode, request.settings, seed)
    outgoing = ModelRequest(request.messages, settings, request.tools, stream=episode.recipe.stream)
    repeats = episode.recipe.repeats
    episode.settle()
    while True:
        at = episode.at()
        exchange = episode.engine.ask(outgoing, timeout=episode.remaining(), on_text=lambda _: not episode.stopped())
        count(episode, exchange)
        window = request.window if episode.held is None else _again(episode, request)
        event = live_call(episode, request, window, exchange, at, seed, label)
        episode.hold(event)
        if exchange.failure is None:
            return _reply(event)
        if exchange.failure.kind not in RETRIED:
            return _unanswered(episode, exchange)
        if repeats == 0:
            episode.release()
            raise Ended(Outcome.INFRA_ERROR, exchange.failure.sentence)
        repeats -= 1
        episode.attempt += 1
        _pause(episode, exchange.failure.retry_after or 0.5)


def _pause(episode: DrivenEpisode, seconds: float) -> None:
    """Wait before another attempt; raises `Ended` where it is stopped or its time is up meanwhile."""
    until = time.monotonic() + min(seconds, LONGEST_WAIT_S)
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, POLL_S, episode.remaining()))


def _unanswered(episode: DrivenEpisode, exchange: Exchange) -> dict[str, JSON]:
    """Say what a failure means that another attempt would not mend."""
    failure = exchange.failure
    kind = failure.kind if failure is not None else FailureKind.SERVER_ERROR
    sentence = failure.sentence if failure is not None else ""
    if kind is FailureKind.STOPPED:
        raise Ended(Outcome.INTERRUPTED, "stopped on request")
    if kind is FailureKind.TIMEOUT:
        episode.remaining()  # raises where it was the episode's own budget
        raise Ended(Outcome.INFRA_ERROR, sentence)
    facts: Mapping[str, JSON] = failure.facts if failure is not None else {}
    return {"type": "answer", "error": {"kind": kind.value, "sentence": sentence, "facts": dict(facts)}}


def _again(episode: DrivenEpisode, request: Request) -> Window:
    """Return the window of another attempt at the same request."""
    episode.release()
    return episode.writer.builder.ask(request.messages, tools=request.tools, agent=request.agent)[0]


def _failed(episode: DrivenEpisode, request: Request) -> dict[str, JSON]:
    episode.hold(unasked_call(episode, request, SWITCHED_OFF))
    return {"type": "answer", "error": {"kind": "switched off", "sentence": SWITCHED_OFF, "facts": {}}}


def _reply(event: ModelCall | None) -> dict[str, JSON]:
    """Return the answer as the harness gets it."""
    answer = event or ModelCall()
    if answer.error is not None:
        return _refused(answer)
    calls: list[JSON] = [_call(call) for call in answer.tool_calls]
    usage = answer.usage
    return {
        "type": "answer",
        "text": answer.text,
        "reasoning": answer.reasoning,
        "refusal": answer.refusal,
        "tool_calls": calls,
        "finish_reason": answer.finish_reason,
        "usage": None if usage is None else {"input": usage.input, "output": usage.output},
        "error": None,
    }


def _refused(event: ModelCall) -> dict[str, JSON]:
    """Return a recorded failure as the harness was told of it."""
    stated = event.extra.get("failure")
    facts: dict[str, JSON] = dict(stated) if isinstance(stated, Mapping) else {}
    kind = facts.pop("kind", FailureKind.SERVER_ERROR.value)
    return {"type": "answer", "error": {"kind": kind, "sentence": event.error, "facts": facts}}


def _call(call: ToolRequest) -> dict[str, JSON]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "raw": call.raw}
