"""The model boundary: live with every attempt recorded, served from a record, or failing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core import sent
from harnesslab.core.canonical import JSON
from harnesslab.core.events import Fidelity, ModelCall, ToolRequest, Window
from harnesslab.core.ports import RETRIED, Answer, Exchange, FailureKind, ModelRequest
from harnesslab.core.record import ASKED
from harnesslab.core.rerun import OnMiss, Switch
from harnesslab.core.rollout import Outcome
from workers.driver.episode import Ended, Episode, labelled

LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """What the harness asks, and where it stands in the trace."""

    messages: Sequence[JSON]
    tools: JSON
    asked: Mapping[str, JSON]
    """Settings as the harness stated them."""
    agent: str
    window: Window
    schemas: int | None


def call_model(
    episode: Episode, messages: Sequence[JSON], tools: JSON, asked: Mapping[str, JSON], agent: str
) -> dict[str, JSON]:
    """Answer a harness's request for the model; raises `Ended` where the episode can't go on."""
    _next_step(episode, agent)
    window, schemas = episode.writer.builder.ask(messages, tools=tools, agent=agent)
    request = Request(messages, tools, asked, agent, window, schemas)
    key = episode.keys.key(agent, window, schemas, asked)
    match episode.switch("model"):
        case Switch.LIVE:
            return _live(episode, request, "")
        case Switch.FAIL:
            return _failed(episode, request)
        case Switch.RECORDED:
            return _served(episode, request, key)


def _next_step(episode: Episode, agent: str) -> None:
    """A call of the main agent opens a step, unless the harness rejected the answer before it."""
    episode.release()
    if episode.rejected:
        episode.rejected = False
        episode.attempt += 1
        return
    episode.attempt = 0
    if agent and episode.step >= 0:
        return
    if episode.step + 1 >= episode.recipe.case.budgets.steps:
        raise Ended(Outcome.STEP_CAP, f"the step budget of {episode.recipe.case.budgets.steps} is used up")
    episode.step += 1


def _served(episode: Episode, request: Request, key: bytes) -> dict[str, JSON]:
    record, plan = episode.record, episode.plan
    if record is None or plan is None:
        raise Ended(Outcome.INFRA_ERROR, "there is no record to serve from")
    frozen = episode.rebuilding and plan.revision
    attempts = record.model_in_order() if frozen else record.model(key)
    if attempts is None:
        missed = record.missed_model(request.messages, episode.step)
        goes_on = plan.on_miss is OnMiss.LIVE and not episode.rebuilding
        if not goes_on:
            _unasked(episode, request, f"not in the record: {missed.why}")
        episode.miss(missed, live=goes_on)
        return _live(episode, request, "live after a miss")
    episode.counts.served += 1
    _count_call(episode, request.agent)
    label = "in order, whatever was asked" if frozen else "from the record"
    for position, event in enumerate(attempts):
        window = request.window if position == 0 else _again(episode, request)
        served = ModelCall(
            **{
                **{name: getattr(event, name) for name in event.__struct_fields__},
                "input": window,
                "tools": request.schemas,
                "step": max(episode.step, 0),
                "at": episode.at(),
                "fidelity": Fidelity.RECORDED,
                "rejected": None,
                "raw_request": None,
                "extra": labelled(label, {**_unsent(event.extra), ASKED: dict(request.asked)}),
            }
        )
        episode.hold(served)
    return _reply(attempts[-1])


def _unsent(extra: Mapping[str, JSON]) -> dict[str, JSON]:
    """Leave out what is true of a request that was sent."""
    return {name: value for name, value in extra.items() if name not in (sent.KEY, "waited", "first_token")}


def _live(episode: Episode, request: Request, label: str) -> dict[str, JSON]:
    settings, seed = _settings(episode, request)
    outgoing = ModelRequest(request.messages, settings, request.tools, stream=episode.recipe.stream)
    repeats = episode.recipe.repeats
    episode.settle()
    while True:
        at = episode.at()
        exchange = episode.engine.ask(outgoing, timeout=episode.remaining(), on_text=lambda _: not episode.stopped())
        _count(episode, exchange)
        window = request.window if episode.held is None else _again(episode, request)
        event = _event(episode, request, window, exchange, at, seed, label)
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
        time.sleep(min(exchange.failure.retry_after or 0.5, LONGEST_WAIT_S, episode.remaining()))


def _unanswered(episode: Episode, exchange: Exchange) -> dict[str, JSON]:
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


def _settings(episode: Episode, request: Request) -> tuple[dict[str, JSON], int]:
    """Return the settings to send: the recipe's, the harness's, the plan's overrides, and this call's seed."""
    recipe = episode.recipe
    seed = recipe.seed("sampling", _count_call(episode, request.agent))
    overrides = episode.plan.overrides if episode.plan is not None else {}
    defaults: dict[str, JSON] = {"max_tokens": recipe.case.budgets.output, **recipe.settings}
    return {**defaults, **request.asked, **overrides, "seed": seed}, seed


def _count_call(episode: Episode, agent: str) -> int:
    """Return the place of this call in its agent's seed stream; retries of infrastructure send the same seed."""
    number = episode.calls.get(agent, 0)
    episode.calls[agent] = number + 1
    return number


