"""Sessions of the pi and droid agents: a header line, then lines with messages and changes of settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.answers import REQUESTOR, USER
from harnesslab.core.trace.events import ToolCall, Usage
from harnesslab.core.trace.messages import result_of, text_of, view
from harnesslab.formats.coding_sessions.branches import Branches, copied_entries, links
from harnesslab.formats.reading.conversation import answer_parts
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit
from harnesslab.formats.reading.rows import rows_of
from harnesslab.formats.reading.session_events import SessionEvents
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import (
    elapsed,
    epoch_time,
    items,
    mapping,
    moment,
    most_used,
    text,
    whole,
    without_nulls,
)

NAME = "coding-session"
_UNKNOWN = "not recorded by the agent's session file"
_AGENTS = {"session": "pi", "session_start": "droid"}
"""The agent by the type of its header line."""
_MISSING = "model: the requests (system prompt, tool schemas, settings) are not recorded, only the conversation"
_STOPS = {"aborted": Outcome.INTERRUPTED, "error": Outcome.INFRA_ERROR}


def recognises(shape: Shape) -> bool:
    """A header of a session, and lines with messages of role and content."""
    rows = [mapping(row) for row in shape.head]
    spoken = [mapping(row.get("message")) for row in rows if row.get("type") == "message"]
    headed = any(text(row.get("type")) in _AGENTS and "id" in row for row in rows[:3])
    return headed and any({"role", "content"} <= message.keys() for message in spoken)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's sessions, each from its header to the next, one in memory at a time."""
    source_digest, position = unit.digest(), 0
    lines: list[JsonLine] = []
    for line in rows_of(unit, report):
        if text(line.value.get("type")) in _AGENTS and any(item.value.get("type") == "message" for item in lines):
            yield _recording(unit, lines, Source(unit.name, source_digest, NAME, position), report)
            lines, position = [], position + 1
        lines.append(line)
    if not lines:
        raise FormatRefused("no session line could be read", where=unit.name)
    yield _recording(unit, lines, Source(unit.name, source_digest, NAME, position), report)


def _recording(unit: Unit, lines: Sequence[JsonLine], source: Source, report: Report) -> Recording:
    header = next((line.value for line in lines if text(line.value.get("type")) in _AGENTS), {})
    harness = _AGENTS.get(text(header.get("type")), "")
    replies = [mapping(line.value.get("message")) for line in lines if line.value.get("type") == "message"]
    model = most_used(text(reply.get("model")) for reply in replies) or text(header.get("modelId"))
    times = [at for line in lines if (at := moment(line.value.get("timestamp"))) is not None]
    start = min(times) if times else None
    manifest = _conditions(header, harness, model)
    events = SessionEvents(manifest)
    copied = copied_entries(unit, header, lines)
    branches = Branches(events, text(header.get("id")), copied)
    for line in lines:
        at, first = elapsed(moment(line.value.get("timestamp")), start), len(events.builder.events)
        if text(line.value.get("type")) not in _AGENTS:
            branches.enter(line.value)
            _add(events, line.value, report, {"at": at, "origin": f"line {line.number}"})
            branches.note(line.value)
            branches.leave(line, first)
    outcome = _outcome(replies, events)
    branches.close()
    return Recording(
        manifest=manifest,
        trace=events.builder.close(outcome),
        outcome=outcome,
        case=text(header.get("id")) or source.name,
        source=source,
        harness=harness,
        workspace=text(header.get("cwd")),
        revision=text(header.get("version")),
        model=model,
        replayability=Replayability.VIEW_ONLY,
        missing=_MISSING,
        started_at=epoch_time(start),
        ended_at=epoch_time(max(times) if times else None),
        facts=links(header, copied),
    )


def _conditions(header: Mapping[str, JSON], harness: str, model: str) -> Manifest:
    return Manifest.of(
        {
            "harness.name": harness or None,
            "harness.revision": text(header.get("version")) or None,
            "model.name": model or None,
            "model.provider": header.get("provider"),
            "sampling.reasoning_effort": header.get("thinkingLevel"),
            "environment.platform": header.get("cwd"),
        },
        unknown=_UNKNOWN,
    )


