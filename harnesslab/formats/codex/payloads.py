"""What the payloads of a Codex session say: texts, results, exit codes and token counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.reading.values import mapping, number, text, whole, without_nulls


def texts(item: Mapping[str, JSON]) -> set[str]:
    """Return the texts an item shows, whole and by part."""
    parts: list[str] = []
    for key in ("content", "summary"):
        value = item.get(key)
        parts += [text(mapping(part).get("text")) for part in value] if isinstance(value, list) else [text(value)]
        parts.append(text_of(value) if isinstance(value, list) else "")
    return {part for part in parts if part}


def result(payload: Mapping[str, JSON]) -> JSON:
    """Return what a tool produced, by the kind of its event."""
    for key in ("aggregated_output", "result", "content_items"):
        if payload.get(key) is not None:
            return payload[key]
    return without_nulls({key: payload.get(key) for key in ("stdout", "stderr", "success", "changes", "error")})


def from_output(output: JSON) -> dict[str, Any]:
    """Return exit code and duration where an output is text that holds them as JSON."""
    try:
        opened = parse(output) if isinstance(output, str) and output.startswith("{") else output
    except ValueError:
        return {}
    metadata = mapping(mapping(opened).get("metadata"))
    code, seconds = whole(metadata.get("exit_code")), number(metadata.get("duration_seconds"))
    return {**({} if code is None else {"exit_code": code}), **({} if seconds is None else {"latency": seconds})}


def dialect(counts: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return Codex's flat counts by the names of the Responses API, whose convention they follow."""
    return {
        "input_tokens": counts.get("input_tokens"),
        "output_tokens": counts.get("output_tokens"),
        "input_tokens_details": {
            "cached_tokens": counts.get("cached_input_tokens"),
            "cache_write_tokens": counts.get("cache_write_input_tokens"),
        },
        "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_output_tokens")},
    }
