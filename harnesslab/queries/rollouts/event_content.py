"""What an event holds: its payloads as blocks with previews, and each of them whole."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.input_change import InputChange
from harnesslab.core.errors import NotFound
from harnesslab.core.natural import natural
from harnesslab.core.trace import sent
from harnesslab.core.trace.events import (
    AnyEvent,
    ModelCall,
    RolloutEnded,
    SubagentCall,
    ToolCall,
    ToolRequest,
    UserTurn,
    Verification,
    to_json,
)
from harnesslab.core.trace.messages import text_of, view
from harnesslab.core.trace.parts import parts_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader

PREVIEW = 4000
"""Characters of a payload shown before it is unfolded."""


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


def part(reader: StoredTraceReader, index: int, name: str) -> str:
    """Return one payload of an event whole, by the name its block gives; raises `NotFound`."""
    event = reader.event(index)
    kind, _, number = name.partition(":")
    position = natural(number)
    if kind == "message" and position is not None:
        return message_text(reader.payload(position))
    if kind == "raw-message" and position is not None:
        return pretty(reader.payload(position))
    if kind == "event":
        return pretty(to_json(event))
    if kind == "tools" and isinstance(event, ModelCall) and event.tools is not None:
        return pretty(reader.payload(event.tools))
    if kind == "kept" and isinstance(event, ModelCall):
        return kept_text(reader, index, event)
    if kind == "curl" and isinstance(event, ModelCall):
        return curl(reader, index, event)
    if kind == "request" and isinstance(event, ModelCall):
        return sent_body(reader, index, event) or pretty(request_body(reader, index, event))
    if kind == "test" and isinstance(event, Verification) and position is not None and position < len(event.tests):
        return event.tests[position].detail
    if (
        kind == "tool_calls"
        and isinstance(event, ModelCall)
        and position is not None
        and position < len(event.tool_calls)
    ):
        return _called(event.tool_calls[position])
    value = getattr(event, kind) if kind in event.__struct_fields__ else None
    if value is None:
        raise NotFound(f"the event has no {name}", where=f"rollout {reader.rollout.pk} event {index}")
    return value if isinstance(value, str) else pretty(msgspec.to_builtins(value, str_keys=True))


def message_text(message: JSON) -> str:
    """Return a message as text: what it says, then the calls it makes."""
    seen = view(message)
    calls = [
        f"→ {call.name} {call.raw if call.raw is not None else compact(call.arguments)}" for call in seen.tool_calls
    ]
    return "\n".join(piece for piece in (seen.reasoning, seen.text, *calls) if piece)


def kept_text(reader: StoredTraceReader, index: int, event: ModelCall) -> str:
    """Return the messages that a call kept of the same agent's call before it, each under its role."""
    previous = previous_call(reader, index, event.agent)
    before = set(reader.message_positions(previous)) if previous is not None else set()
    kept = [reader.payload(position) for position in reader.message_positions(index) if position in before]
    return "\n\n".join(f"── {view(message).role}\n{message_text(message)}" for message in kept)


def previous_call(reader: StoredTraceReader, index: int, agent: str) -> int | None:
    """Return the same agent's model call before this one."""
    return next((found for found in reader.before(index, "model_call") if reader.event(found).agent == agent), None)


def request_body(reader: StoredTraceReader, index: int, event: ModelCall) -> dict[str, JSON]:
    """Return a model call's request put together from what is recorded."""
    body: dict[str, JSON] = {"model": event.model, "messages": reader.messages(index), **event.settings}
    if event.tools is not None:
        body["tools"] = reader.payload(event.tools)
    return body


def sent_body(reader: StoredTraceReader, index: int, event: ModelCall) -> str:
    """Return a model call's request body as it was sent; empty where only its parts are recorded."""
    if event.raw_request is None:
        return ""
    chain = [(event.raw_request, event.extra.get(sent.KEY))]
    for place in reader.before(index, "model_call"):
        if sent.keeps(chain[-1][1]) == 0:
            break
        earlier = reader.event(place)
        if isinstance(earlier, ModelCall) and earlier.agent == event.agent and earlier.raw_request is not None:
            chain.append((earlier.raw_request, earlier.extra.get(sent.KEY)))
    return sent.body(chain[::-1])


