"""From logged requests and responses to rollouts, for the formats that keep each exchange with the model.

Consecutive exchanges belong to one rollout while each sends all that the one before sent, and more; an exchange
that repeats a failed one is its retry. Tool results are taken from the request that carries them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.comparing.manner import lasting
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import Fidelity, RolloutStarted, ToolRequest, UserTurn
from harnesslab.core.trace.messages import result_of, view
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.conversation import answer_parts
from harnesslab.formats.reading.transcript import tool_call
from harnesslab.formats.reading.values import elapsed, epoch_time, text, without_nulls

_UNKNOWN = "not recorded by a log of requests and responses"
_RETRIABLE = (408, 409, 425, 429)


@dataclass(slots=True)
class LoggedExchange:
    """One request to a model and what came back."""

    messages: Sequence[JSON]
    settings: Mapping[str, JSON]
    """The request without its messages and tools."""
    output: Mapping[str, Any]
    """Fields of the model call that come from the response."""
    tools: JSON = None
    recorded: bool = True
    """Whether the request is there; a response alone shows nothing of what was sent."""
    model: str = ""
    case: str = ""
    at: float | None = None
    status: int | None = None
    origin: str = ""
    previous: str = ""
    """Id of the response whose conversation this request continues."""
    facts: dict[str, JSON] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Say whether an error came back in place of a completion."""
        return bool(self.output.get("error"))

    def follows(self, earlier: LoggedExchange) -> bool:
        """Say whether this request goes on from an earlier exchange, or tries it again after an error."""
        if self.previous and self.previous == earlier.output.get("response_id"):
            return True
        before = len(earlier.messages)
        if not before or not self.recorded or self.messages[:before] != earlier.messages:
            return False
        return len(self.messages) > before or earlier.failed


def rollouts(exchanges: Iterable[LoggedExchange], name: str, source: tuple[str, Any]) -> Iterator[Recording]:
    """Group exchanges into recordings, one rollout in memory at a time; `source` is the file's name and digest."""
    group: list[LoggedExchange] = []
    trials: dict[str, int] = {}
    position = 0
    for exchange in exchanges:
        if group and not exchange.follows(group[-1]):
            yield _recording(group, Source(*source, name, position), trials)
            position, group = position + 1, []
        group.append(exchange)
    if group:
        yield _recording(group, Source(*source, name, position), trials)


def _recording(group: Sequence[LoggedExchange], source: Source, trials: dict[str, int]) -> Recording:
    first, last = group[0], group[-1]
    opening = digest(lasting(list(first.messages))) if first.recorded else None
    case = first.case or (f"request {opening[:12]}" if opening else f"response {source.position}")
    trial = trials[case] = trials.get(case, -1) + 1
    manifest = _manifest(first, opening)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    _add(builder, group)
    outcome = _outcome(last)
    whole = all(exchange.recorded for exchange in group)
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=last.output.get("error")),
        outcome=outcome,
        case=case,
        source=source,
        model=text(manifest.value("model.name")) or text(last.model),
        trial=trial,
        replayability=Replayability.VIEW_ONLY,
        missing="harness: the log names none, so nothing can be run again"
        if whole
        else "model: the requests are not in the log, only the responses",
        started_at=epoch_time(first.at),
        ended_at=epoch_time(last.at),
        facts=first.facts,
    )


def _add(builder: TraceBuilder, group: Sequence[LoggedExchange]) -> None:
    """Append the events of one rollout's exchanges."""
    known, step, attempt = 0, -1, 0
    pending: list[tuple[int, ToolRequest]] = []
    start = next((exchange.at for exchange in group if exchange.at is not None), None)
    earlier: LoggedExchange | None = None
    for exchange in group:
        retry = earlier is not None and earlier.failed and len(exchange.messages) == len(earlier.messages)
        attempt = attempt + 1 if retry else 0
        if not retry:
            begin = _opening(exchange.messages) if step < 0 else 0 if exchange.previous else known
            _add_inputs(builder, exchange.messages, begin, pending, step)
            step += 1
        known = len(exchange.messages)
        call = builder.model_call(
            exchange.messages,
            tools=exchange.tools,
            step=step,
            attempt=attempt,
            model=exchange.model,
            settings=dict(exchange.settings),
            fidelity=Fidelity.RECORDED if exchange.recorded else Fidelity.REBUILT,
            at=elapsed(exchange.at, start),
            origin=exchange.origin,
            **exchange.output,
        )
        pending, earlier = list(enumerate(call.tool_calls)), exchange
    for emitted, request in pending:
        builder.add(tool_call(request, emitted=emitted, step=max(step, 0), has_result=False))


