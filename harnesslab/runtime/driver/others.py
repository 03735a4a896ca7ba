"""The boundaries beside model and tools: the case's simulated user, and the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import ModelRequest
from harnesslab.core.running.record import Miss
from harnesslab.core.running.rerun import OnMiss, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ClockRead, UserTurn
from harnesslab.runtime.driver.calls import next_place
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended, labelled

USER = "user"
CLOCK = "clock"
PINNED_START = datetime(2026, 1, 1, tzinfo=UTC)


def call_user(episode: DrivenEpisode, text: str) -> dict[str, JSON]:
    """Let the case's user answer what the agent said; the text is None where there is no more to say."""
    match _source(episode, USER):
        case Switch.FAIL:
            return {"type": "turn", "text": None}
        case Switch.RECORDED:
            turn = _served_turn(episode, text)
        case Switch.LIVE:
            turn = _spoken(episode, text)
    if turn is None:
        return {"type": "turn", "text": None}
    episode.add(turn)
    episode.said += [{"role": "user", "content": text}, {"role": "assistant", "content": turn.content}]
    return {"type": "turn", "text": turn.content}


def read_clock(episode: DrivenEpisode) -> dict[str, JSON]:
    """Tell the time: the real one, or where the clock is pinned, one second later at each reading."""
    match _source(episode, CLOCK):
        case Switch.FAIL:
            return {"type": "time", "value": ""}
        case Switch.RECORDED:
            read = _served_reading(episode)
        case Switch.LIVE:
            read = ClockRead(value=_now(episode), step=max(episode.step, 0), at=episode.at())
    episode.add(read)
    return {"type": "time", "value": read.value}


def _source(episode: DrivenEpisode, boundary: str) -> Switch:
    episode.remaining()
    return episode.switch(boundary)


def _served_turn(episode: DrivenEpisode, text: str) -> UserTurn | None:
    found = episode.record.user() if episode.record is not None else None
    if found is None:
        return _missed_turn(episode, text)
    next_place(episode, USER)
    episode.counts.served += 1
    extra = labelled("from the record", found.extra)
    return UserTurn(content=found.content, simulated=True, step=max(episode.step, 0), at=episode.at(), extra=extra)


def _missed_turn(episode: DrivenEpisode, text: str) -> UserTurn | None:
    user = episode.recipe.case.user
    if user is None or (not user.persona and episode.calls.get(USER, 0) >= len(user.replies)):
        return None  # there was no more to say then either, which leaves no event
    _miss(episode, Miss(USER, "the user was asked once more than recorded"))
    return _spoken(episode, text)


def _served_reading(episode: DrivenEpisode) -> ClockRead:
    found = episode.record.clock() if episode.record is not None else None
    if found is None:
        _miss(episode, Miss(CLOCK, "the clock was read once more than recorded"))
        return ClockRead(value=_now(episode), step=max(episode.step, 0), at=episode.at())
    next_place(episode, CLOCK)
    episode.counts.served += 1
    extra = labelled("from the record", found.extra)
    return ClockRead(value=found.value, step=max(episode.step, 0), at=episode.at(), extra=extra)


def _miss(episode: DrivenEpisode, found: Miss) -> None:
    plan = episode.plan
    episode.miss(found, live=plan is not None and plan.on_miss is OnMiss.LIVE and not episode.rebuilding)


def _now(episode: DrivenEpisode) -> str:
    number = next_place(episode, CLOCK)
    pinned = any(pin.name == CLOCK and not pin.missing for pin in episode.sandbox.pins)
    return (PINNED_START + timedelta(seconds=number) if pinned else datetime.now(UTC)).isoformat()


def _spoken(episode: DrivenEpisode, text: str) -> UserTurn | None:
    """Let the simulated user speak: its next fixed reply, or a model that plays the persona."""
    user = episode.recipe.case.user
    if user is None:
        return None
    number = next_place(episode, USER)
    if not user.persona:
        if number >= len(user.replies):
            return None
        return UserTurn(content=user.replies[number], simulated=True, step=max(episode.step, 0), at=episode.at())
    return _played(episode, user.persona, text, number)


def _played(episode: DrivenEpisode, persona: str, text: str, number: int) -> UserTurn:
    recipe = episode.recipe
    messages: list[JSON] = [{"role": "system", "content": persona}, *episode.said, {"role": "user", "content": text}]
    seed = recipe.seed(USER, number)
    settings: dict[str, JSON] = {"max_tokens": recipe.case.budgets.output, **recipe.settings, "seed": seed}
    at = episode.at()
    exchange = episode.engine.ask(
        ModelRequest(messages, settings), timeout=episode.remaining(), on_text=lambda _: not episode.stopped()
    )
    episode.counts.requests += 1
    if exchange.answer is None:
        episode.remaining()  # raises where it was stopped, or where it was the episode's own budget
        why = exchange.failure.sentence if exchange.failure is not None else "no answer"
        raise Ended(Outcome.INFRA_ERROR, f"the simulated user gave no answer: {why}")
    episode.counts.answers += 1
    usage = exchange.answer.usage
    extra: dict[str, JSON] = {
        "model": exchange.model,
        "seed": str(seed),
        "messages": messages,
        "usage": None if usage is None else {"input": usage.input, "output": usage.output},
        "raw_response": exchange.raw_response.decode(errors="surrogateescape"),
    }
    content = (exchange.answer.text or "").strip()
    return UserTurn(
        content=content, simulated=True, step=max(episode.step, 0), at=at, latency=exchange.latency, extra=extra
    )
