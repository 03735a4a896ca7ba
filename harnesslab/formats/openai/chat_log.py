"""OpenAI chat-completions logs: request and response rows, Batch files, streamed chunks, and bare transcripts.

Logs of requests become rollouts by `exchanges`; transcripts (`chat_transcripts`) by `conversation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace import usage
from harnesslab.core.trace.messages import text_of, view
from harnesslab.formats.openai import chat_transcripts
from harnesslab.formats.openai.chat_streams import Stream, Streams, chunks_in, is_chunk, joined
from harnesslab.formats.openai.exchanges import LoggedExchange, rollouts
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit
from harnesslab.formats.reading.rows import rows_of
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import items, mapping, moment, number, text, whole, without_nulls

NAME = "chat-log"
_SETTINGS = frozenset((
    "temperature", "top_p", "top_k", "min_p", "n", "stop", "seed", "max_tokens", "max_completion_tokens",
    "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format",
    "tool_choice", "parallel_tool_calls", "reasoning_effort", "stream",
))  # fmt: skip
"""Names of settings, for rows that mix the request with other facts."""
_RESPONSE_KEYS = ("response", "completion", "output", "chunks")


def recognises(shape: Shape) -> bool:
    """Rows with a chat request or completion, or transcripts of role and content."""
    if shape.kind not in ("json", "lines", "stream"):
        return False
    rows = [row for row in (shape.object, *shape.head, *shape.items[:10]) if isinstance(row, Mapping) and row]
    return any(_is_exchange(row) for row in rows) or chat_transcripts.recognises(shape)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the rollouts in file order."""
    found = False
    for recording in _read(unit, report):
        found = True
        yield recording
    if not found:
        raise FormatRefused("no request, completion or transcript could be read", where=unit.name)


def _read(unit: Unit, report: Report) -> Iterator[Recording]:
    rows = rows_of(unit, report, "data", "rows", "logs")
    first = next(rows, None)
    if first is not None and _is_exchange(first.value):
        yield from rollouts(_exchanges(_again(first, rows), report), NAME, (unit.name, unit.digest()))
    else:
        yield from chat_transcripts.read(unit, report, NAME)


def _again(first: JsonLine, rows: Iterator[JsonLine]) -> Iterator[JsonLine]:
    yield first
    yield from rows


def _is_exchange(row: Mapping[str, JSON]) -> bool:
    if is_chunk(row) or row.get("object") == "chat.completion":
        return True
    request = _request(row)
    if isinstance(request.get("messages"), list):
        return request is not row or any(key in row for key in ("choices", *_RESPONSE_KEYS))
    response = mapping(row.get("response"))
    return "custom_id" in row and ("body" in response or "error" in row)


