"""A rollout's events as read models: windows of the step list, and one event in full."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import NotFound
from harnesslab.core.events import (
    AnyEvent,
    ModelCall,
    RolloutEnded,
    SubagentCall,
    ToolCall,
    UserTurn,
    Verification,
    boundary,
    to_json,
)
from harnesslab.core.input_change import InputChange, input_change
from harnesslab.core.labels import label, result_line
from harnesslab.core.messages import text_of, view
from harnesslab.core.natural import natural
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.tapes import StoredTape

WINDOW = 200
"""Events in one window of the step list."""
PREVIEW = 4000
"""Characters of a payload shown before it is unfolded."""


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


class EventWindow(ReadModel):
    """A run of events, with where the neighbouring runs begin (None at the ends)."""

    rows: list[EventRow]
    before: int | None
    after: int | None
    total: int


class Block(ReadModel):
    """A piece of content: its title, its text cut to a preview, its whole size, and the name to fetch it by."""

    title: str
    text: str
    size: int
    part: str
    note: str = ""
    tone: str = ""
    """`new`, `dropped`, `clipped` or empty."""
    folded: bool = False

    @property
    def cut(self) -> bool:
        """Whether the text is only the beginning."""
        return len(self.text) < self.size


class EventDetail(ReadModel):
    """One event in full; facts are (name, value) pairs in reading order."""

    index: int
    step: int
    kind: str
    boundary: str
    title: str
    agent: str
    facts: list[tuple[str, str]]
    blocks: list[Block]
    input_summary: str
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
    )


def event_window(tape: StoredTape, start: int, size: int = WINDOW) -> EventWindow:
    """Return the events from `start` on."""
    total = tape.rollout.events
    start = max(0, min(start, total - 1))
    end = min(total, start + size)
    rows = []
    previous = tape.event(start - 1).step if start else -1
    for index in range(start, end):
        event = tape.event(index)
        rows.append(event_row(event, index, opens_step=event.step != previous))
        previous = event.step
    return EventWindow(
        rows=rows, before=max(0, start - size) if start else None, after=end if end < total else None, total=total
    )


def first_event_of_step(tape: StoredTape, step: int) -> int:
    """Return the position of a step's model call, or of its first event; raises `NotFound`."""
    found = [index for index, number in enumerate(tape.steps) if number == step]
    if not found:
        raise NotFound(f"there is no step {step + 1}", where=f"rollout {tape.rollout.pk}")
    return next((index for index in found if tape.kinds[index] == "model_call"), found[0])


def event_detail(tape: StoredTape, index: int) -> EventDetail:
    """Return one event in full, its long payloads cut to previews."""
    event = tape.event(index)
    change = _input_change(tape, index, event) if isinstance(event, ModelCall) else None
    return EventDetail(
        index=index,
        step=event.step,
        kind=str(event.__struct_config__.tag),
        boundary=boundary(event),
        title=label(event).what,
        agent=event.agent,
        facts=_facts(event),
        blocks=_blocks(tape, index, event, change),
        input_summary=_input_summary(tape, index, change) if change is not None else "",
        seal=tape.seal(index).hex(),
        attempts=_attempts(tape, index, event),
    )


def part(tape: StoredTape, index: int, name: str) -> str:
    """Return one payload of an event whole, by the name its block gives; raises `NotFound`."""
    event = tape.event(index)
    kind, _, number = name.partition(":")
    position = natural(number)
    if kind == "message" and position is not None:
        return message_text(tape.payload(position))
    if kind == "raw-message" and position is not None:
        return pretty(tape.payload(position))
    if kind == "event":
        return pretty(to_json(event))
    if kind == "tools" and isinstance(event, ModelCall) and event.tools is not None:
        return pretty(tape.payload(event.tools))
    if kind == "curl" and isinstance(event, ModelCall):
        return curl(tape, index, event)
    if kind == "request" and isinstance(event, ModelCall):
        return event.raw_request or pretty(request_body(tape, index, event))
    if kind == "test" and isinstance(event, Verification) and position is not None and position < len(event.tests):
        return event.tests[position].detail
    value = getattr(event, kind, None)
    if value is None:
        raise NotFound(f"the event has no {name}", where=f"rollout {tape.rollout.pk} event {index}")
    return value if isinstance(value, str) else pretty(value)


