"""One view over the message dialects: OpenAI chat, OpenAI Responses items and Anthropic blocks.

Traces keep messages as they were sent; this module reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, canonical_bytes, parse
from harnesslab.core.trace.events import ToolRequest
from harnesslab.core.trace.parts import Part, part_of, parts_of


@dataclass(frozen=True, slots=True)
class MessageView:
    """What a message says: role, text, the calls it makes and the call it answers."""

    role: str
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolRequest, ...] = ()
    answers: str = ""
    """Id of the tool call that this message answers."""
    name: str = ""
    parts: tuple[Part, ...] = ()
    """Pictures, audio and files, in reading order; the text names each in its place."""


def view(message: JSON) -> MessageView:
    """Read a message of any known dialect; what is not understood is shown as its JSON."""
    if isinstance(message, str):
        return MessageView("user", message)
    if not isinstance(message, Mapping):
        return MessageView("unknown", canonical_bytes(message).decode())
    kind = message.get("type")
    if kind == "function_call":
        return MessageView("assistant", tool_calls=(_request(message, "call_id"),))
    if kind == "function_call_output":
        output = message.get("output")
        answers = _text(message.get("call_id"))
        return MessageView("tool", text_of(output), answers=answers, parts=parts_of(output))
    if kind == "reasoning" and "role" not in message:
        return MessageView("assistant", reasoning=text_of(message.get("summary")) or text_of(message.get("content")))
    content = message.get("content")
    calls, answers = _chat_calls(message), _text(message.get("tool_call_id"))
    if isinstance(content, list):
        calls += tuple(_request(part, "id") for part in content if isinstance(part, Mapping) and _is(part, "tool_use"))
        answered = [_text(part.get("tool_use_id")) for part in content if _is(part, "tool_result")]
        answers = answers or (answered[0] if answered else "")
    return MessageView(
        _text(message.get("role")) or "unknown",
        text_of(content) or _text(message.get("refusal")),
        _text(message.get("reasoning_content") or message.get("reasoning")) or _thinking(content),
        calls,
        answers,
        _text(message.get("name")),
        parts_of(content) if isinstance(content, list | Mapping) else (),
    )


def text_of(content: JSON) -> str:
    """Return the text of a content value: a string, or a list of parts; one that is no text is named in brackets.

    A picture is named with its type, size and digest, so that two of them never read alike.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(_part_text, content) if part)
    if isinstance(content, Mapping):
        return _part_text(content)
    return canonical_bytes(content).decode()


def result_of(answer: JSON) -> JSON:
    """Return what a message gives as the result of a tool call: its text, or all its parts where some are no text."""
    content = answer.get("output", answer.get("content")) if isinstance(answer, Mapping) else answer
    if isinstance(content, list) and len(content) == 1 and _is(content[0], "tool_result"):
        content = content[0].get("content")
    return content if parts_of(content) else view(answer).text


def parse_arguments(raw: JSON) -> tuple[JSON, str | None]:
    """Return (parsed arguments or None, argument text) of a call whose arguments are text or already JSON."""
    if not isinstance(raw, str):
        return raw, None
    try:
        return parse(raw), raw
    except ValueError:
        return None, raw


def _part_text(part: JSON) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return canonical_bytes(part).decode()
    for key in ("text", "input_text", "output_text", "refusal"):
        if isinstance(part.get(key), str):
            return _text(part[key])
    if parts := part_of(part):
        return "\n".join(map(str, parts))
    match part.get("type"):
        case "tool_result":
            return text_of(part.get("content"))
        case "tool_use" | "thinking" | "redacted_thinking":
            return ""
        case str(kind):
            return f"[{kind}]"
    return canonical_bytes(part).decode()


def _thinking(content: JSON) -> str:
    if not isinstance(content, list):
        return ""
    return "\n".join(_text(part.get("thinking")) for part in content if _is(part, "thinking"))


def _chat_calls(message: Mapping[str, JSON]) -> tuple[ToolRequest, ...]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        legacy = message.get("function_call")
        return (_request(legacy, "id"),) if isinstance(legacy, Mapping) else ()
    found = []
    for call in calls:
        if isinstance(call, Mapping):
            function = call.get("function")
            body = {**function, "id": call.get("id")} if isinstance(function, Mapping) else call
            found.append(_request(body, "id"))
    return tuple(found)


def _request(part: Mapping[str, JSON], id_key: str) -> ToolRequest:
    given = part.get("arguments", part.get("input", part.get("args")))
    arguments, raw = parse_arguments(given)
    return ToolRequest(
        name=_text(part.get("name")) or _text(part.get("function")) or "unnamed",
        arguments=arguments,
        raw=raw,
        id=_text(part.get(id_key)) or _text(part.get("id")),
    )


def _is(part: JSON, kind: str) -> bool:
    return isinstance(part, Mapping) and part.get("type") == kind


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
