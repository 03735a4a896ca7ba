"""Where the inputs of two model calls first differ, traced to the event that produced the differing span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.message_spans import differing_span
from harnesslab.core.contracts.comparators import ContentReader
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    MemoryAccess,
    ModelCall,
    NetworkExchange,
    Retrieval,
    SubagentCall,
    ToolCall,
    UserTurn,
)
from harnesslab.core.trace.messages import MessageView, text_of, view
from harnesslab.core.trace.parts import other_parts

ANSWERS = ("assistant", "model")
"""Roles of messages that a model gave."""
_SOURCES = {
    "clock": "the model was told another time",
    "memory": "the model was given something else from memory",
    "retrieval": "the model was given other documents",
    "subagent": "the model was given another answer of a sub-agent",
    "network": "the model was given another answer of a service",
}


@dataclass(frozen=True, slots=True)
class InputDifference:
    """The first message that differs, and who made it: `model`, `user`, `tool:<name>`, `clock`, … or `harness`."""

    label: str
    boundary: str
    why: str
    a: str
    b: str
    emitters: tuple[int, int] | None = None
    """Event positions of the model calls that gave the differing message."""
    one_sided: bool = False
    """Whether one input has messages that the other lacks, rather than others."""


def first_input_difference(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    contract: Contract = RAW,
    start: tuple[int, int] = (0, 0),
    *,
    answers: bool = True,
) -> InputDifference | None:
    """Compare the inputs of two model calls, ids renamed and the contract's rules applied; None where they are equal.

    The first `start` messages of each are not looked at, and without `answers` none that the model itself gave.
    """
    left, right = a.messages(at_a, start[0]), b.messages(at_b, start[1])
    if not answers:
        left, right = ([each for each in side if view(each).role not in ANSWERS] for side in (left, right))
    reader_a, reader_b = ContentReader(contract, ()), ContentReader(contract, ())
    for offset in range(max(len(left), len(right))):
        one = left[offset] if offset < len(left) else None
        two = right[offset] if offset < len(right) else None
        if canonical_bytes(reader_a.message(one)) != canonical_bytes(reader_b.message(two)):
            gap = differing_span(left[offset:], right[offset:], contract)
            return _trace_back(a, b, at_a, at_b, start[0] + offset, gap)
    return None


def _trace_back(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    position: int,
    gap: tuple[Sequence[JSON], Sequence[JSON], JSON],
) -> InputDifference:
    """Trace a run of messages that differs to who made it; the third of `gap` is what follows alike in both."""
    if not gap[0] or not gap[1]:
        longer, more = ("A", gap[0]) if gap[0] else ("B", gap[1])
        side, other = ((a, at_a), (b, at_b)) if gap[0] else ((b, at_b), (a, at_a))
        return _one_more(longer, more, gap[2], position, side, other)
    one, two = gap[0][0], gap[1][0]
    seen_a, seen_b = view(one), view(two)
    label = f"message {position} ({seen_a.role})"
    text_a, text_b = _shown(seen_a, one), _shown(seen_b, two)
    emitters = _emitters(a, b, at_a, at_b, seen_a, seen_b)
    if emitters is not None:
        return InputDifference(label, "model", "an earlier answer of the model differs", text_a, text_b, emitters)
    boundary, why = _producer(a, b, at_a, at_b, seen_a, seen_b)
    if word := other_parts(one, two):
        boundary, why = _other_part(boundary, word, a, at_a, seen_a)
    return InputDifference(label, boundary, why, text_a, text_b)


def _other_part(boundary: str, word: str, reader: TraceReader, before: int, seen: MessageView) -> tuple[str, str]:
    """Return (boundary, clause) of two messages that differ in a part alone, such as a picture."""
    call = _tool_call(reader, before, seen) if seen.answers or seen.role == "tool" else None
    if call is not None:
        return f"tool:{call.name}", f"the tool returned another {word}"
    return boundary, f"the {seen.role} message differs in its {word} alone"


def _one_more(
    longer: str,
    more: Sequence[JSON],
    following: JSON,
    position: int,
    side: tuple[TraceReader, int],
    other: tuple[TraceReader, int],
) -> InputDifference:
    """Explain messages that one input alone holds, by the boundary that added them."""
    views = [view(message) for message in more]
    emitters = _emitters_of_one(longer, views[0], side, other)
    label = f"message {position} ({views[0].role})"
    shown = "\n".join(_shown(seen, message) for seen, message in zip(views, more, strict=True))
    text_a, text_b = (shown, "–") if longer == "A" else ("–", shown)
    if emitters is not None:
        return InputDifference(label, "model", "an earlier answer of the model differs", text_a, text_b, emitters)
    said = all(seen.role == "user" and _said_alone(*side, seen, *other) for seen in views)
    before = _before(following)
    if said and not before:
        times = "one more thing" if len(more) == 1 else f"{len(more)} more things"
        return InputDifference(label, "user", f"the user said {times} in {longer}", text_a, text_b, one_sided=True)
    *some, last = dict.fromkeys(seen.role for seen in views)
    roles = f"{', '.join(some)} and {last}" if some else last
    count = f"one more {roles} message" if len(more) == 1 else f"{len(more)} more messages ({roles})"
    why = f"the harness sent {count} in {longer}{before}"
    return InputDifference(label, "harness", why, text_a, text_b, one_sided=True)


def _emitters_of_one(
    longer: str, seen: MessageView, side: tuple[TraceReader, int], other: tuple[TraceReader, int]
) -> tuple[int, int] | None:
    """Return the model calls of both traces where one gave a part of an answer that the other's did not."""
    at = _emitter(*side, seen)
    place = None if at is None else _same_turn(side[0], at, *other)
    if at is None or place is None:
        return None
    return (at, place) if longer == "A" else (place, at)


