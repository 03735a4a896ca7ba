"""MLflow traces: read from MLflow's own JSON, whatever dialect its spans speak, and written as spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.running.rollout import Outcome, Recording
from harnesslab.core.trace.events import HarnessAction, ModelCall, Retrieval, SubagentCall, ToolCall
from harnesslab.core.trace.stated import lines_of
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.mlflow.spans import LARGEST, spans, walk
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.registry import recognise, recordings


def span(kind: str, start: int, inputs: Any, outputs: Any, name: str = "call", usage: Any = None) -> dict[str, Any]:
    """Return a span as MLflow 3 writes it: each attribute as JSON text, times in nanoseconds."""
    given = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
    given |= {"mlflow.chat.tokenUsage": usage} if usage else {}
    return {
        "trace_id": "dHI=",
        "span_id": "c3A=",
        "name": name,
        "start_time_unix_nano": 1_790_000_000_000_000_000 + start * 10**9,
        "end_time_unix_nano": 1_790_000_000_000_000_000 + (start + 1) * 10**9,
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {key: json.dumps(value) for key, value in given.items()},
    }


def read(found: list[dict[str, Any]], **info: Any) -> Recording:
    """Read a trace of some spans."""
    document = {"info": {"trace_id": "tr-1", "state": "OK", **info}, "data": {"spans": found}}
    unit = Unit("tr-1.json", {"tr-1.json": InputFile.of_bytes("tr-1.json", json.dumps(document).encode())})
    recognised = recognise(unit)
    assert recognised.importer.NAME == "mlflow-trace"
    (recording,) = recordings(recognised, Report())
    return recording


ASKED = {"messages": [{"role": "user", "content": "hi"}], "model": "m", "temperature": 0.5, "seed": 7}


def test_model_and_tool_spans_are_the_steps_in_order_of_time() -> None:
    recording = read(
        [
            span("TOOL", 2, {"command": "ls"}, "a.txt", name="run"),
            span("AGENT", 0, "task", "done"),
            span("CHAT_MODEL", 1, ASKED, {"choices": [{"message": {"role": "assistant", "content": "ls"}}]}),
            span("LLM", 3, "and now?", "submit"),
        ]
    )
    calls = [event for event in recording.trace.events if isinstance(event, ModelCall)]
    assert [(call.step, call.text) for call in calls] == [(0, "ls"), (1, "submit")]
    assert dict(calls[0].settings) == {"temperature": 0.5, "seed": 7}
    (tool,) = [event for event in recording.trace.events if isinstance(event, ToolCall)]
    assert (tool.name, tool.result, tool.step, tool.at, tool.latency) == ("run", "a.txt", 0, 2.0, 1.0)
    assert recording.model == "m"
    assert recording.manifest.value("seeds.seed") == "7"


@pytest.mark.parametrize(
    ("stated", "counts"),
    [
        ({"input_tokens": 10, "output_tokens": 2}, (10, 2, None)),
        ({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 4}, (10, 2, 4)),
        ({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 40}, (43, 2, 40)),
    ],
)
def test_cached_tokens_are_counted_once(stated: dict[str, int], counts: tuple[int | None, ...]) -> None:
    recording = read([span("CHAT_MODEL", 0, ASKED, "x", usage=stated)])
    (call,) = [event for event in recording.trace.events if isinstance(event, ModelCall)]
    assert call.usage is not None
    assert (call.usage.input, call.usage.output, call.usage.cache_read) == counts


@pytest.mark.parametrize(
    ("info", "outcome"),
    [
        ({}, Outcome.UNKNOWN),
        ({"state": "ERROR"}, Outcome.CRASH),
        ({"state": "IN_PROGRESS"}, Outcome.INTERRUPTED),
        ({"state": "ERROR", "tags": {"harnesslab.outcome": "infra_error"}}, Outcome.INFRA_ERROR),
    ],
)
def test_mlflow_states_no_verdict(info: dict[str, Any], outcome: Outcome) -> None:
    assert read([span("CHAT_MODEL", 0, ASKED, "x")], **info).outcome is outcome


@pytest.mark.parametrize("outputs", [None, 3, [1], {"any": "thing"}, "\ud800", {"content": "\x00"}])
def test_any_output_is_read(outputs: Any) -> None:
    (call,) = [e for e in read([span("LLM", 0, ["x"], outputs)]).trace.events if isinstance(e, ModelCall)]
    assert (call.text is None) == (outputs is None)


def test_attributes_that_are_no_json_are_themselves_and_a_trace_of_nothing_is_one() -> None:
    broken = span("TOOL", 0, "x", "y", name="t")
    broken["attributes"]["mlflow.spanOutputs"] = "{half"
    (tool,) = [event for event in read([broken]).trace.events if isinstance(event, ToolCall)]
    assert tool.result == "{half"
    assert len(read([]).trace.events) == 2


def test_a_long_message_list_is_shown_by_what_is_new() -> None:
    builder = TraceBuilder()
    messages: list[Any] = [{"role": "user", "content": "x" * LARGEST}]
    builder.model_call(messages, model="m", step=0)
    builder.model_call([*messages, {"role": "user", "content": "more"}], model="m", step=1, served_from_cache=True)
    steps = spans(builder.close("unknown"))
    second = [each for each in walk(steps) if each.kind == "CHAT_MODEL"][1]
    assert second.inputs == {"messages": [{"role": "user", "content": "more"}], "unchanged_before": 1, "settings": {}}
    assert "mlflow.chat.tokenUsage" not in second.attributes


def under(parent: str, name: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "span_id": name, "parent_span_id": parent}


def test_agents_their_inputs_and_parents_are_kept() -> None:
    recording = read(
        [
            under("", "a", span("AGENT", 0, {"task": "go"}, "all done", name="boss")),
            under("a", "b", span("CHAT_MODEL", 1, ASKED, "ask the other")),
            under("a", "c", span("AGENT", 2, {"q": 1}, {"r": 2}, name="helper")),
            under("c", "d", span("CHAIN", 3, None, None, name="empty")),
            under("d", "e", span("LLM", 4, "hm", "yes")),
            under("c", "f", span("RETRIEVER", 5, "query", ["doc"], name="index")),
            under("a", "g", span("AGENT", 6, None, None, name="helper")),
        ]
    )
    events = recording.trace.events
    (root,) = [event for event in events if isinstance(event, HarnessAction)]
    assert (root.name, root.detail, root.agent) == ("boss", {"inputs": {"task": "go"}, "outputs": "all done"}, "")
    handed = [event for event in events if isinstance(event, SubagentCall)]
    assert [(call.child, call.agent) for call in handed] == [("helper", ""), ("helper/2", "")]
    assert (handed[0].input, handed[0].output, handed[0].extra["parent"]) == ({"q": 1}, {"r": 2}, "a")
    calls = [event for event in events if isinstance(event, ModelCall)]
    assert [(call.agent, call.extra["parent"], call.origin) for call in calls] == [
        ("", "a", "span b"),
        ("helper", "d", "span e"),
    ]
    (found,) = [event for event in events if isinstance(event, Retrieval)]
    assert (found.source, found.query, found.documents, found.agent) == ("index", "query", ["doc"], "helper")


def test_a_ring_of_parents_is_read() -> None:
    ring = [under("b", "a", span("AGENT", 0, 1, 2)), under("a", "b", span("AGENT", 1, 1, 2))]
    assert len(read(ring).trace.events) == 4


def test_the_traces_own_tokens_are_balanced() -> None:
    stated = {"mlflow.trace.tokenUsage": json.dumps({"input_tokens": 90, "output_tokens": 9})}
    used = {"input_tokens": 30, "output_tokens": 9}
    recording = read([span("CHAT_MODEL", 0, ASKED, "a", usage=used)], trace_metadata=stated)
    (short,) = [line for line in lines_of(recording.trace.events[-1].extra) if line.short]
    assert str(short) == "input tokens: the source states 90, 30 stored"