def _request(row: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the request of a row: under its own key, as the body of a Batch line, or the row itself."""
    for key in ("request", "body", "kwargs", "input"):
        found = mapping(row.get(key))
        if "messages" in found:
            return found
        if "messages" in mapping(found.get("body")):
            return mapping(found.get("body"))
    return row if "messages" in row else {}


def _exchanges(rows: Iterator[JsonLine], report: Report) -> Iterator[LoggedExchange]:
    """Yield the exchanges of a log, joining the chunks of a stream and the two halves of a Batch."""
    streams = Streams()
    batch: dict[str, tuple[Mapping[str, JSON], str]] = {}
    for row in rows:
        if is_chunk(row.value):
            yield from map(_streamed, streams.take(row.value, f"line {row.number}"))
            continue
        if streams and set(row.value) <= {"error", "timestamp"}:
            streams.broke(row.value)
            continue
        yield from map(_streamed, streams.close())
        if not _is_exchange(row.value):
            report.skip(f"line {row.number}", "neither a chat request nor a completion")
        elif "custom_id" in row.value:
            yield from _batch(row, batch)
        else:
            yield _exchange(row.value, _request(row.value), f"line {row.number}")
    yield from map(_streamed, streams.close())
    for name, (line, place) in batch.items():
        yield from [_exchange({}, _request(line), place, case=name)] if line else []


def _batch(row: JsonLine, waiting: dict[str, tuple[Mapping[str, JSON], str]]) -> Iterator[LoggedExchange]:
    """Pair a Batch request with its response where both are in the file; a response alone stands by itself."""
    name, origin = str(row.value.get("custom_id")), f"line {row.number}"
    if _request(row.value) and "response" not in row.value:
        waiting[name] = (row.value, origin)
        return
    asked, place = waiting.pop(name, ({}, origin))
    yield _exchange(row.value, _request(asked), place if asked else origin, case=name)


def _exchange(row: Mapping[str, JSON], request: Mapping[str, JSON], origin: str, case: str = "") -> LoggedExchange:
    answer = next((row[key] for key in _RESPONSE_KEYS if row.get(key) is not None), row if "choices" in row else None)
    envelope = mapping(answer)
    streamed = chunks_in(envelope.get("body")) or chunks_in(answer)
    body = joined(streamed) if streamed else mapping(envelope.get("body")) if "body" in envelope else envelope
    status = whole(envelope.get("status_code")) or whole(row.get("status_code")) or whole(row.get("status"))
    failure = _failure(row.get("error") or body.get("error"), status, body)
    output = _output(body, row, answer)
    output["error"] = failure
    named = mapping(request.get("metadata"))
    known = ("request", "body", "choices", "error", "object", *_RESPONSE_KEYS)
    return LoggedExchange(
        messages=items(request.get("messages")),
        settings=_settings(request, apart=request is not row),
        output=output,
        tools=request.get("tools") or request.get("functions"),
        recorded=bool(request),
        model=text(request.get("model")) or text(body.get("model")),
        case=case or next((str(named[key]) for key in ("case", "task_id", "instance_id") if named.get(key)), ""),
        at=moment(body.get("created")) or moment(row.get("timestamp")) or moment(row.get("created_at")),
        status=status,
        origin=origin,
        facts=without_nulls(row, *known, *(("messages", "tools", "functions", *_SETTINGS) if request is row else ())),
    )


def _settings(request: Mapping[str, JSON], *, apart: bool) -> dict[str, JSON]:
    """Return what a request states beside its messages, tools and model; of a row that is both, what is known."""
    if apart:
        return without_nulls(request, "messages", "tools", "functions", "model")
    return {key: value for key, value in without_nulls(request).items() if key in _SETTINGS}


def _failure(error: JSON, status: int | None, body: Mapping[str, JSON]) -> str | None:
    """Return what went wrong: the error given, or a status that is one, or a response without an answer."""
    if error:
        said = mapping(error)
        return text(said.get("message")) or text_of(error) or "an error without a message"
    if status is not None and status >= 400:
        return f"HTTP status {status}"
    return None if body else "no response in the log"


def _output(body: Mapping[str, JSON], row: Mapping[str, JSON], raw: JSON) -> dict[str, Any]:
    """Return the fields of the model call that a completion states."""
    choice = mapping(next(iter(items(body.get("choices"))), None))
    message = mapping(choice.get("message"))
    seen = view(message) if message else view({"role": "assistant"})
    latency = number(row.get("latency")) or number(row.get("latency_s"))
    milliseconds = number(row.get("latency_ms")) or number(row.get("duration_ms"))
    content = items(mapping(choice.get("logprobs")).get("content"))
    return {
        "text": text_of(message.get("content")) or None,
        "reasoning": seen.reasoning or None,
        "refusal": text(message.get("refusal")) or None,
        "tool_calls": seen.tool_calls,
        "finish_reason": text(choice.get("finish_reason")) or None,
        "usage": usage.openai(body.get("usage")),
        "response_id": text(body.get("id")) or None,
        "fingerprint": text(body.get("system_fingerprint")) or None,
        "prompt_token_ids": _ids(body.get("prompt_token_ids")),
        "token_ids": _ids(choice.get("token_ids")),
        "raw_response": None if raw is row else raw,
        "extra": {"other_answers": others} if (others := items(body.get("choices"))[1:]) else {},
        "latency": latency if latency is not None else (milliseconds / 1000 if milliseconds is not None else None),
        **_logprobs(content),
    }


def _ids(value: JSON) -> tuple[int, ...] | None:
    found = items(value)
    return tuple(item for item in found if isinstance(item, int)) if found else None


def _logprobs(content: Sequence[JSON]) -> dict[str, Any]:
    """Return log-probabilities and alternatives, where every token has one."""
    values = [number(mapping(item).get("logprob")) for item in content]
    if not values or None in values:
        return {}
    return {
        "logprobs": tuple(value for value in values if value is not None),
        "alternatives": tuple(mapping(item).get("top_logprobs") for item in content),
    }


def _streamed(stream: Stream) -> LoggedExchange:
    """Make the exchange of a stream whose request the log does not hold."""
    body = joined(stream.chunks)
    return _exchange({"response": body, "error": body.get("error")}, {}, stream.origin)
