"""OpenAI responses: items become chat messages, and an answer becomes items again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ModelCall, Usage
from harnesslab.runtime.gateway import response_events
from harnesslab.runtime.gateway.chat import arguments_text, checked, openai_problem
from harnesslab.runtime.gateway.fields import Fields, excerpt, text_parts
from harnesslab.runtime.gateway.requests import AgentRequest, Problem, RequestRefused, call_id

SETTINGS = frozenset({"temperature", "top_p", "parallel_tool_calls", "seed", "stop"})
KEPT_BACK = frozenset(
    {
        *("store", "metadata", "user", "include", "service_tier", "prompt_cache_key", "prompt_cache_retention"),
        *("safety_identifier", "stream_options"),
    }
)
TEXTS = frozenset({"input_text", "output_text", "text"})


class Responses:
    """The dialect of `/v1/responses`, without what a server would have to keep between requests."""

    name = "responses"

    def read(self, body: Mapping[str, JSON]) -> AgentRequest:
        """Read a request; raises `RequestRefused`."""
        fields = Fields(body, "a response")
        model, instructions = fields.text("model", ""), fields.text("instructions", "")
        messages: list[JSON] = [{"role": "system", "content": instructions}] if instructions else []
        messages += _messages(fields.take("input"))
        tools = [_tool(tool) for tool in fields.items("tools")]
        settings = fields.among(SETTINGS)
        _settings(fields, settings)
        stream = fields.flag("stream")
        fields.without("background", [False])
        fields.without("truncation", ["disabled"])
        kept_back = fields.among(KEPT_BACK)
        fields.done()
        return AgentRequest(self.name, model, checked(messages), tools or None, settings, stream, kept_back=kept_back)

    def answer(self, request: AgentRequest, call: ModelCall) -> Mapping[str, JSON]:
        """Write a response."""
        return _response(request, call, _items(call), _status(call))

    def stream(self, request: AgentRequest, call: ModelCall) -> Iterator[bytes]:
        """Write a response in pieces."""
        items = _items(call)
        begun = {**_response(request, call, [], "in_progress"), "usage": None}
        return response_events.events(begun, items, _response(request, call, items, _status(call)))

    def problem(self, problem: Problem) -> tuple[int, Mapping[str, JSON]]:
        """Write a problem."""
        return problem.status, openai_problem(problem)


def _settings(fields: Fields, settings: dict[str, JSON]) -> None:
    limit, choice = fields.take("max_output_tokens"), fields.take("tool_choice")
    if limit is not None:
        settings["max_tokens"] = limit
    if choice is not None:
        settings["tool_choice"] = _choice(choice)
    reasoning = Fields(fields.take("reasoning") or {}, "reasoning")
    if (effort := reasoning.take("effort")) is not None:
        settings["reasoning_effort"] = effort
    reasoning.without("summary", ["auto", "concise", "detailed"])
    reasoning.without("generate_summary", ["auto", "concise", "detailed"])
    reasoning.done()
    text = Fields(fields.take("text") or {}, "text")
    settings |= text.among({"verbosity"})
    if (form := text.take("format")) is not None and form != {"type": "text"}:
        settings["response_format"] = _format(form)
    text.done()


def _choice(choice: JSON) -> JSON:
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if choice in ("auto", "none", "required"):
        return choice
    raise RequestRefused(f"the gateway can't pass on tool_choice {excerpt(choice)}")


def _format(form: JSON) -> JSON:
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": {name: form[name] for name in form if name != "type"}}
    if isinstance(form, Mapping) and form.get("type") == "json_object":
        return form
    raise RequestRefused(f"the gateway can't pass on the format {excerpt(form)}")


def _tool(tool: JSON) -> JSON:
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if not isinstance(tool, Mapping) or kind != "function":
        raise RequestRefused(
            f"the gateway can't pass on a tool of type {excerpt(kind)}: the server would have to run it"
        )
    return {"type": "function", "function": {name: tool[name] for name in tool if name != "type"}}


def _messages(given: JSON) -> list[JSON]:
    """Return items as chat messages: the calls of one turn are one message, as the chat dialect has it."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise RequestRefused("input is neither text nor a list")
    messages: list[Any] = []
    for item in given:
        fields = Fields(item, "an item of input")
        match fields.text("type", "message"):
            case "message":
                messages.append(_message(fields))
            case "reasoning":
                _note_reasoning(messages, fields)
            case "function_call":
                _add_call(messages, fields)
            case "function_call_output":
                call_id = fields.text("call_id")
                output = text_parts(fields.take("output"), "a call's output", TEXTS)
                messages.append({"role": "tool", "tool_call_id": call_id, "content": output})
            case kind:
                fields.refuse(f"the type {excerpt(kind)}")
        fields.among({"id", "status"})
        fields.done()
    return messages


