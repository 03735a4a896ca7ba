"""The body of a request as it was sent, kept without the transcript that the trace holds anyway.

An agent sends its whole transcript at every step, so bodies grow with the square of steps. A body in canonical
JSON is put together again from its envelope, its messages and its tools, and its digest shows that no byte differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, bytes_digest, canonical_bytes, parse

KEY = "sent"
"""Key in a model call's `extra` of the digest and size of the body."""
_IN_TRACE = ("messages", "tools")


@dataclass(frozen=True, slots=True)
class Sent:
    """A body as it is kept."""

    text: str
    """The envelope, or the whole body where it can't be put together again."""
    facts: Mapping[str, JSON]
    """`digest` and `bytes` of the body as sent, and whether `text` is only its envelope."""


def kept(raw: bytes, messages: Sequence[JSON], tools: JSON) -> Sent:
    """Return what to keep of a body whose messages and tools are in the trace."""
    facts: dict[str, JSON] = {"digest": bytes_digest(raw), "bytes": len(raw)}
    try:
        body = parse(raw)
    except ValueError:
        body = None
    if isinstance(body, dict):
        envelope = {name: value for name, value in body.items() if name not in _IN_TRACE}
        if canonical_bytes(_filled(envelope, messages, tools)) == raw:
            return Sent(canonical_bytes(envelope).decode(), {**facts, "envelope": True})
    return Sent(raw.decode(errors="surrogateescape"), facts)


def body(text: str, facts: Mapping[str, JSON], messages: Sequence[JSON], tools: JSON) -> str:
    """Return the body as it was sent."""
    if not facts.get("envelope"):
        return text
    envelope = parse(text)
    whole = _filled(envelope if isinstance(envelope, dict) else {}, messages, tools)
    return canonical_bytes(whole).decode()


def _filled(envelope: Mapping[str, JSON], messages: Sequence[JSON], tools: JSON) -> dict[str, JSON]:
    given: dict[str, JSON] = {"messages": list(messages)}
    return {**envelope, **given, **({} if tools is None else {"tools": tools})}