def curl(reader: StoredTraceReader, index: int, event: ModelCall) -> str:
    """Return the request as a curl command; its address is left to the reader."""
    body = sent_body(reader, index, event) or compact(request_body(reader, index, event))
    quoted = body.replace("'", "'\\''")
    head = 'curl "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY"'
    return f"{head} -H 'Content-Type: application/json' -d '{quoted}'"


def pretty(value: JSON) -> str:
    """Return JSON indented, with lone surrogates escaped so that it can be sent."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=list)
    return text.encode("utf-8", "backslashreplace").decode()


def compact(value: JSON) -> str:
    """Return JSON on one line."""
    return canonical_bytes(value).decode()


def _block(title: str, text: str, part_name: str, **options: object) -> Block:
    whole = text.encode("utf-8", "backslashreplace").decode()
    stated = {"title": title, "text": whole[:PREVIEW], "size": len(whole), "part": part_name}
    return Block.model_validate({**stated, **options})


def blocks(reader: StoredTraceReader, event: AnyEvent, change: InputChange | None) -> list[Block]:
    """Return what an event holds, in reading order; `change` is that of a model call's input."""
    match event:
        case ModelCall():
            return _model_blocks(reader, event, change)
        case ToolCall():
            return _tool_blocks(event)
        case UserTurn():
            return [_block("user", text_of(event.content), "content")]
        case SubagentCall():
            return [
                _block("given", _content(event.input), "input"),
                _block("answered", _content(event.output), "output"),
            ]
        case Verification():
            return _verification_blocks(event)
        case RolloutEnded() if event.diff:
            return [_block("workspace diff", event.diff, "diff", tone="diff")]
    return [_block("recorded", pretty(to_json(event)), "event")]


def _model_blocks(reader: StoredTraceReader, event: ModelCall, change: InputChange | None) -> list[Block]:
    blocks: list[Block] = []
    if change is not None:
        blocks += [_message_block(reader, position, "new") for position in change.added]
        blocks += [_message_block(reader, after, "clipped", before) for before, after in change.clipped]
        blocks += [_message_block(reader, position, "dropped") for position in change.dropped]
    if event.reasoning:
        blocks.append(_block("reasoning", event.reasoning, "reasoning", folded=len(event.reasoning) > 600))
    if event.text:
        blocks.append(_block("answer", event.text, "text"))
    if event.refusal:
        blocks.append(_block("refusal", event.refusal, "refusal"))
    for number, call in enumerate(event.tool_calls):
        note = "" if call.arguments is not None or not call.raw else "the arguments are not valid JSON"
        blocks.append(_block(f"calls {call.name}", _called(call), f"tool_calls:{number}", note=note))
    if event.rejected is not None:
        blocks.append(_block("rejected by the harness", event.rejected or "no reason recorded", "rejected"))
    if event.error is not None:
        blocks.append(_block("error", event.error, "error"))
    return blocks


def _called(call: ToolRequest) -> str:
    return call.raw if call.raw is not None else pretty(call.arguments)


def _message_block(reader: StoredTraceReader, position: int, tone: str, before: int | None = None) -> Block:
    message = reader.payload(position)
    text = message_text(message)
    note = ""
    if before is not None:
        note = f"clipped from {len(message_text(reader.payload(before))):,} to {len(text):,} characters"
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
            seen, produced = _content(event.seen), _content(event.result)
            tone = "clipped" if len(seen) < len(produced) else ""
            blocks.append(_block("what the model saw", seen, "seen", tone=tone, note="changed by the harness"))
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
    return text_of(value) if parts_of(value) else pretty(value)
