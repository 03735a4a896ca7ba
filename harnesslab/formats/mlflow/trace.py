"""MLflow traces: one JSON document a trace, with spans for model and tool calls (MLflow 3, and 2 where it is alike)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import (
    HarnessAction,
    Retrieval,
    RolloutStarted,
    SubagentCall,
    ToolCall,
    Verification,
)
from harnesslab.core.trace.messages import view
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.mlflow.read_spans import ReadSpan, agent_paths, called_agents, value_of
from harnesslab.formats.reading.conversation import model_output
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.rows import stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import epoch_time, items, mapping, not_empty, number, text, without_nulls

NAME = "mlflow-trace"
_MODEL = {"CHAT_MODEL", "LLM"}
_UNKNOWN = "not recorded by MLflow traces"
_OURS = "harnesslab."
_PARTS = ("messages", "tools", "model")


def recognises(shape: Shape) -> bool:
    """A document with the trace's info and its spans."""
    info, data = mapping(shape.object.get("info")), mapping(shape.object.get("data"))
    return "spans" in data and bool({"trace_id", "request_id"} & info.keys())


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the trace's rollout."""
    document = mapping(unit.only.json())
    yield _recording(document, Source(stem(unit), unit.digest(), NAME), report)


def _recording(document: Mapping[str, JSON], source: Source, report: Report) -> Recording:
    info = mapping(document.get("info"))
    raw = [mapping(span) for span in items(mapping(document.get("data")).get("spans"))]
    found = sorted((ReadSpan.of(span) for span in raw), key=lambda span: span.start)
    tags = {name: text(value) for name, value in mapping(info.get("tags")).items()}
    models = [span for span in found if span.kind in _MODEL]
    if not models and found:
        report.remark(source.name, "no span of a model call: only its tools are shown")
    began = found[0].start if found else None
    case = tags.get(f"{_OURS}case") or tags.get("mlflow.traceName") or source.name
    model = next((_model_name(span) for span in models), "")
    manifest = Manifest.of({"panel.case": case, "model.name": model or None, **_sampling(models[:1])}, unknown=_UNKNOWN)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    _add_all(builder, found, began or 0.0)
    outcome = _outcome(info, tags)
    end = max((span.end for span in found if span.end), default=None)
    failed = next((span.error for span in reversed(found) if span.error), None)
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=failed if outcome is Outcome.CRASH else None),
        outcome=outcome,
        case=case,
        source=source,
        experiment=text(mapping(info.get("trace_metadata")).get("mlflow.sourceRun")),
        model=model,
        replayability=Replayability.VIEW_ONLY,
        missing="harness: the trace names none, so nothing can be run again",
        started_at=epoch_time(began),
        ended_at=epoch_time(end),
        facts=not_empty({"info": dict(info)}),
        totals=_totals(info),
    )


def _outcome(info: Mapping[str, JSON], tags: Mapping[str, str]) -> Outcome:
    """Return the outcome that a mirrored rollout states; elsewhere an error is a crash, and all else says nothing."""
    said = tags.get(f"{_OURS}outcome", "")
    if said in tuple(Outcome):
        return Outcome(said)
    state = text(info.get("state")) or text(info.get("status"))
    return {"ERROR": Outcome.CRASH, "IN_PROGRESS": Outcome.INTERRUPTED}.get(state, Outcome.UNKNOWN)


def _add_all(builder: TraceBuilder, spans: Sequence[ReadSpan], began: float) -> None:
    """Add what the spans say, in order of time; a model call opens a step."""
    paths, called = agent_paths(spans), called_agents(spans)
    step = -1
    for span in spans:
        step += span.kind in _MODEL
        timed: dict[str, Any] = {
            "at": max(0.0, span.start - began),
            "latency": None if span.end is None else max(0.0, span.end - span.start),
            "step": max(step, 0),
            "agent": paths.get(span.id, ""),
            "origin": f"span {span.id}" if span.id else "",
            "extra": not_empty({"parent": span.parent}),
        }
        if span.kind in _MODEL:
            _add_call(builder, span, timed)
        elif span.id in called:
            given: dict[str, Any] = {"input": span.inputs, "output": span.outputs, "error": span.error or None}
            builder.add(SubagentCall(name=span.name, child=called[span.id], **given, **timed))
        else:
            _add_other(builder, span, timed)