def _before(following: JSON) -> str:
    """Name the message before which others were put in; empty where nothing follows."""
    if following is None:
        return ""
    seen = view(following)
    article = "an" if seen.role == "assistant" else "a"
    return f", before {article} {seen.role} message that is equal in both"


def _emitters(
    a: TraceReader, b: TraceReader, at_a: int, at_b: int, seen_a: MessageView, seen_b: MessageView
) -> tuple[int, int] | None:
    """Return the model calls that gave two assistant messages, where both are recorded."""
    from_a, from_b = _emitter(a, at_a, seen_a), _emitter(b, at_b, seen_b)
    return None if from_a is None or from_b is None else (from_a, from_b)


def _emitter(reader: TraceReader, before: int, seen: MessageView) -> int | None:
    """Return the model call that a message is the answer of, or a part of it, as formats of items keep them."""
    if seen.role not in ANSWERS or not (seen.text or seen.tool_calls or seen.reasoning):
        return None
    asked = {(call.name, canonical_bytes(call.arguments)) for call in seen.tool_calls}
    for index in range(before - 1, -1, -1):
        event = reader.event(index) if reader.kinds[index] == "model_call" else None
        if (
            isinstance(event, ModelCall)
            and (not seen.text or (event.text or event.refusal or "") == seen.text)
            and (seen.text or asked or (event.reasoning or "") == seen.reasoning)
            and asked <= {(call.name, canonical_bytes(call.arguments)) for call in event.tool_calls}
        ):
            return index
    return None


def _same_turn(reader: TraceReader, index: int, other: TraceReader, before: int) -> int | None:
    """Return the model call of one trace that stands where a call of the other does, counted from the beginning."""
    number = reader.kinds[:index].count("model_call")
    places = [place for place in range(before) if other.kinds[place] == "model_call"]
    return places[number] if number < len(places) else None


def _producer(
    a: TraceReader, b: TraceReader, at_a: int, at_b: int, seen_a: MessageView, seen_b: MessageView
) -> tuple[str, str]:
    if seen_a.role != seen_b.role:
        return "harness", f"the harness sent a message as {seen_a.role} in A and as {seen_b.role} in B"
    if seen_a.answers or seen_a.role == "tool":
        call_a, call_b = _tool_call(a, at_a, seen_a), _tool_call(b, at_b, seen_b)
        if call_a is not None and call_b is not None and call_a.result != call_b.result:
            why = f"the result of {call_a.name} at step {call_a.step + 1}, which the model was given, differs"
            return f"tool:{call_a.name}", why
        if call_a is not None and call_b is not None:
            return "harness", "the same tool result was given to the model in another form"
    if seen_a.role == "user" and (_said_alone(a, at_a, seen_a, b, at_b) or _said_alone(b, at_b, seen_b, a, at_a)):
        return "user", "the user said something different"
    for kind, why in _SOURCES.items():
        if _differs_by(kind, a, b, at_a, at_b, seen_a.text, seen_b.text):
            return kind, why
    if seen_a.role in ANSWERS:
        return "model", "an earlier answer of the model, as the input holds it, differs"
    known = {"system": "other instructions", "developer": "other instructions"}
    return "harness", f"the harness sent {known.get(seen_a.role, f'another {seen_a.role} message')}"


def _differs_by(kind: str, a: TraceReader, b: TraceReader, at_a: int, at_b: int, text_a: str, text_b: str) -> bool:
    """Say whether two texts differ by what events of a boundary gave, and by nothing else."""
    given_a, given_b = _given(kind, a, at_a, text_a), _given(kind, b, at_b, text_b)
    return bool(given_a and given_b) and given_a != given_b and text_a.replace(given_a, given_b) == text_b


def _given(kind: str, reader: TraceReader, before: int, text: str) -> str:
    """Return the latest non-empty text that a boundary gave and that is part of a message."""
    for index in range(before - 1, -1, -1):
        if reader.kinds[index].startswith(kind):
            given = _value(reader.event(index))
            if given and given in text:
                return given
    return ""


def _value(event: AnyEvent) -> str:
    match event:
        case ClockRead() | MemoryAccess():
            return text_of(event.value)
        case SubagentCall():
            return text_of(event.output)
        case Retrieval():
            return text_of(event.documents)
        case NetworkExchange():
            return text_of(event.response)
    return ""


def _tool_call(reader: TraceReader, before: int, seen: MessageView) -> ToolCall | None:
    """Find the call that a message answers, by id or by its text, walking back."""
    for index in range(before - 1, -1, -1):
        if reader.kinds[index] != "tool_call":
            continue
        event = reader.event(index)
        if isinstance(event, ToolCall) and (
            event.id == seen.answers if seen.answers else bool(event.result) and text_of(event.result) in seen.text
        ):
            return event
    return None


def _said_alone(reader: TraceReader, before: int, seen: MessageView, other: TraceReader, before_other: int) -> bool:
    """Say whether the user said a message in one trace and not in the other, where only the harness left it out."""
    return _said(reader, before, seen) and not _said(other, before_other, seen)


def _said(reader: TraceReader, before: int, seen: MessageView) -> bool:
    """Say whether a user turn before the call holds the message's text."""
    for index in range(before - 1, -1, -1):
        if reader.kinds[index] == "user_turn":
            event = reader.event(index)
            if isinstance(event, UserTurn) and text_of(event.content) == seen.text:
                return True
    return False


def _shown(seen: MessageView, message: JSON) -> str:
    return seen.text or canonical_bytes(message).decode()
