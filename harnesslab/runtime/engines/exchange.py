"""One attempt at the model boundary: a body is sent, and what comes back becomes an exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from harnesslab.core.canonical import JSON, nested_within, parse
from harnesslab.core.running.ports import Answer, Exchange, Failure, FailureKind
from harnesslab.runtime.engines import dialect, refusals
from harnesslab.runtime.engines.stream import StreamReader
from harnesslab.runtime.engines.transport import Reply, Transport


class Pieces(Protocol):
    """What a stream adds up to."""

    finished: bool
    """Whether the server said why the answer ended."""

    def add(self, event: Mapping[str, JSON], /) -> str:
        """Take an event in and return the text it adds."""

    def to_json(self) -> dict[str, JSON]:
        """Return it as if it had come whole."""


def exchange_once(
    transport: Transport,
    path: str,
    body: Mapping[str, JSON],
    *,
    model: str,
    timeout: float,
    on_text: Callable[[str], bool] | None,
    pieces: Pieces,
    read: Callable[[JSON], Answer | Failure],
) -> Exchange:
    """Send a body once and say what happened; `read` makes the answer of a whole document."""
    sent = dialect.encoded(body)
    reader = StreamReader(pieces.add, on_text) if body.get("stream") else None
    reply = transport.send("POST", path, sent, timeout=timeout, on_bytes=None if reader is None else reader.take)
    outcome = _outcome(reply, reader, pieces, read)
    return Exchange(
        model=model,
        settings=dialect.settings_of(body),
        raw_request=sent,
        raw_response=reply.body,
        latency=reply.latency,
        answer=outcome if isinstance(outcome, Answer) else None,
        failure=outcome if isinstance(outcome, Failure) else None,
        first_token=None if reader is None else reader.first_token,
    )


def unsent(body: Mapping[str, JSON], model: str, failure: Failure) -> Exchange:
    """Return the exchange of a request that was never sent."""
    return Exchange(model, dialect.settings_of(body), b"", b"", 0.0, failure=failure)


def _outcome(
    reply: Reply, reader: StreamReader | None, pieces: Pieces, read: Callable[[JSON], Answer | Failure]
) -> Answer | Failure:
    streamed = reader is not None and reply.content_type == "text/event-stream"
    if reader is not None and reader.failure is not None and reply.status == 200:
        return reader.failure
    if reply.failure is not None and not (streamed and reader is not None and reader.done):
        return reply.failure
    if reply.status is None or not 200 <= reply.status < 300:
        return refusals.failure(reply)
    if reply.headers.get("content-encoding", "identity") != "identity":
        return Failure(FailureKind.MALFORMED, "the answer is compressed, which was not asked for")
    if streamed and reader is not None:
        return _of_stream(reader, pieces, read)
    return _of_document(reply, read)


def _of_stream(reader: StreamReader, pieces: Pieces, read: Callable[[JSON], Answer | Failure]) -> Answer | Failure:
    reader.end()
    if reader.failure is not None:
        return reader.failure
    if not pieces.finished and not (reader.done and reader.first_token is not None):
        return Failure(FailureKind.MALFORMED, "the stream ended before the answer did")
    return read(pieces.to_json())


def _of_document(reply: Reply, read: Callable[[JSON], Answer | Failure]) -> Answer | Failure:
    kind = reply.content_type or "no content type"
    if not reply.body.strip():
        return Failure(FailureKind.MALFORMED, f"the answer is empty ({kind})")
    try:
        document = parse(reply.body)
    except ValueError:
        return Failure(FailureKind.MALFORMED, f"the answer is no JSON ({kind}, {len(reply.body):,} bytes)")
    if not nested_within(document, dialect.DEEPEST):
        return Failure(FailureKind.MALFORMED, "the answer is nested without end")
    if isinstance(document, Mapping) and document.get("error") is not None:
        return refusals.in_answer(document["error"])
    return read(document)
