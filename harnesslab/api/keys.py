"""Idempotency keys of requests: the same key gives what is already there."""

from __future__ import annotations

from django.http import HttpRequest

from harnesslab.core.errors import InvalidValue

LONGEST = 80


def key_of(request: HttpRequest) -> str:
    """Return the request's key, or nothing; raises `InvalidValue` for one that can't be kept."""
    text = request.headers.get("Idempotency-Key", "")
    if len(text) > LONGEST or "\x00" in text:
        raise InvalidValue(f"no key is longer than {LONGEST} characters or holds a NUL", where="Idempotency-Key")
    return text
