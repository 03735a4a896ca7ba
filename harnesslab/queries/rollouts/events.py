"""A rollout's events as read models: windows of the step list, and one event in full."""

from __future__ import annotations

from harnesslab.core.comparing.input_change import InputChange, input_change
from harnesslab.core.errors import NotFound
from harnesslab.core.trace import damage
from harnesslab.core.trace.answers import REQUESTOR, USER, served_from
from harnesslab.core.trace.events import AnyEvent, ModelCall, ToolCall, Verification, boundary
from harnesslab.core.trace.labels import label, result_line
from harnesslab.core.trace.tool_uses import time_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.event_content import Block, blocks, compact, previous_call
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader

WINDOW = 120
"""Events in one window of the step list."""
FELT_S = 0.1
"""Seconds from which a wait for an engine is named: taking a free ticket costs some milliseconds."""


class EventRow(ReadModel):
    """One event as the step list shows it; step and index count from 0."""

    index: int
    step: int
    kind: str
    boundary: str
    what: str
    detail: str
    agent: str
    opens_step: bool
    failed: bool
    attempt: int
    """Which attempt of its step a model call is, from 0."""
    served: str
    """Where what it holds was served from, such as the record of a rerun; empty where it was given live."""


class EventWindow(ReadModel):
    """A run of events, with where the neighbouring runs begin (None at the ends)."""

    rows: list[EventRow]
    before: int | None
    after: int | None
    total: int


class EventDetail(ReadModel):
    """One event in full; facts are (name, value) pairs in reading order."""

    index: int
    step: int
    kind: str
    boundary: str
    title: str
    agent: str
    served: str
    """As in `EventRow`."""
    facts: list[tuple[str, str]]
    blocks: list[Block]
    input_summary: str
    input_kept: int
    """How many messages a model call kept of the same agent's call before it."""
    seal: str
    attempts: list[int]
    """Event positions of the step's attempts, where there are several."""


def event_row(event: AnyEvent, index: int, *, opens_step: bool) -> EventRow:
    """Make the list row of an event."""
    named = label(event)
    detail = named.detail
    if isinstance(event, ToolCall):
        detail = f"{detail} → {result_line(event)}" if detail else result_line(event)
    failed = bool(getattr(event, "error", None)) or (isinstance(event, ModelCall) and event.rejected is not None)
    return EventRow(
        index=index,
        step=event.step,
        kind=str(event.__struct_config__.tag),
        boundary=boundary(event),
        what=named.what,
        detail=detail,
        agent=event.agent,
        opens_step=opens_step,
        failed=failed,
        attempt=event.attempt if isinstance(event, ModelCall) else 0,
        served=served_from(event),
    )


def event_window(reader: StoredTraceReader, start: int, size: int = WINDOW, until: int | None = None) -> EventWindow:
    """Return the events from `start` on; with `until`, only those that stand before an already shown one."""
    total = reader.rollout.events
    start = max(0, min(start, total - 1))
    end = min(total, start + size) if until is None else min(total, until)
    rows = []
    previous = reader.event(start - 1).step if start else -1
    for index in range(start, end):
        event = reader.event(index)
        rows.append(event_row(event, index, opens_step=event.step != previous))
        previous = event.step
    return EventWindow(
        rows=rows,
        before=max(0, start - size) if start else None,
        after=end if until is None and end < total else None,
        total=total,
    )


def events_after(reader: StoredTraceReader, seen: int) -> EventWindow:
    """Return the events that came after the first `seen`, without the neighbouring runs."""
    total = reader.rollout.events
    rows = event_window(reader, seen, total - seen).rows if seen < total else []
    return EventWindow(rows=rows, before=None, after=None, total=total)


def latest_events(rollout_id: int, size: int = 8) -> list[EventRow]:
    """Return the last events of a rollout, which may still run."""
    reader = StoredTraceReader(get_rollout(rollout_id))
    if not reader.rollout.events:
        return []
    return event_window(reader, max(0, reader.rollout.events - size), size).rows


def first_event_of_step(reader: StoredTraceReader, step: int) -> int:
    """Return the position of a step's model call, or of its first event; raises `NotFound`."""
    found = [index for index, number in enumerate(reader.steps) if number == step]
    if not found:
        raise NotFound(f"there is no step {step + 1}", where=f"rollout {reader.rollout.pk}")
    return next((index for index in found if reader.kinds[index] == "model_call"), found[0])


