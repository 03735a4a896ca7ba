"""What a model call becomes in the trace, whoever asked: a loop harness, or an agent behind the gateway."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import Answer, Exchange
from harnesslab.core.running.record import ASKED
from harnesslab.core.trace import sent
from harnesslab.core.trace.events import Fidelity, ModelCall, Window
from harnesslab.runtime.driver.episode import DrivenEpisode, labelled

FROM_RECORD = "from the record"
IN_ORDER = "in order, whatever was asked"
SWITCHED_OFF = "the rerun lets the boundary model fail"


@dataclass(frozen=True, slots=True)
class Request:
    """What the harness asks, and where it stands in the trace."""

    messages: Sequence[JSON]
    tools: JSON
    settings: Mapping[str, JSON]
    """Settings as the harness stated them."""
    agent: str
    window: Window
    schemas: int | None
    body: bytes | None = None
    """The harness's own body, where it sent one; else the engine's is kept."""


def settings_of(episode: DrivenEpisode, wanted: Mapping[str, JSON], seed: int) -> dict[str, JSON]:
    """Return the settings to send: the recipe's, the harness's, the plan's overrides, and this call's seed.

    What the harness states can't exceed the case's output budget.
    """
    recipe = episode.recipe
    budget = recipe.case.budgets.output
    settings: dict[str, JSON] = {"max_tokens": budget, **recipe.settings, **wanted}
    limit = settings["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 < limit <= budget:
        settings["max_tokens"] = budget
    overrides = episode.plan.overrides if episode.plan is not None else {}
    return {**settings, **overrides, "seed": seed}


def next_seed(episode: DrivenEpisode, agent: str) -> int:
    """Return the seed of an agent's next call."""
    return episode.recipe.seed("sampling", count_call(episode, agent))


def count_call(episode: DrivenEpisode, agent: str) -> int:
    """Return the place of this call in its agent's seed stream; retries of infrastructure send the same seed."""
    return next_place(episode, f"agent {agent}")


def next_place(episode: DrivenEpisode, stream: str) -> int:
    """Return the place of this use in a stream; what is served counts too, since a rerun may go on live after it."""
    number = episode.calls.get(stream, 0)
    episode.calls[stream] = number + 1
    return number


def count(episode: DrivenEpisode, exchange: Exchange) -> None:
    """Count what the rollout itself sent."""
    counts, answer = episode.counts, exchange.answer
    counts.requests += bool(exchange.raw_request)  # one that ended while it waited for its turn was never sent
    if answer is not None:
        counts.answers += 1
        counts.response_ids += answer.response_id is not None
        counts.output_tokens += (answer.usage.output if answer.usage is not None else None) or 0


def served_call(episode: DrivenEpisode, request: Request, window: Window, event: ModelCall, label: str) -> ModelCall:
    """Return the event of a request that a recorded call answers."""
    return ModelCall(
        **{
            **{name: getattr(event, name) for name in event.__struct_fields__},
            "agent": request.agent,
            "input": window,
            "tools": request.schemas,
            "step": max(episode.step, 0),
            "at": episode.at(),
            "fidelity": Fidelity.RECORDED,
            "rejected": None,
            "raw_request": None,
            "extra": labelled(label, {**_unsent(event.extra), ASKED: dict(request.settings)}),
        }
    )


def _unsent(extra: Mapping[str, JSON]) -> dict[str, JSON]:
    """Leave out what is true of a request that was sent."""
    return {name: value for name, value in extra.items() if name not in (sent.KEY, "waited", "first_token")}


def live_call(
    episode: DrivenEpisode,
    request: Request,
    window: Window,
    exchange: Exchange,
    at: float,
    seed: int | None,
    label: str,
) -> ModelCall:
    """Return an attempt as it was made."""
    answer, failure = exchange.answer or Answer(), exchange.failure
    body = episode.bodies.keep(request.agent, exchange.raw_request if request.body is None else request.body)
    facts = {**_facts(request, exchange), sent.KEY: dict(body.facts)}
    if answer.seed_honoured is None:  # the engine says it once, when it is probed
        answer = dataclasses.replace(answer, seed_honoured=episode.seed_honoured)
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
        settings={**exchange.settings, **({} if seed is None else {"seed": str(seed)})},
        attempt=episode.attempt,
        error=None if failure is None else failure.sentence,
        raw_request=body.text,
        raw_response=exchange.raw_response.decode(errors="surrogateescape"),
        **{each.name: getattr(answer, each.name) for each in dataclasses.fields(answer)},
    )


def _facts(request: Request, exchange: Exchange) -> dict[str, JSON]:
    failure = exchange.failure
    facts: dict[str, JSON] = {ASKED: dict(request.settings)}
    facts |= {} if exchange.first_token is None else {"first_token": exchange.first_token}
    facts |= {"waited": exchange.waited} if exchange.waited else {}
    return facts | ({"failure": {"kind": failure.kind.value, **failure.facts}} if failure is not None else {})


def unasked_call(episode: DrivenEpisode, request: Request, why: str) -> ModelCall:
    """Return a request that was not sent, with why."""
    return ModelCall(
        step=max(episode.step, 0),
        agent=request.agent,
        at=episode.at(),
        model=episode.model,
        input=request.window,
        fidelity=Fidelity.RECORDED,
        tools=request.schemas,
        settings=request.settings,
        attempt=episode.attempt,
        error=why,
        extra={ASKED: dict(request.settings)},
    )
