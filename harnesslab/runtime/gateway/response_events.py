"""The events in which a response of OpenAI's API is streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harnesslab.core.canonical import JSON
from harnesslab.runtime.gateway import sse


def events(
    begun: Mapping[str, JSON], items: Sequence[Mapping[str, JSON]], ended: Mapping[str, JSON]
) -> Iterator[bytes]:
    """Yield the events of a response from its first to its last, numbered."""
    for number, (kind, body) in enumerate(_events(begun, items, ended)):
        yield sse.event({"type": kind, "sequence_number": number, **body}, kind)


def _events(
    begun: Mapping[str, JSON], items: Sequence[Mapping[str, JSON]], ended: Mapping[str, JSON]
) -> Iterator[tuple[str, dict[str, JSON]]]:
    yield "response.created", {"response": dict(begun)}
    yield "response.in_progress", {"response": dict(begun)}
    for index, item in enumerate(items):
        yield "response.output_item.added", {"output_index": index, "item": _empty(item)}
        at: dict[str, JSON] = {"item_id": item["id"], "output_index": index}
        match item["type"]:
            case "message":
                yield from _message(at, item["content"])
            case "function_call":
                arguments = item["arguments"]
                yield "response.function_call_arguments.delta", {**at, "delta": arguments}
                yield "response.function_call_arguments.done", {**at, "arguments": arguments}
            case "reasoning":
                yield from _reasoning(at, item["summary"])
        yield "response.output_item.done", {"output_index": index, "item": dict(item)}
    yield f"response.{ended['status']}", {"response": dict(ended)}


def _message(at: dict[str, JSON], parts: JSON) -> Iterator[tuple[str, dict[str, JSON]]]:
    for number, part in enumerate(parts if isinstance(parts, list) else ()):
        here: dict[str, JSON] = {**at, "content_index": number}
        name = "text" if part["type"] == "output_text" else "refusal"
        said = "output_text" if name == "text" else name
        yield "response.content_part.added", {**here, "part": {**part, name: ""}}
        yield f"response.{said}.delta", {**here, "delta": part[name]}
        yield f"response.{said}.done", {**here, name: part[name]}
        yield "response.content_part.done", {**here, "part": part}


def _reasoning(at: dict[str, JSON], parts: JSON) -> Iterator[tuple[str, dict[str, JSON]]]:
    for number, part in enumerate(parts if isinstance(parts, list) else ()):
        here: dict[str, JSON] = {**at, "summary_index": number}
        yield "response.reasoning_summary_part.added", {**here, "part": {**part, "text": ""}}
        yield "response.reasoning_summary_text.delta", {**here, "delta": part["text"]}
        yield "response.reasoning_summary_text.done", {**here, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**here, "part": part}


def _empty(item: Mapping[str, JSON]) -> JSON:
    """Return an item as it is announced: what is still to come is empty."""
    blank: dict[str, JSON] = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
    return {name: blank.get(name, value) for name, value in item.items()}