def message_text(message: JSON) -> str:
    """Return a message as text: what it says, then the calls it makes."""
    seen = view(message)
    calls = [f"→ {call.name} {call.raw if call.raw is not None else _json(call.arguments)}" for call in seen.tool_calls]
    return "\n".join(piece for piece in (seen.reasoning, seen.text, *calls) if piece)


def request_body(tape: StoredTape, index: int, event: ModelCall) -> dict[str, JSON]:
    """Return a model call's request put together from what is recorded."""
    body: dict[str, JSON] = {"model": event.model, "messages": tape.messages(index), **event.settings}
    if event.tools is not None:
        body["tools"] = tape.payload(event.tools)
    return body


def curl(tape: StoredTape, index: int, event: ModelCall) -> str:
    """Return the request as a curl command; its address is left to the reader."""
    body = event.raw_request or _json(request_body(tape, index, event))
    quoted = body.replace("'", "'\\''")
    head = 'curl "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY"'
    return f"{head} -H 'Content-Type: application/json' -d '{quoted}'"


def pretty(value: JSON) -> str:
    """Return JSON indented, with lone surrogates escaped so that it can be sent."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=list)
    return text.encode("utf-8", "backslashreplace").decode()


def _json(value: JSON) -> str:
    return canonical_bytes(value).decode()


def _block(title: str, text: str, part_name: str, **options: object) -> Block:
    shown = text[:PREVIEW].encode("utf-8", "backslashreplace").decode()
    return Block.model_validate({"title": title, "text": shown, "size": len(text), "part": part_name, **options})


def _blocks(tape: StoredTape, index: int, event: AnyEvent, change: InputChange | None) -> list[Block]:
    match event:
        case ModelCall():
            return _model_blocks(tape, event, change)
        case ToolCall():
            return _tool_blocks(event)
        case UserTurn():
            return [_block("user", text_of(event.content), "content")]
        case SubagentCall():
            return [
                _block("given", text_of(event.input), "input"),
                _block("answered", text_of(event.output), "output"),
            ]
        case Verification():
            return _verification_blocks(event)
        case RolloutEnded() if event.diff:
            return [_block("workspace diff", event.diff, "diff", tone="diff")]
    return [_block("recorded", pretty(to_json(event)), "event")]


def _model_blocks(tape: StoredTape, event: ModelCall, change: InputChange | None) -> list[Block]:
    blocks: list[Block] = []
    if change is not None:
        blocks += [_message_block(tape, position, "new") for position in change.added]
        blocks += [_message_block(tape, after, "clipped", before) for before, after in change.clipped]
        blocks += [_message_block(tape, position, "dropped") for position in change.dropped]
    if event.reasoning:
        blocks.append(_block("reasoning", event.reasoning, "reasoning", folded=len(event.reasoning) > 600))
    if event.text:
        blocks.append(_block("answer", event.text, "text"))
    if event.refusal:
        blocks.append(_block("refusal", event.refusal, "refusal"))
    for call in event.tool_calls:
        arguments = call.raw if call.raw is not None else pretty(call.arguments)
        note = "" if call.arguments is not None or not call.raw else "the arguments are not valid JSON"
        blocks.append(_block(f"calls {call.name}", arguments, "tool_calls", note=note))
    if event.rejected is not None:
        blocks.append(_block("rejected by the harness", event.rejected or "no reason recorded", "rejected"))
    if event.error is not None:
        blocks.append(_block("error", event.error, "error"))
    return blocks


def _message_block(tape: StoredTape, position: int, tone: str, before: int | None = None) -> Block:
    message = tape.payload(position)
    text = message_text(message)
    note = ""
    if before is not None:
        note = f"clipped from {len(message_text(tape.payload(before))):,} to {len(text):,} characters"
    role = view(message).role
    folded = tone == "dropped" or role == "system"
    return _block(role, text, f"message:{position}", tone=tone, note=note, folded=folded)


def _tool_blocks(event: ToolCall) -> list[Block]:
    arguments = event.raw if event.raw is not None else pretty(event.arguments)
    blocks = [_block("arguments", arguments, "raw" if event.raw is not None else "arguments")]
    if not event.has_result:
        blocks.append(_block("result", "not recorded", "event", note="the source holds no result for this call"))
    else:
        same = event.seen is None
        title = "result, as the model saw it" if same else "result as produced"
        blocks.append(_block(title, _content(event.result), "result"))
        if not same:
            blocks.append(_block("what the model saw", _content(event.seen), "seen", tone="clipped"))
    if event.error:
        blocks.append(_block("error", event.error, "error"))
    return blocks


def _verification_blocks(event: Verification) -> list[Block]:
    blocks = []
    if event.tests:
        words = {True: "pass", False: "FAIL", None: "?"}
        listing = "\n".join(f"{words[test.passed]:5} {test.name}" for test in event.tests)
        blocks.append(_block("tests", listing, "event"))
    if event.scores:
        blocks.append(_block("scores", pretty(event.scores), "scores"))
    if event.output:
        blocks.append(_block("verifier output", event.output, "output"))
    if event.error:
        blocks.append(_block("error", event.error, "error"))
    return blocks or [_block("recorded", pretty(to_json(event)), "event")]


def _content(value: JSON) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, Mapping) and "type" in item for item in value):
        return text_of(value)
    return pretty(value)


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
    facts += [
        ("latency", None if event.latency is None else f"{event.latency:.2f} s"),
        ("at", None if event.at is None else f"{event.at:.1f} s"),
        ("agent", event.agent or None),
        ("read from", event.origin or None),
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
        ("settings", " ".join(f"{name} {_json(value)}" for name, value in event.settings.items()) or None),
        ("seed honoured", None if event.seed_honoured is None else "yes" if event.seed_honoured else "no"),
        ("tokens", tokens),
        ("finish", event.finish_reason),
        ("from cache", "yes" if event.served_from_cache else None),
        ("response id", event.response_id),
        ("fingerprint", event.fingerprint),
    ]


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _input_change(tape: StoredTape, index: int, event: ModelCall) -> InputChange:
    after = tape.message_positions(index)
    previous = _previous_call(tape, index, event.agent)
    before = tape.message_positions(previous) if previous is not None else []
    touched = set(before) ^ set(after)
    return input_change(before, after, {position: tape.payload(position) for position in touched})


def _previous_call(tape: StoredTape, index: int, agent: str) -> int | None:
    """Return the same agent's model call before this one."""
    for position in range(index - 1, -1, -1):
        if tape.kinds[position] == "model_call" and tape.event(position).agent == agent:
            return position
    return None


def _input_summary(tape: StoredTape, index: int, change: InputChange) -> str:
    total = len(tape.message_positions(index))
    parts = [f"{total} message{'s' if total != 1 else ''}", f"{change.kept} unchanged", f"{len(change.added)} new"]
    parts += [f"{len(change.clipped)} clipped"] if change.clipped else []
    parts += [f"{len(change.dropped)} dropped"] if change.dropped else []
    return " · ".join(parts)


def _attempts(tape: StoredTape, index: int, event: AnyEvent) -> list[int]:
    if not isinstance(event, ModelCall):
        return []
    found: list[int] = []
    for position in _around(tape.steps, index):
        if tape.kinds[position] == "model_call" and tape.event(position).agent == event.agent:
            found.append(position)
    return found if len(found) > 1 else []


def _around(steps: Sequence[int], index: int) -> range:
    """Return the positions of the run of events that share a step with `index`."""
    first, last = index, index
    while first > 0 and steps[first - 1] == steps[index]:
        first -= 1
    while last + 1 < len(steps) and steps[last + 1] == steps[index]:
        last += 1
    return range(first, last + 1)
