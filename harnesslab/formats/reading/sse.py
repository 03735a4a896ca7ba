"""Server-sent events as text: the data of each, for logs that keep a streamed answer as it came over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from harnesslab.core.canonical import JSON, parse

_FIELDS = ("data:", "event:", "id:", "retry:", ":")


def is_stream(text: str) -> bool:
    """Say whether a text is a run of server-sent events: every line a field of one, at least one of them data."""
    lines = [line for line in text[:20_000].splitlines() if line.strip()]
    whole = lines[:-1] if len(text) > 20_000 else lines  # the last may be cut by looking at the beginning alone
    return any(line.startswith("data:") for line in whole) and all(line.startswith(_FIELDS) for line in whole)


def stream_data(text: str) -> list[Mapping[str, JSON]]:
    """Return the objects that the events carry, in order; the closing `[DONE]` and what is no object are left out."""
    found: list[Mapping[str, JSON]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("data:"):
            continue
        more = takewhile(lambda each: each.startswith("data:"), lines)  # data over several lines is one value
        body = "\n".join(part.removeprefix("data:").removeprefix(" ") for part in (line, *more))
        found += _objects(body)
    return found


def _objects(body: str) -> list[Mapping[str, JSON]]:
    """Read one event's data; lines that follow each other without a blank one may be several events."""
    for candidates in ([body], body.split("\n")):
        values: list[JSON] = []
        for text in candidates:
            try:
                values.append(parse(text))
            except ValueError:
                if text.strip() != "[DONE]":
                    break
        else:
            return [value for value in values if isinstance(value, Mapping)]
    return []
