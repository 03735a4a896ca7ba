"""Anthropic's message blocks as chat messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harnesslab.core.canonical import JSON
from harnesslab.runtime.gateway.fields import Fields, excerpt, text_parts
from harnesslab.runtime.gateway.requests import RequestRefused
from harnesslab.runtime.gateway.sse import encoded

TEXT = frozenset({"text"})


def messages_of(system: JSON, messages: Sequence[JSON]) -> list[JSON]:
    """Return a request's messages in the chat dialect; raises `RequestRefused`."""
    found: list[JSON] = []
    if system is not None:
        found.append({"role": "system", "content": text_parts(system, "the system prompt", TEXT)})
    for message in messages:
        fields = Fields(message, "a message")
        role, content = fields.text("role"), fields.take("content")
        fields.done()
        if role == "assistant":
            found.append(_assistant(content))
        elif role in ("user", "system"):
            found += _user(role, content)
        else:
            raise RequestRefused(f"a message has the role {excerpt(role)}, and this dialect has user and assistant")
    return found


def _blocks(content: JSON) -> list[Fields]:
    if not isinstance(content, list):
        raise RequestRefused("the content of a message is neither text nor a list")
    return [Fields(block, "a block") for block in content]


def _user(role: str, content: JSON) -> list[JSON]:
    """Results of tools become messages of their own, before what the user says beside them."""
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    results: list[JSON] = []
    parts: list[Mapping[str, JSON]] = []
    for block in _blocks(content):
        match block.text("type"):
            case "text":
                parts.append({"type": "text", "text": block.text("text")})
                block.among({"citations"})
            case "image":
                parts.append({"type": "image_url", "image_url": {"url": _image(block.take("source"))}})
            case "tool_result":
                answer = text_parts(block.take("content"), "a tool's result", TEXT)
                results.append({"role": "tool", "tool_call_id": block.text("tool_use_id"), "content": answer})
                block.take("is_error")  # the chat dialect has no place for it; the text says what went wrong
            case kind:
                block.refuse(f"the type {excerpt(kind)}")
        block.take("cache_control")
        block.done()
    if not parts:
        return results
    whole = all(part["type"] == "text" for part in parts)
    said: JSON = "\n".join(str(part["text"]) for part in parts) if whole else list(parts)
    return [*results, {"role": role, "content": said}]


def _assistant(content: JSON) -> JSON:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JSON] = []
    for block in _blocks(content):
        match block.text("type"):
            case "text":
                texts.append(block.text("text"))
                block.among({"citations"})
            case "thinking":
                thoughts.append(block.text("thinking"))
                block.take("signature")
            case "redacted_thinking":
                block.take("data")  # sealed by another server, which alone could read it
            case "tool_use":
                written = encoded(block.take("input")).decode()
                function: JSON = {"name": block.text("name"), "arguments": written}
                calls.append({"id": block.text("id"), "type": "function", "function": function})
                block.among({"caller"})
            case kind:
                block.refuse(f"the type {excerpt(kind)}")
        block.take("cache_control")
        block.done()
    message: dict[str, JSON] = {"role": "assistant", "content": "\n".join(texts) if texts else None}
    message |= {"reasoning_content": "\n".join(thoughts)} if thoughts else {}
    return message | ({"tool_calls": calls} if calls else {})


def _image(source: JSON) -> str:
    fields = Fields(source, "an image")
    match fields.text("type"):
        case "base64":
            url = f"data:{fields.text('media_type')};base64,{fields.text('data')}"
        case "url":
            url = fields.text("url")
        case kind:
            fields.refuse(f"the source {excerpt(kind)}")
    fields.done()
    return url
