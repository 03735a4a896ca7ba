"""Server-sent events, and JSON that any text survives."""

from __future__ import annotations

import json

from harnesslab.core.canonical import JSON


def encoded(body: JSON) -> bytes:
    """Return JSON in ASCII: lone surrogates as their escapes."""
    return json.dumps(body, separators=(",", ":")).encode()


def event(data: JSON, name: str = "") -> bytes:
    """Return one event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encoded(data) + b"\n\n"


DONE = b"data: [DONE]\n\n"