def _opening(messages: Sequence[JSON]) -> int:
    """Return where the last user turn of a first request begins: what is before it happened earlier."""
    for index in range(len(messages) - 1, -1, -1):
        if view(messages[index]).role in ("assistant", "tool", "function"):
            return index + 1
    return 0


def _add_inputs(
    builder: TraceBuilder, messages: Sequence[JSON], known: int, pending: list[tuple[int, ToolRequest]], step: int
) -> None:
    """Append the tool results and user turns that a request adds to the one before."""
    for index in range(known, len(messages)):
        for part in _parts(messages[index]):
            seen = view(part)
            origin = f"message {index}"
            if seen.answers or seen.role in ("tool", "function"):
                found = next((i for i, (_, call) in enumerate(pending) if call.id and call.id == seen.answers), None)
                if found is None and pending and not (seen.answers and pending[0][1].id):
                    found = 0
                emitted, request = pending.pop(found) if found is not None else (None, _orphan(seen.name, seen.answers))
                at = max(step, 0)
                builder.add(tool_call(request, emitted=emitted, step=at, result=result_of(part), origin=origin))
            elif seen.role in ("user", "human"):
                content = part.get("content") if isinstance(part, Mapping) else part
                builder.add(UserTurn(content=content, step=step + 1, origin=origin))
    for emitted, request in pending:
        builder.add(tool_call(request, emitted=emitted, step=max(step, 0), has_result=False))
    pending.clear()


def _parts(message: JSON) -> list[JSON]:
    """Return the answers of a message one by one, then what else it says."""
    parts = answer_parts(message)
    content = message.get("content") if isinstance(message, Mapping) else None
    if parts == [message] or not isinstance(message, Mapping) or not isinstance(content, list):
        return parts
    rest = [part for part in content if not (isinstance(part, Mapping) and part.get("type") == "tool_result")]
    return [*parts, {**message, "content": rest}] if rest else parts


def _orphan(name: str, call_id: str) -> ToolRequest:
    """Stand in for the request of a result whose call the source does not hold."""
    return ToolRequest(name or "unnamed", id=call_id)


def _outcome(last: LoggedExchange) -> Outcome:
    """Return what the last exchange shows; a log of requests has no verdict."""
    if last.failed:
        status = last.status
        blamed = status is not None and 400 <= status < 500 and status not in _RETRIABLE
        return Outcome.CRASH if blamed else Outcome.INFRA_ERROR
    if last.output.get("refusal") and not last.output.get("tool_calls"):
        return Outcome.REFUSED
    return Outcome.UNKNOWN


def _manifest(first: LoggedExchange, opening: str | None) -> Manifest:
    settings = first.settings
    named = (
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "seed",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
    )
    limit = next((settings[key] for key in named[5:] if settings.get(key) is not None), None)
    effort = settings.get("reasoning_effort")
    if effort is None and isinstance(reasoning := settings.get("reasoning"), Mapping):
        effort = reasoning.get("effort")
    return Manifest.of(
        {
            "panel.case": first.case or None,
            "panel.case_digest": opening,
            "model.name": first.model or None,
            "sampling.temperature": settings.get("temperature"),
            "sampling.top_p": settings.get("top_p"),
            "sampling.top_k": settings.get("top_k"),
            "sampling.max_tokens": limit,
            "sampling.stop": settings.get("stop"),
            "sampling.reasoning_effort": effort,
            "sampling.other": without_nulls(settings, "reasoning_effort", "metadata", "user", *named) or None,
            "seeds.seed": settings.get("seed"),
            "tools.schemas": digest(first.tools) if first.tools else None,
        },
        unknown=_UNKNOWN,
        reasons={"seeds.seed": "the request sends no seed"} if first.recorded else {},
    )
