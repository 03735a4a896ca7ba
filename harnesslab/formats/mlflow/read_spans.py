"""The spans of an MLflow trace as they are read, and which agent each was part of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, parse
from harnesslab.formats.reading.values import mapping, number, text

AGENT = "AGENT"
_NS = 1e9


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """One span with its attributes read: MLflow keeps each as JSON text."""

    name: str
    kind: str
    inputs: JSON
    outputs: JSON
    attributes: Mapping[str, JSON]
    start: float
    end: float | None
    error: str
    id: str = ""
    parent: str = ""

    @classmethod
    def of(cls, raw: Mapping[str, JSON]) -> ReadSpan:
        """Read a span; times are seconds since 1970."""
        attributes = {name: value_of(value) for name, value in mapping(raw.get("attributes")).items()}
        status = mapping(raw.get("status"))
        start = number(raw.get("start_time_unix_nano")) or number(raw.get("start_time")) or 0.0
        end = number(raw.get("end_time_unix_nano")) or number(raw.get("end_time"))
        failed = text(status.get("code")).endswith("ERROR") or raw.get("status_code") == "ERROR"
        return cls(
            name=text(raw.get("name")),
            kind=text(attributes.get("mlflow.spanType")),
            inputs=attributes.get("mlflow.spanInputs"),
            outputs=attributes.get("mlflow.spanOutputs"),
            attributes=attributes,
            start=start / _NS,
            end=end / _NS if end else None,
            id=text(raw.get("span_id")) or text(mapping(raw.get("context")).get("span_id")),
            parent=text(raw.get("parent_span_id")) or text(raw.get("parent_id")),
            error=(text(status.get("message")) or "the span ended with an error") if failed else "",
        )


def value_of(value: JSON) -> JSON:
    """Return what an attribute's text holds; a text that is no JSON is itself."""
    if not isinstance(value, str):
        return value
    try:
        found: JSON = parse(value)
    except ValueError:
        return value
    return found


def agent_paths(spans: Iterable[ReadSpan]) -> dict[str, str]:
    """Return by span the path of the agent that it is part of; an agent that no other called is the main one.

    A called agent's own span belongs to whoever called it.
    """
    by_id = {span.id: span for span in spans if span.id}
    children = _called(by_id)
    found: dict[str, str] = {}
    for span in by_id.values():
        above = _ancestors(span, by_id)
        inner = next((each for each in above if each.id in children), None)
        found[span.id] = children[inner.id] if inner is not None else ""
    return found


def called_agents(spans: Iterable[ReadSpan]) -> dict[str, str]:
    """Return by its span the path of each agent that another one called."""
    return _called({span.id: span for span in spans if span.id})


def _called(by_id: Mapping[str, ReadSpan]) -> dict[str, str]:
    """Name each agent below another by its span's name; the second of one name gets a number."""
    paths: dict[str, str] = {}
    counts: dict[str, int] = {}
    for span in by_id.values():
        agents = [each for each in _ancestors(span, by_id) if each.kind == AGENT]
        if span.kind != AGENT or not agents:
            continue
        outer = "/".join(each.name for each in reversed(agents[:-1]))
        path = f"{outer}/{span.name}" if outer else span.name
        counts[path] = counts.get(path, 0) + 1
        paths[span.id] = path if counts[path] == 1 else f"{path}/{counts[path]}"
    return paths


def _ancestors(span: ReadSpan, by_id: Mapping[str, ReadSpan]) -> list[ReadSpan]:
    """Return the spans above one, nearest first; a ring of parents ends where it closes."""
    above: list[ReadSpan] = []
    seen = {span.id}
    while (parent := by_id.get(span.parent)) is not None and parent.id not in seen:
        above.append(parent)
        seen.add(parent.id)
        span = parent
    return above