def _add_call(builder: TraceBuilder, span: ReadSpan, timed: dict[str, Any]) -> None:
    inputs = mapping(span.inputs)
    cost = number(mapping(span.attributes.get("mlflow.llm.cost")).get("total_cost"))
    timed["extra"] |= not_empty({"cost": cost})
    builder.model_call(
        _messages(span.inputs),
        tools=inputs.get("tools") or span.attributes.get("mlflow.chat.tools"),
        model=_model_name(span),
        settings=_settings(inputs),
        usage=usage.mlflow(span.attributes.get("mlflow.chat.tokenUsage")),
        error=span.error or None,
        **_answer(span.outputs),
        **timed,
    )


def _add_other(builder: TraceBuilder, span: ReadSpan, timed: dict[str, Any]) -> None:
    """Add a span that is no model's; one that holds others and says nothing itself is left to its children."""
    said = not_empty({"inputs": span.inputs, "outputs": span.outputs})
    match span.kind:
        case "TOOL":
            given: dict[str, Any] = {"arguments": span.inputs, "result": span.outputs, "error": span.error or None}
            builder.add(ToolCall(name=span.name, **given, **timed))
        case "RETRIEVER":
            builder.add(Retrieval(source=span.name, query=span.inputs, documents=span.outputs, **timed))
        case "EVALUATOR" if isinstance(passed := mapping(span.outputs).get("passed"), bool):
            judged: dict[str, Any] = {"passed": passed, "reward": number(mapping(span.outputs).get("reward"))}
            builder.add(Verification(**judged, error=span.error or None, **timed))
        case _ if said or span.error:
            timed["extra"] |= not_empty({"span_type": span.kind, "error": span.error})
            builder.add(HarnessAction(name=span.name or span.kind.lower() or "span", detail=said, **timed))


def _totals(info: Mapping[str, JSON]) -> Totals:
    """Return what the trace states of its tokens and cost as a whole."""
    stated = mapping(info.get("trace_metadata"))
    cost = number(mapping(value_of(stated.get("mlflow.trace.cost"))).get("total_cost"))
    return Totals.of(usage.mlflow(value_of(stated.get("mlflow.trace.tokenUsage"))), cost=cost)


def _messages(inputs: JSON) -> list[JSON]:
    """Return the messages that a model call was given; anything else is one message of the user."""
    if isinstance(inputs, list):
        return list(inputs)
    messages = mapping(inputs).get("messages")
    if isinstance(messages, list):
        nested = messages[0] if len(messages) == 1 and isinstance(messages[0], list) else messages
        return list(nested)
    return [{"role": "user", "content": inputs}] if inputs is not None else []


def _answer(outputs: JSON) -> dict[str, Any]:
    """Return the fields of a model call that its output states: a message, a response with choices, or text."""
    message: JSON = outputs
    choices = mapping(outputs).get("choices")
    if isinstance(choices, Sequence) and choices:
        message = mapping(mapping(choices[0]).get("message"))
    if isinstance(message, str) or message is None:
        return {"text": message}
    if not isinstance(message, Mapping) or not {"content", "tool_calls", "role"} & message.keys():
        return {"text": json.dumps(outputs, ensure_ascii=True)}
    return model_output(view(message))


def _settings(inputs: Mapping[str, JSON]) -> dict[str, JSON]:
    own = inputs.get("settings")  # of a mirrored rollout
    return dict(own) if isinstance(own, Mapping) else without_nulls(inputs, *_PARTS)


def _sampling(spans: Sequence[ReadSpan]) -> dict[str, JSON]:
    settings = _settings(mapping(spans[0].inputs)) if spans else {}
    named = {f"sampling.{name}": settings.get(name) for name in ("temperature", "top_p", "top_k", "max_tokens")}
    return {**named, "seeds.seed": None if settings.get("seed") is None else str(settings["seed"])}


def _model_name(span: ReadSpan) -> str:
    return text(span.attributes.get("mlflow.llm.model")) or text(mapping(span.inputs).get("model")) or span.name
