"""The messages of an Inspect sample: attachments and pools put back, and each message in the chat dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, MAX_DEPTH
from harnesslab.core.trace.events import ToolRequest
from harnesslab.formats.reading.values import items, mapping, objects, text, whole

_ATTACHMENT = "attachment://"
_REQUEST_LISTS = ("messages", "input", "contents")


@dataclass(frozen=True, slots=True)
class Pools:
    """What the events of a sample refer to instead of holding it, with attachments already put back."""

    attachments: Mapping[str, JSON]
    messages: Sequence[JSON]
    calls: Sequence[JSON]

    @classmethod
    def of(cls, sample: Mapping[str, JSON]) -> Pools:
        """Read the pools of a sample; older logs have none."""
        data = mapping(sample.get("events_data"))
        messages = items(data.get("messages")) or items(sample.get("message_pool"))
        calls = items(data.get("calls")) or items(sample.get("call_pool"))
        bare = cls(mapping(sample.get("attachments")), (), ())
        resolved = [chat_message(bare.resolve(message)) for message in messages]
        return cls(bare.attachments, resolved, [bare.resolve(call) for call in calls])

    def resolve(self, value: JSON, depth: int = MAX_DEPTH) -> JSON:
        """Put attachments back in; one that is missing stays named, and what is nested too deeply stays as it is."""
        if isinstance(value, str):
            if not value.startswith(_ATTACHMENT):
                return value
            return self.attachments.get(value.removeprefix(_ATTACHMENT), value)
        if depth == 0 or not value:
            return value
        if isinstance(value, Mapping):
            return {key: self.resolve(item, depth - 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item, depth - 1) for item in value]
        return value

    def input(self, event: Mapping[str, JSON]) -> list[JSON]:
        """Return the messages of a model event, from the event itself or from the pool."""
        if refs := items(event.get("input_refs")):
            return _ranges(self.messages, refs)
        return [chat_message(self.resolve(message)) for message in items(event.get("input"))]

    def request(self, event: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Return the raw request of a model event, or an empty one."""
        call = mapping(event.get("call"))
        request = dict(mapping(self.resolve(call.get("request"))))
        if refs := items(call.get("call_refs")) or items(event.get("call_refs")):
            request[text(call.get("call_key")) or "messages"] = _ranges(self.calls, refs)
        return request


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A raw request taken apart: what goes to the payload table, and the settings that remain."""

    messages: list[JSON]
    tools: JSON
    settings: dict[str, JSON]
    headers: JSON = None


def sent(request: Mapping[str, JSON]) -> RawRequest | None:
    """Take a raw request apart; None where it holds no list of messages."""
    key = next((name for name in _REQUEST_LISTS if objects(request.get(name))), None)
    if key is None:
        return None
    messages = items(request[key])
    system = request.get("system") or request.get("instructions")
    if system:
        messages = [{"role": "system", "content": system}, *messages]
    apart = (key, "system", "instructions", "tools", "extra_headers")
    rest = {name: value for name, value in request.items() if name not in apart}
    return RawRequest(messages, request.get("tools") or None, rest, request.get("extra_headers"))


def chat_message(message: JSON) -> JSON:
    """Return an Inspect message in the chat-completions dialect, its own further fields kept."""
    if not isinstance(message, Mapping):
        return message
    if message.get("role") == "tool" and isinstance(message.get("function"), str):
        return {"name": message["function"], **message}
    if not isinstance(message.get("tool_calls"), list):
        return message
    calls: list[JSON] = [
        {
            "id": call.get("id"),
            "type": "function",
            "function": {"name": call.get("function"), "arguments": call.get("arguments")},
        }
        if isinstance(call.get("function"), str)
        else call
        for call in objects(message["tool_calls"])
    ]
    return {**message, "tool_calls": calls}


def requests(message: Mapping[str, JSON]) -> tuple[ToolRequest, ...]:
    """Return the tool calls that an Inspect message makes."""
    found = []
    for call in objects(message.get("tool_calls")):
        function = call.get("function")
        inner = mapping(function)
        broken = call.get("parse_error") is not None
        arguments = call.get("arguments", inner.get("arguments"))
        found.append(
            ToolRequest(
                name=text(function) or text(inner.get("name")) or "unnamed",
                arguments=None if broken or isinstance(arguments, str) else arguments,
                raw=arguments if isinstance(arguments, str) else None,
                id=text(call.get("id")),
            )
        )
    return tuple(found)


def spoken(message: Mapping[str, JSON]) -> tuple[str | None, str | None]:
    """Return (text, reasoning) of an assistant message."""
    content = message.get("content")
    if isinstance(content, str):
        return content or None, text(message.get("reasoning")) or None
    said = [text(part.get("text")) for part in objects(content) if part.get("type") == "text"]
    thought = [text(part.get("reasoning")) for part in objects(content) if part.get("type") == "reasoning"]
    return "\n".join(said) or None, "\n".join(filter(None, thought)) or None


def _ranges(pool: Sequence[JSON], refs: Sequence[JSON]) -> list[JSON]:
    """Return the pool's items at half-open ranges; what lies outside the pool is named, not left out."""
    found: list[JSON] = []
    for ref in refs:
        pair = items(ref)
        start, end = (whole(pair[0]), whole(pair[1])) if len(pair) == 2 else (whole(ref), None)
        if start is None or start < 0:
            continue
        stop = start + 1 if end is None else end
        found += pool[start:stop]
        if stop > max(len(pool), start):
            found.append(
                {"role": "unknown", "content": f"[messages {max(len(pool), start)} to {stop} are not in the log]"}
            )
    return found
