"""OpenAI chat completions: passed on nearly as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ModelCall, ToolRequest, Usage
from harnesslab.runtime.gateway import sse
from harnesslab.runtime.gateway.fields import Fields
from harnesslab.runtime.gateway.requests import AgentRequest, Problem, RequestRefused, call_id

SETTINGS = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed", "response_format", "grammar"),
        *("tool_choice", "parallel_tool_calls", "reasoning_effort", "frequency_penalty", "presence_penalty"),
        *("repetition_penalty", "repeat_penalty", "logit_bias", "chat_template_kwargs", "verbosity"),
    }
)
"""Passed on as they are; whether an engine knows one is for it to say."""
KEPT_BACK = frozenset(
    {
        *("user", "store", "metadata", "service_tier", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_retention"),
    }
)
"""Accepted and recorded, not passed on: they name or bill a request and change no answer."""
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


class Chat:
    """The dialect of `/v1/chat/completions`."""

    name = "chat"

    def read(self, body: Mapping[str, JSON]) -> AgentRequest:
        """Read a request; raises `RequestRefused`."""
        fields = Fields(body, "a chat completion")
        model, messages = fields.text("model", ""), checked(fields.items("messages"))
        tools = fields.items("tools")
        stream, options = fields.flag("stream"), fields.take("stream_options")
        settings = fields.among(SETTINGS)
        limit = fields.take("max_completion_tokens")
        if limit is not None:
            settings["max_tokens"] = limit
        fields.without("n", [1])
        fields.without("logprobs", [False])
        fields.without("top_logprobs", [0])
        fields.without("modalities", [["text"]])
        kept_back = fields.among(KEPT_BACK)
        fields.done()
        counted = isinstance(options, Mapping) and options.get("include_usage") is True
        return AgentRequest(self.name, model, messages, list(tools) or None, settings, stream, counted, kept_back)

    def answer(self, request: AgentRequest, call: ModelCall) -> Mapping[str, JSON]:
        """Write a completion."""
        message: dict[str, JSON] = {"role": "assistant", "content": call.text, **_beside(call)}
        if call.tool_calls:
            message["tool_calls"] = [_tool_call(call, number) for number in range(len(call.tool_calls))]
        choice: JSON = {"index": 0, "message": message, "finish_reason": _finish(call), "logprobs": None}
        head = _head(request, call, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(call.usage)}

    def stream(self, request: AgentRequest, call: ModelCall) -> Iterator[bytes]:
        """Write a completion in pieces."""
        head = _head(request, call, "chat.completion.chunk")
        for delta in _deltas(call):
            yield sse.event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield sse.event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(call)}]})
        if request.count_tokens:
            yield sse.event({**head, "choices": [], "usage": _usage(call.usage)})
        yield sse.DONE

    def problem(self, problem: Problem) -> tuple[int, Mapping[str, JSON]]:
        """Write a problem."""
        return problem.status, openai_problem(problem)


def openai_problem(problem: Problem) -> dict[str, JSON]:
    """Write a problem as OpenAI's APIs do; the facts stand beside."""
    kind = "invalid_request_error" if problem.status < 500 else "server_error"
    error: dict[str, JSON] = {"message": problem.sentence, "type": kind, "param": None, "code": problem.code}
    return {"error": {**error, **({"facts": dict(problem.facts)} if problem.facts else {})}}


def checked(messages: Sequence[JSON]) -> Sequence[JSON]:
    """Return messages that are messages; raises `RequestRefused`."""
    if not messages:
        raise RequestRefused("a request needs at least one message")
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if str(role) not in ROLES:
            raise RequestRefused(f"message {number} has none of the roles {', '.join(sorted(ROLES))}")
    return messages


def _head(asked: AgentRequest, call: ModelCall, kind: str) -> dict[str, JSON]:
    head: dict[str, JSON] = {"id": call.response_id or f"chatcmpl-{call.step}-{call.attempt}", "object": kind}
    named: dict[str, JSON] = {**head, "created": int(time.time()), "model": asked.model or call.model}
    return {**named, "system_fingerprint": call.fingerprint}


def _beside(call: ModelCall) -> dict[str, JSON]:
    stated: dict[str, JSON] = {"refusal": call.refusal, "reasoning_content": call.reasoning}
    return {name: value for name, value in stated.items() if value is not None}


def _deltas(call: ModelCall) -> Iterator[dict[str, JSON]]:
    yield {"role": "assistant", "content": "" if call.text is not None else None}
    for name, value in _beside(call).items():
        yield {name: value}
    if call.text:
        yield {"content": call.text}
    for number in range(len(call.tool_calls)):
        yield {"tool_calls": [{"index": number, **_tool_call(call, number)}]}


def _tool_call(call: ModelCall, number: int) -> dict[str, JSON]:
    item = call.tool_calls[number]
    function: dict[str, JSON] = {"name": item.name, "arguments": arguments_text(item)}
    return {"id": call_id(call, number), "type": "function", "function": function}


def arguments_text(call: ToolRequest) -> str:
    """Return the arguments of a call as the model wrote them, else as JSON."""
    return call.raw if call.raw is not None else sse.encoded(call.arguments).decode()


def _finish(call: ModelCall) -> str:
    return call.finish_reason or ("tool_calls" if call.tool_calls else "stop")


def _usage(usage: Usage | None) -> JSON:
    if usage is None:
        return None
    read, reasoning = usage.cache_read, usage.reasoning
    counts: dict[str, JSON] = {
        "prompt_tokens": usage.input or 0,
        "completion_tokens": usage.output or 0,
        "total_tokens": (usage.input or 0) + (usage.output or 0),
    }
    counts |= {} if read is None else {"prompt_tokens_details": {"cached_tokens": read}}
    return counts | ({} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}})
