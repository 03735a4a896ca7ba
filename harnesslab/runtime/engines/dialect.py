"""The OpenAI chat dialect: a request to its body, a completion to an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from harnesslab.core.canonical import JSON, MAX_DEPTH, nested_within
from harnesslab.core.running.ports import Answer, Failure, FailureKind, ModelRequest
from harnesslab.core.trace import messages, usage
from harnesslab.core.trace.events import ToolRequest

NOT_SETTINGS = frozenset(
    {
        *("model", "messages", "tools", "stream", "stream_options", "rid"),
        *("return_token_ids", "return_input_ids_in_sglext", "return_output_ids_in_sglext"),
    }
)
"""Parts of a body that are recorded elsewhere, or only say what the answer shall hold."""
DEEPEST = MAX_DEPTH - 20
"""Levels of nesting that still fit into an event."""
_SAFE_INTEGER = 2**53 - 1
_SEEDS = frozenset({"seed", "sampling_seed"})


def body_of(request: ModelRequest, model: str, extra: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the body of a chat completion; `extra` are an engine's own wishes, which the request's settings beat."""
    body: dict[str, JSON] = {"model": model, "messages": list(request.messages), **extra, **request.settings}
    if request.tools is not None:
        body["tools"] = request.tools
    if request.stream:
        body["stream"] = True
        body.setdefault("stream_options", {"include_usage": True})
    return body


def encoded(body: Mapping[str, JSON]) -> bytes:
    """Return a body as JSON text; lone surrogates, which UTF-8 has no place for, are sent as their escapes."""
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(body, separators=(",", ":")).encode()


def settings_of(body: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the settings as sent; seeds and integers that no double holds as decimal strings."""
    return {key: _settled(key, value) for key, value in body.items() if key not in NOT_SETTINGS}


def _settled(key: str, value: JSON) -> JSON:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and (key in _SEEDS or abs(int(value)) > _SAFE_INTEGER):  # type: ignore[arg-type]
        return str(value)
    return value


def answer_of(completion: JSON) -> Answer | Failure:
    """Read a completion; a failure says what it lacks."""
    if not isinstance(completion, Mapping):
        return _malformed("the answer is not a JSON object")
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        return _malformed("the answer holds no choice with a message")
    if choice.get("finish_reason") == "abort":
        return Failure(FailureKind.SERVER_ERROR, "the server aborted the request")
    message = choice["message"]
    seen = messages.view(message)
    logprobs, alternatives, ids = _probabilities(choice.get("logprobs"))
    return Answer(
        text=messages.text_of(message.get("content")) if message.get("content") is not None else None,
        reasoning=seen.reasoning or None,
        refusal=_text(message.get("refusal")),
        tool_calls=tuple(map(_bounded, seen.tool_calls)),
        finish_reason=_text(choice.get("finish_reason")),
        usage=usage.openai(completion.get("usage")),
        response_id=_text(completion.get("id")),
        fingerprint=_text(completion.get("system_fingerprint")),
        prompt_token_ids=_first_ids(choice.get("prompt_token_ids"), completion.get("prompt_token_ids")),
        token_ids=_first_ids(choice.get("response_token_ids"), choice.get("token_ids"), ids),
        logprobs=logprobs,
        alternatives=alternatives,
    )


def _bounded(call: ToolRequest) -> ToolRequest:
    """Keep arguments that are nested without sense as their text alone."""
    return call if nested_within(call.arguments, DEEPEST) else ToolRequest(call.name, None, call.raw, call.id)


def token_ids(value: JSON) -> tuple[int, ...] | None:
    """Return token ids, or None for anything else."""
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        return None
    return tuple(value)


def _first_ids(*values: JSON) -> tuple[int, ...] | None:
    return next((found for value in values if (found := token_ids(value)) is not None), None)


def _probabilities(stated: JSON) -> tuple[tuple[float, ...] | None, tuple[JSON, ...] | None, JSON]:
    """Return (log-probabilities, alternatives, token ids); what isn't stated for every token is not stated."""
    content = stated.get("content") if isinstance(stated, Mapping) else None
    if not isinstance(content, list) or not content or not all(isinstance(item, Mapping) for item in content):
        return None, None, None
    values = [number(item.get("logprob")) for item in content]
    logprobs = tuple(value for value in values if value is not None)
    alternatives = [_alternatives(item.get("top_logprobs")) for item in content]
    return (
        logprobs if len(logprobs) == len(content) else None,
        tuple(alternatives) if any(alternatives) else None,
        [item.get("id") for item in content],
    )


def _alternatives(stated: JSON) -> list[JSON]:
    if not isinstance(stated, list):
        return []
    return [[item.get("token"), item.get("logprob")] for item in stated if isinstance(item, Mapping)]


def number(value: JSON) -> float | None:
    """Return a number as a float, NaN and infinities included."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


def _malformed(sentence: str) -> Failure:
    return Failure(FailureKind.MALFORMED, sentence)