def _outcome(replies: Sequence[Mapping[str, JSON]], events: SessionEvents) -> Outcome:
    """Return what the last message shows: how its reply stopped, or a call that has no result."""
    stop = text(replies[-1].get("stopReason")) if replies else ""
    return _STOPS.get(stop, Outcome.INTERRUPTED if events.waiting else Outcome.UNKNOWN)


def _add(events: SessionEvents, row: Mapping[str, JSON], report: Report, fields: dict[str, Any]) -> None:
    """Append what a line is."""
    message = mapping(row.get("message"))
    if row.get("type") != "message":
        events.note(
            text(row.get("type")) or "line", without_nulls(row, "type", "timestamp", "id", "parentId"), **fields
        )
    elif message.get("role") == "bashExecution":
        _ran(events, message, fields)
    elif "content" not in message:
        report.skip(str(fields["origin"]), "a message without content")
    elif message.get("role") == "assistant":
        _reply(events, message, fields)
    elif message.get("role") == "toolResult":
        shown = text_of(message.get("content"))
        error = shown if message.get("isError") is True else None
        extra = without_nulls({"details": message.get("details")})
        name = text(message.get("toolName"))
        events.result(
            text(message.get("toolCallId")), name, result=result_of(message), error=error, extra=extra, **fields
        )
        events.lineage.say(message)
    else:
        _said(events, message, fields)


def _ran(events: SessionEvents, message: Mapping[str, JSON], fields: dict[str, Any]) -> None:
    """Append a command that a person ran in the session; the model is told of it unless it was kept out."""
    command, output = text(message.get("command")), text(message.get("output"))
    rest = without_nulls(message, "role", "command", "output", "exitCode", "timestamp")
    events.builder.add(
        ToolCall(
            name="bash",
            arguments={"command": command},
            result=output,
            exit_code=whole(message.get("exitCode")),
            step=events.step + 1,
            agent=USER,
            **{**fields, "extra": {REQUESTOR: USER, **rest}},
        )
    )
    if message.get("excludeFromContext") is not True:
        events.lineage.say({"role": "user", "content": f"Ran `{command}`\n```\n{output}\n```"})


def _said(events: SessionEvents, message: Mapping[str, JSON], fields: dict[str, Any]) -> None:
    """Append a user message, which may carry results of tools beside or instead of a person's words."""
    blocks = items(message.get("content"))
    results = [mapping(block) for block in blocks if mapping(block).get("type") == "tool_result"]
    for part, block in zip(answer_parts(message) if results else [], results, strict=True):
        shown = view(part).text
        error = shown if block.get("is_error") is True else None
        events.result(text(block.get("tool_use_id")), "", result=shown, error=error, **fields)
    rest = [block for block in blocks if mapping(block).get("type") != "tool_result"]
    if rest or not results:
        events.turn(rest if results else message.get("content"), **fields)
    events.lineage.say(message)


def _reply(events: SessionEvents, message: Mapping[str, JSON], fields: dict[str, Any]) -> None:
    seen = view({"role": "assistant", "content": [_block(block) for block in items(message.get("content"))]})
    if isinstance(message.get("content"), str):
        seen = view(message)
    events.reply(
        message,
        seen,
        model=text(message.get("model")),
        finish_reason=text(message.get("stopReason")) or None,
        usage=_usage(message.get("usage")),
        error=text(message.get("errorMessage")) or None,
        extra=without_nulls(
            {"provider": message.get("provider"), "api": message.get("api"), "usage": message.get("usage")}
        ),
        **fields,
    )


def _block(block: JSON) -> JSON:
    """Write pi's tool call as the block that others use."""
    part = mapping(block)
    return {**part, "type": "tool_use", "input": part.get("arguments")} if part.get("type") == "toolCall" else block


def _usage(counts: JSON) -> Usage | None:
    """Read pi's counts, whose input leaves out the cache, or Anthropic's own."""
    stated_counts = mapping(counts)
    if "cacheRead" not in stated_counts:
        return usage.anthropic(counts)
    return usage.anthropic(
        {
            "input_tokens": stated_counts.get("input"),
            "output_tokens": stated_counts.get("output"),
            "cache_read_input_tokens": stated_counts.get("cacheRead"),
            "cache_creation_input_tokens": stated_counts.get("cacheWrite"),
        }
    )