def _message(fields: Fields) -> dict[str, JSON]:
    role, content = fields.text("role"), fields.take("content")
    fields.take("phase")
    if not isinstance(content, list):
        return {"role": role, "content": content}
    parts = [_part(part) for part in content]
    if all(isinstance(part, str) for part in parts):
        return {"role": role, "content": "\n".join(str(part) for part in parts)}
    return {"role": role, "content": [{"type": "text", "text": p} if isinstance(p, str) else p for p in parts]}


def _part(part: JSON) -> JSON:
    if isinstance(part, Mapping) and str(part.get("type")) in TEXTS and isinstance(part.get("text"), str):
        return part["text"]
    if isinstance(part, Mapping) and part.get("type") == "refusal":
        return part.get("refusal")
    if isinstance(part, Mapping) and part.get("type") == "input_image" and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    kind = part.get("type") if isinstance(part, Mapping) else part
    raise RequestRefused(f"the gateway can't pass on a part {excerpt(kind)} of a message")


def _note_reasoning(messages: list[Any], fields: Fields) -> None:
    """Give an earlier turn's reasoning back with that turn, where there is text of it."""
    found = [part for name in ("summary", "content") for part in fields.items(name)]
    fields.take("encrypted_content")
    texts = [str(part["text"]) for part in found if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    if texts:
        messages.append({"role": "assistant", "content": None, "reasoning_content": "\n".join(texts)})


def _add_call(messages: list[Any], fields: Fields) -> None:
    function: JSON = {"name": fields.text("name"), "arguments": fields.text("arguments", "")}
    call: JSON = {"id": fields.text("call_id"), "type": "function", "function": function}
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]
        messages[-1] = {**last, "tool_calls": [*last.get("tool_calls", ()), call]}
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _items(call: ModelCall) -> list[dict[str, JSON]]:
    ident = call.response_id or f"{call.step}-{call.attempt}"
    items: list[dict[str, JSON]] = []
    if call.reasoning:
        summary: JSON = [{"type": "summary_text", "text": call.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{ident}", "summary": summary})
    if call.text or call.refusal or not call.tool_calls:
        part: dict[str, JSON] = {"type": "output_text", "text": call.text or "", "annotations": []}
        parts: list[JSON] = [part] if call.text or not call.refusal else []
        parts += [{"type": "refusal", "refusal": call.refusal}] if call.refusal else []
        head: dict[str, JSON] = {"type": "message", "id": f"msg_{ident}", "status": "completed", "role": "assistant"}
        items.append({**head, "content": parts})
    for number, asked in enumerate(call.tool_calls):
        body: dict[str, JSON] = {"name": asked.name, "arguments": arguments_text(asked), "status": "completed"}
        ids: dict[str, JSON] = {"id": f"fc_{ident}_{number}", "call_id": call_id(call, number)}
        items.append({"type": "function_call", **ids, **body})
    return items


def _status(call: ModelCall) -> str:
    return "incomplete" if call.finish_reason in ("length", "content_filter") else "completed"


def _response(asked: AgentRequest, call: ModelCall, items: list[dict[str, JSON]], status: str) -> dict[str, JSON]:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(call.finish_reason or "")
    output: list[JSON] = [*items]
    return {
        "id": f"resp_{call.response_id or f'{call.step}-{call.attempt}'}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "model": asked.model or call.model,
        "output": output,
        "parallel_tool_calls": asked.settings.get("parallel_tool_calls", True),
        "temperature": asked.settings.get("temperature"),
        "tool_choice": "auto",
        "tools": [],
        "top_p": asked.settings.get("top_p"),
        "usage": _usage(call.usage),
    }


def _usage(usage: Usage | None) -> JSON:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input or 0,
        "input_tokens_details": {"cached_tokens": usage.cache_read or 0},
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": (usage.input or 0) + (usage.output or 0),
    }
