"""A trace as the spans that MLflow shows: one a step, and in it one a model call, tool call and verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.trace.answers import spent
from harnesslab.core.trace.events import (
    AnyEvent,
    HarnessAction,
    ModelCall,
    SubagentCall,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.labels import label
from harnesslab.core.trace.messages import text_of
from harnesslab.core.trace.trace import Trace, Windows

LARGEST = 60_000
"""Bytes of a call's whole message list; of a longer one the span shows what was new, and says so."""
USAGE = "mlflow.chat.tokenUsage"


@dataclass(frozen=True, slots=True)
class MlflowSpan:
    """One span; times are seconds since the rollout began."""

    name: str
    kind: str
    start: float
    end: float
    inputs: JSON = None
    outputs: JSON = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    error: str = ""
    inside: tuple[MlflowSpan, ...] = ()


def spans(trace: Trace) -> list[MlflowSpan]:
    """Return the steps of a trace as spans, with what happened in each; events without a time follow the last one."""
    steps: list[tuple[int, list[MlflowSpan]]] = []
    windows, now = Windows(), 0.0
    for event in trace.events:
        messages = windows.open(event) if isinstance(event, ModelCall) else []
        start = max(now, event.at) if event.at is not None else now
        made = _span(event, trace, messages, start)
        if made is None:
            continue
        now = max(now, made.end)
        if not steps or steps[-1][0] != event.step:
            steps.append((event.step, []))
        steps[-1][1].append(made)
    return [_step(number, inside) for number, inside in steps]


def _step(number: int, inside: Sequence[MlflowSpan]) -> MlflowSpan:
    named = next((span.name for span in inside if span.kind == "TOOL"), "")
    name = f"step {number + 1}: {named}" if named else f"step {number + 1}"
    return MlflowSpan(name, "CHAIN", inside[0].start, max(span.end for span in inside), inside=tuple(inside))


def _span(event: AnyEvent, trace: Trace, messages: Sequence[int], start: float) -> MlflowSpan | None:
    end = start + (event.latency or 0.0)
    match event:
        case ModelCall():
            return _model(event, trace, messages, start, end)
        case ToolCall():
            attributes: dict[str, JSON] = {"exit_code": event.exit_code, "timed_out": event.timed_out}
            why = event.error or ("timed out" if event.timed_out else "")
            return MlflowSpan(event.name, "TOOL", start, end, event.arguments, event.result, attributes, why)
        case Verification():
            tests: list[JSON] = [{"name": test.name, "passed": test.passed} for test in event.tests]
            found: dict[str, JSON] = {"passed": event.passed, "reward": event.reward, "tests": tests}
            return MlflowSpan("verifier", "EVALUATOR", start, end, None, found, error=event.error or "")
        case HarnessAction():
            named = event.mechanism or event.name
            return MlflowSpan(named, "GUARDRAIL" if event.mechanism else "UNKNOWN", start, end, None, event.detail)
        case UserTurn():
            return MlflowSpan("user", "UNKNOWN", start, end, None, event.content)
        case SubagentCall():
            return MlflowSpan(event.name, "AGENT", start, end, event.input, event.output, error=event.error or "")
    return None


def _model(event: ModelCall, trace: Trace, messages: Sequence[int], start: float, end: float) -> MlflowSpan:
    whole: list[JSON] = [trace.payloads[position] for position in messages]
    inputs: dict[str, JSON] = {"messages": whole, "settings": dict(event.settings)}
    if sum(len(canonical_bytes(message)) for message in whole) > LARGEST:
        new: list[JSON] = [trace.payloads[position] for position in event.input.add]
        inputs = {"messages": new, "unchanged_before": event.input.keep, "settings": dict(event.settings)}
    calls: list[JSON] = [{"name": call.name, "arguments": call.arguments} for call in event.tool_calls]
    outputs: dict[str, JSON] = {"role": "assistant", "content": event.text, "tool_calls": calls}
    if event.reasoning:
        outputs["reasoning"] = event.reasoning
    attributes: dict[str, JSON] = {
        "finish_reason": event.finish_reason,
        "attempt": event.attempt,
        "rejected": event.rejected,
        "served_from_cache": event.served_from_cache,
    }
    usage = _usage(event)
    if usage:
        attributes[USAGE] = usage
    return MlflowSpan(event.model or "model", "CHAT_MODEL", start, end, inputs, outputs, attributes, event.error or "")


def _usage(event: ModelCall) -> dict[str, JSON]:
    """Return the tokens that a call cost, by the rule of every count; what is not stated is left out."""
    used = spent(event)
    counts: dict[str, JSON] = {}
    if used.input is not None:
        counts["input_tokens"] = used.input
    if used.output is not None:
        counts["output_tokens"] = used.output
    if used.cache_read is not None:
        counts["cache_read_input_tokens"] = used.cache_read
    if used.input is not None and used.output is not None:
        counts["total_tokens"] = used.input + used.output
    return counts


def instruction(trace: Trace) -> str:
    """Return what the agent was asked: the first words of a user."""
    for event in trace.events:
        if isinstance(event, UserTurn):
            return text_of(event.content)
        if isinstance(event, ModelCall):
            asked = (trace.payloads[position] for position in event.input.add)
            users = (each for each in asked if isinstance(each, Mapping) and each.get("role") == "user")
            return next((text_of(each.get("content")) for each in users), label(event).detail)
    return ""


def walk(spans: Sequence[MlflowSpan]) -> Iterator[MlflowSpan]:
    """Yield spans with all that is in them, outer ones first."""
    for span in spans:
        yield span
        yield from walk(span.inside)