def event_detail(reader: StoredTraceReader, index: int) -> EventDetail:
    """Return one event in full, its long payloads cut to previews."""
    event = reader.event(index)
    change = _input_change(reader, index, event) if isinstance(event, ModelCall) else None
    return EventDetail(
        index=index,
        step=event.step,
        kind=str(event.__struct_config__.tag),
        boundary=boundary(event),
        title=label(event).what,
        agent=event.agent,
        served=served_from(event),
        facts=_facts(event),
        blocks=blocks(reader, event, change),
        input_summary=_input_summary(reader, index, change) if change is not None else "",
        input_kept=change.unchanged if change is not None else 0,
        seal=reader.seal(index).hex(),
        attempts=_attempts(reader, index, event),
    )


def _facts(event: AnyEvent) -> list[tuple[str, str]]:
    facts: list[tuple[str, str | None]] = []
    if isinstance(event, ModelCall):
        facts += _model_facts(event)
    if isinstance(event, ToolCall):
        facts += [
            ("exit code", None if event.exit_code is None else str(event.exit_code)),
            ("timed out", "yes" if event.timed_out else None),
            ("retries", None if event.retries is None else str(event.retries)),
            ("call id", event.id or None),
        ]
    if isinstance(event, Verification):
        facts += [("reward", None if event.reward is None else f"{event.reward:g}")]
    served, waited = served_from(event), time_of(event.extra.get("waited"))
    facts += [
        ("served from", served or None),
        # what is served took no time here: its latency is that of the recording
        ("recorded latency" if served else "latency", None if event.latency is None else f"{event.latency:.2f} s"),
        ("waited", None if (waited or 0) < FELT_S else f"{waited:.2f} s for its turn, outside the time budget"),
        ("at", None if event.at is None else f"{event.at:.1f} s"),
        ("agent", event.agent or None),
        ("read from", event.origin or None),
        ("asked by", "a user, not the agent" if event.extra.get(REQUESTOR) == USER else None),
        ("damaged", damage.said(event.extra) or None),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _model_facts(event: ModelCall) -> list[tuple[str, str | None]]:
    usage = event.usage
    tokens = None
    if usage is not None:
        cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
        tokens = f"{_count(usage.input)} in{cached} · {_count(usage.output)} out"
    return [
        ("model", event.model or None),
        ("attempt", str(event.attempt + 1) if event.attempt else None),
        ("input", "recorded as sent" if event.fidelity == "recorded" else "rebuilt by the importer"),
        ("settings", " ".join(f"{name} {compact(value)}" for name, value in event.settings.items()) or None),
        ("seed honoured", None if event.seed_honoured is None else "yes" if event.seed_honoured else "no"),
        ("tokens", tokens),
        ("finish", event.finish_reason),
        ("from cache", "yes" if event.served_from_cache else None),
        ("response id", event.response_id),
        ("fingerprint", event.fingerprint),
    ]


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _input_change(reader: StoredTraceReader, index: int, event: ModelCall) -> InputChange:
    after = reader.message_positions(index)
    previous = previous_call(reader, index, event.agent)
    before = reader.message_positions(previous) if previous is not None else []
    touched = set(before) ^ set(after)
    return input_change(before, after, {position: reader.payload(position) for position in touched})


def _input_summary(reader: StoredTraceReader, index: int, change: InputChange) -> str:
    total = len(reader.message_positions(index))
    parts = [f"{total} message{'s' if total != 1 else ''}", f"{change.unchanged} unchanged", f"{len(change.added)} new"]
    parts += [f"{len(change.clipped)} clipped"] if change.clipped else []
    parts += [f"{len(change.dropped)} dropped"] if change.dropped else []
    return " · ".join(parts)


def _attempts(reader: StoredTraceReader, index: int, event: AnyEvent) -> list[int]:
    if not isinstance(event, ModelCall):
        return []
    found = [
        position
        for position in _around(reader, index)
        if isinstance(other := reader.event(position), ModelCall) and other.agent == event.agent
    ]
    return found if len(found) > 1 else []


def _around(reader: StoredTraceReader, index: int) -> range:
    """Return the positions of the run of events that share a step with `index`."""
    step = reader.event(index).step
    first, last = index, index
    while first > 0 and reader.event(first - 1).step == step:
        first -= 1
    while last + 1 < reader.rollout.events and reader.event(last + 1).step == step:
        last += 1
    return range(first, last + 1)
