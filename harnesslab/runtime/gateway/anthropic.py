"""Anthropic messages: blocks become chat messages, and an answer becomes blocks again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ModelCall, ToolRequest, Usage
from harnesslab.runtime.gateway import sse
from harnesslab.runtime.gateway.anthropic_messages import messages_of
from harnesslab.runtime.gateway.chat import checked
from harnesslab.runtime.gateway.fields import Fields, excerpt
from harnesslab.runtime.gateway.requests import AgentRequest, Problem, RequestRefused, call_id

SETTINGS = frozenset({"temperature", "top_p", "top_k", "max_tokens"})
KEPT_BACK = frozenset({"metadata", "service_tier"})
_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_KINDS = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    504: "timeout_error",
    529: "overloaded_error",
}


class Anthropic:
    """The dialect of `/v1/messages`."""

    name = "anthropic"

    def read(self, body: Mapping[str, JSON]) -> AgentRequest:
        """Read a request; raises `RequestRefused`."""
        fields = Fields(body, "a message")
        model = fields.text("model", "")
        messages = messages_of(fields.take("system"), fields.items("messages"))
        tools = [_tool(tool) for tool in fields.items("tools")]
        settings = fields.among(SETTINGS)
        if stops := fields.items("stop_sequences"):
            settings["stop"] = list(stops)
        if (choice := fields.take("tool_choice")) is not None:
            settings |= _choice(choice)
        if (form := fields.take("output_format")) is not None:
            settings["response_format"] = _format(form)
        fields.without("thinking", [{"type": "disabled"}])
        stream = fields.flag("stream")
        kept_back = fields.among(KEPT_BACK)
        fields.done()
        return AgentRequest(self.name, model, checked(messages), tools or None, settings, stream, kept_back=kept_back)

    def answer(self, request: AgentRequest, call: ModelCall) -> Mapping[str, JSON]:
        """Write a message; raises `RequestRefused` for tool arguments that are no JSON object."""
        return {**_head(request, call), "content": list(_blocks(call)), **_stop(call), "usage": _usage(call.usage)}

    def stream(self, request: AgentRequest, call: ModelCall) -> Iterator[bytes]:
        """Write a message in pieces; raises `RequestRefused` before the first."""
        return _pieces(_head(request, call), list(_blocks(call)), call)

    def problem(self, problem: Problem) -> tuple[int, Mapping[str, JSON]]:
        """Write a problem; too many requests have a status of their own."""
        status = 529 if problem.code == "overloaded" else problem.status
        error: dict[str, JSON] = {"type": _KINDS.get(status, "api_error"), "message": problem.sentence}
        error |= {"facts": dict(problem.facts)} if problem.facts else {}
        return status, {"type": "error", "error": error}


def _tool(tool: JSON) -> JSON:
    fields = Fields(tool, "a tool")
    kind = fields.text("type", "custom")
    if kind != "custom":
        raise RequestRefused(
            f"the gateway can't pass on a tool of type {excerpt(kind)}: the server would have to know it"
        )
    function: dict[str, JSON] = {"name": fields.text("name"), **fields.among({"description", "strict"})}
    function["parameters"] = fields.take("input_schema")
    fields.take("cache_control")
    fields.done()
    return {"type": "function", "function": function}


def _choice(choice: JSON) -> dict[str, JSON]:
    fields = Fields(choice, "tool_choice")
    settings: dict[str, JSON] = {}
    if fields.flag("disable_parallel_tool_use"):
        settings["parallel_tool_calls"] = False
    match fields.text("type"):
        case "auto" | "none" as word:
            settings["tool_choice"] = word
        case "any":
            settings["tool_choice"] = "required"
        case "tool":
            settings["tool_choice"] = {"type": "function", "function": {"name": fields.text("name")}}
        case kind:
            fields.refuse(f"the type {excerpt(kind)}")
    fields.done()
    return settings


def _format(form: JSON) -> JSON:
    fields = Fields(form, "output_format")
    if fields.text("type") != "json_schema":
        fields.refuse("its type")
    schema = fields.take("schema")
    fields.done()
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def _head(asked: AgentRequest, call: ModelCall) -> dict[str, JSON]:
    ident = f"msg_{call.response_id or f'{call.step}-{call.attempt}'}"
    return {"id": ident, "type": "message", "role": "assistant", "model": asked.model or call.model}


def _stop(call: ModelCall) -> dict[str, JSON]:
    reason = "tool_use" if call.tool_calls else _STOPS.get(call.finish_reason or "", "end_turn")
    if call.refusal and not call.tool_calls:
        reason = "refusal"
    return {"stop_reason": reason, "stop_sequence": None}


def _blocks(call: ModelCall) -> Iterator[dict[str, JSON]]:
    if call.reasoning:
        yield {"type": "thinking", "thinking": call.reasoning, "signature": ""}
    if call.text or call.refusal:
        yield {"type": "text", "text": call.text or call.refusal or ""}
    for number, item in enumerate(call.tool_calls):
        yield {"type": "tool_use", "id": call_id(call, number), "name": item.name, "input": _input(item)}


def _input(call: ToolRequest) -> JSON:
    if isinstance(call.arguments, Mapping):
        return call.arguments
    raise RequestRefused(
        f"the model called {excerpt(call.name)} with arguments that are no JSON object; Anthropic has no place"
    )


def _usage(usage: Usage | None) -> dict[str, JSON]:
    """Count as this dialect does: input without what was read from the cache."""
    counted = usage or Usage()
    read, wrote = counted.cache_read or 0, counted.cache_write or 0
    left = max((counted.input or 0) - read - wrote, 0)
    stated: dict[str, JSON] = {"input_tokens": left, "output_tokens": counted.output or 0}
    return {**stated, "cache_read_input_tokens": read, "cache_creation_input_tokens": wrote}


def _pieces(head: dict[str, JSON], blocks: list[dict[str, JSON]], call: ModelCall) -> Iterator[bytes]:
    usage = _usage(call.usage)
    open_: dict[str, JSON] = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
    begun: JSON = {**open_, "usage": {**usage, "output_tokens": 0}}
    yield sse.event({"type": "message_start", "message": begun}, "message_start")
    for index, block in enumerate(blocks):
        blank, deltas = _parts(block)
        start: JSON = {"type": "content_block_start", "index": index, "content_block": blank}
        yield sse.event(start, "content_block_start")
        for delta in deltas:
            piece: JSON = {"type": "content_block_delta", "index": index, "delta": delta}
            yield sse.event(piece, "content_block_delta")
        yield sse.event({"type": "content_block_stop", "index": index}, "content_block_stop")
    yield sse.event({"type": "message_delta", "delta": _stop(call), "usage": usage}, "message_delta")
    yield sse.event({"type": "message_stop"}, "message_stop")


def _parts(block: dict[str, JSON]) -> tuple[dict[str, JSON], list[JSON]]:
    match block["type"]:
        case "tool_use":
            written = sse.encoded(block["input"]).decode()
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]
        case "thinking":
            signed: JSON = {"type": "signature_delta", "signature": ""}
            return {**block, "thinking": ""}, [{"type": "thinking_delta", "thinking": block["thinking"]}, signed]
    return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