def _again(episode: Episode, request: Request) -> Window:
    """Return the window of another attempt at the same request."""
    episode.release()
    return episode.writer.builder.ask(request.messages, tools=request.tools, agent=request.agent)[0]


def _count(episode: Episode, exchange: Exchange) -> None:
    counts, answer = episode.counts, exchange.answer
    counts.requests += 1
    if answer is not None:
        counts.answers += 1
        counts.response_ids += answer.response_id is not None
        counts.output_tokens += (answer.usage.output if answer.usage is not None else None) or 0


def _event(
    episode: Episode, request: Request, window: Window, exchange: Exchange, at: float, seed: int, label: str
) -> ModelCall:
    answer, failure = exchange.answer or Answer(), exchange.failure
    facts: dict[str, JSON] = {ASKED: dict(request.asked)}
    facts |= {} if exchange.first_token is None else {"first_token": exchange.first_token}
    facts |= {"waited": exchange.waited} if exchange.waited else {}
    facts |= {"failure": {"kind": failure.kind.value, **failure.facts}} if failure is not None else {}
    body = episode.bodies.keep(request.agent, exchange.raw_request)
    facts |= {sent.KEY: dict(body.facts)}
    honoured = answer.seed_honoured if answer.seed_honoured is not None else episode.seed_honoured
    return ModelCall(
        step=max(episode.step, 0),
        agent=request.agent,
        at=at,
        latency=exchange.latency,
        extra=labelled(label, facts),
        model=exchange.model,
        input=window,
        fidelity=Fidelity.RECORDED,
        tools=request.schemas,
        settings={**exchange.settings, "seed": str(seed)},
        text=answer.text,
        reasoning=answer.reasoning,
        refusal=answer.refusal,
        tool_calls=answer.tool_calls,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        attempt=episode.attempt,
        error=None if failure is None else failure.sentence,
        seed_honoured=honoured,
        served_from_cache=answer.served_from_cache,
        response_id=answer.response_id,
        fingerprint=answer.fingerprint,
        prompt=answer.prompt,
        prompt_token_ids=answer.prompt_token_ids,
        token_ids=answer.token_ids,
        logprobs=answer.logprobs,
        alternatives=answer.alternatives,
        raw_request=body.text,
        raw_response=exchange.raw_response.decode(errors="surrogateescape"),
    )


def _unasked(episode: Episode, request: Request, why: str) -> None:
    """Record a request that was not sent, with why."""
    episode.hold(
        ModelCall(
            step=max(episode.step, 0),
            agent=request.agent,
            at=episode.at(),
            model=episode.model,
            input=request.window,
            fidelity=Fidelity.RECORDED,
            tools=request.schemas,
            settings=request.asked,
            attempt=episode.attempt,
            error=why,
            extra={ASKED: dict(request.asked)},
        )
    )


def _failed(episode: Episode, request: Request) -> dict[str, JSON]:
    why = "the rerun lets the boundary model fail"
    _unasked(episode, request, why)
    return {"type": "answer", "error": {"kind": "switched off", "sentence": why, "facts": {}}}


def _reply(event: ModelCall | None) -> dict[str, JSON]:
    """Return the answer as the harness gets it."""
    answer = event or ModelCall()
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


def _call(call: ToolRequest) -> dict[str, JSON]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "raw": call.raw}
