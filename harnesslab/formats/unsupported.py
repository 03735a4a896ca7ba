"""Shapes that are recognised and not imported, so that a refusal can say what the file is and what would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.texts import TEXTS
from harnesslab.formats.reading.values import items, mapping

_EXCHANGES = "log each request with its response as JSON lines, and import these"
_OTHERS = "docs/formats.md lists the sessions that can be imported"
_SPANS = "import the agent's own log of the run instead, which keeps what spans leave out"


@dataclass(frozen=True, slots=True)
class UnsupportedShape:
    """A shape with the reason for not importing it, and what would help."""

    matches: Callable[[Shape], bool]
    reason: str
    hint: str


def refusal(shape: Shape) -> FormatRefused | None:
    """Return the refusal of a shape that is known and unsupported, else None."""
    for known in _KNOWN:
        if known.matches(shape):
            return FormatRefused(known.reason, where=shape.unit.name, hint=known.hint)
    return None


def _has(*keys: str) -> Callable[[Shape], bool]:
    """Match a document, or the first line or item, that has all the keys."""
    return lambda shape: set(keys) <= shape.object.keys() or set(keys) <= shape.first_object().keys()


def _first(test: Callable[[Mapping[str, JSON]], bool]) -> Callable[[Shape], bool]:
    return lambda shape: any(test(mapping(row)) for row in (shape.object, shape.first_object()) if row)


def _jaeger(shape: Shape) -> bool:
    return {"traceID", "spans"} <= mapping(next(iter(items(shape.object.get("data"))), None)).keys()


def _monocle(row: Mapping[str, JSON]) -> bool:
    return any(key.startswith("monocle") for key in mapping(row.get("attributes")))


def _span(row: Mapping[str, JSON]) -> bool:
    ids = row.keys() | mapping(row.get("context")).keys() | mapping(row.get("spanContext")).keys()
    named = {"name", "span_name"} & row.keys()
    return bool(named) and bool({"span_id", "spanId"} & ids) and bool({"trace_id", "traceId"} & ids)


def _span_group(row: Mapping[str, JSON]) -> bool:
    return _span(mapping(next(iter(items(row.get("spans"))), None)))


def _openhands_output(row: Mapping[str, JSON]) -> bool:
    first = mapping(next(iter(items(row.get("history"))), None))
    return "action" in first and bool({"git_patch", "test_result", "instance_id"} & row.keys())


def _typed(*kinds: str) -> Callable[[Mapping[str, JSON]], bool]:
    return lambda row: row.get("type") in kinds


def _qwen(row: Mapping[str, JSON]) -> bool:
    return "sessionId" in row and "parts" in mapping(row.get("message"))


def _opencode(shape: Shape) -> bool:
    first = mapping(next(iter(items(shape.object.get("messages"))), None))
    return {"info", "parts"} <= first.keys() or {"sessionID", "messageID"} <= shape.object.keys()


def _cast(shape: Shape) -> bool:
    """Match a header with the terminal's size, and events that are lists."""
    return {"version", "width", "height"} <= shape.first_object().keys() and shape.kind in ("lines", "json")


def _archive(shape: Shape) -> bool:
    return {"entries", "creator"} <= mapping(shape.object.get("log")).keys()


def _commits(row: Mapping[str, JSON]) -> bool:
    return bool({"commits", "pulls", "branches", "promotion_history", "candidates"} & row.keys())


def _stream(*kinds: str) -> Callable[[Shape], bool]:
    """Match server-sent events, or their data as lines, that begin with such a type; any events where none is."""
    kept = ("stream", "lines") if kinds else ("stream",)
    return lambda shape: shape.kind in kept and (not kinds or shape.first_object().get("type") in kinds)


_KNOWN: tuple[UnsupportedShape, ...] = (
    UnsupportedShape(
        _has("atof_version", "kind"), "an ATOF event stream, which is not supported", "import the ATIF made from it"
    ),
    UnsupportedShape(_has("resourceSpans"), "an OpenTelemetry span export (OTLP), which is not supported", _SPANS),
    UnsupportedShape(_has("batches"), "a Grafana Tempo span export, which is not supported", _SPANS),
    UnsupportedShape(_jaeger, "a Jaeger span export, which is not supported", _SPANS),
    UnsupportedShape(_has("trace", "observations"), "a Langfuse trace export, which is not supported", _SPANS),
    UnsupportedShape(_first(_monocle), "a Monocle span list, which is not supported", _SPANS),
    UnsupportedShape(_first(_span), "a list of OpenTelemetry spans, which is not supported", _SPANS),
    UnsupportedShape(_first(_span_group), "a dump of OpenTelemetry spans, which is not supported", _SPANS),
    UnsupportedShape(
        _has("total", "passed", "instances"),
        "a summary of results per instance, without traces",
        "import the trajectories it sums up",
    ),
    UnsupportedShape(
        _has("instance_id", "model_patch", "model_name_or_path"),
        "SWE-bench predictions: patches without traces",
        "import the trajectories of these instances",
    ),
    UnsupportedShape(
        _has("task", "trial", "outcome"),
        "an analysis of a trial, not the trial itself",
        "import the trial that it is about",
    ),
    UnsupportedShape(
        _has("_doc", "stub_config"),
        "expected values of a test of an experiment runner, not a recorded run",
        "import the experiment's folder",
    ),
    UnsupportedShape(
        _has("task_duration_seconds"), "a table of task durations, without traces", "import the experiment's folder"
    ),
    UnsupportedShape(
        _has("metric", "rows"),
        "a table of measured results, without traces",
        "import the runs it was made from",
    ),
    UnsupportedShape(
        _first(_commits), "a history of commits or candidates, without runs", "import the experiments' folder"
    ),
    UnsupportedShape(
        _first(_openhands_output),
        "OpenHands evaluation output, which is not supported",
        "export the runs as ATIF trajectories",
    ),
    UnsupportedShape(
        _first(_typed("message.in", "agent.start", "tool.start", "tool.end")),
        "OpenClaw telemetry: it holds prompts and calls without results, and is not supported",
        "import the agent's session files",
    ),
    UnsupportedShape(_first(_qwen), "a Qwen Code session, which is not supported", _OTHERS),
    UnsupportedShape(_has("sessionId", "projectHash"), "a Gemini CLI session, which is not supported", _OTHERS),
    UnsupportedShape(
        _has("requesterUsername", "requests"), "a VS Code Copilot Chat export, which is not supported", _OTHERS
    ),
    UnsupportedShape(_opencode, "an OpenCode session, which is not supported", _OTHERS),
    UnsupportedShape(_has("run_type", "inputs"), "a LangSmith run export, which is not supported", _SPANS),
    UnsupportedShape(_has("op_name", "trace_id"), "a Weave call export, which is not supported", _SPANS),
    UnsupportedShape(_cast, "a recording of a terminal (asciinema), not a trace", "import the folder it belongs to"),
    UnsupportedShape(_archive, "an HTTP archive (HAR), which is not supported", _EXCHANGES),
    UnsupportedShape(_has("cells", "nbformat"), "a notebook, not a trace", "import the data that it describes"),
    UnsupportedShape(
        _has("events", "expected"),
        "a test case with its expected result, not a recorded run",
        "import the run's own log",
    ),
    UnsupportedShape(
        _stream("message_start", "ping"), "a captured stream of Anthropic messages, which is not supported", _EXCHANGES
    ),
    UnsupportedShape(_stream(), "server-sent events of no known kind of answer", _EXCHANGES),
    *(UnsupportedShape(matches, reason, hint) for matches, reason, hint in TEXTS),
)
