"""Where the inputs of two model calls first differ, traced to the event that produced the differing span."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparators import Reader
from harnesslab.core.contract import RAW
from harnesslab.core.events import ToolCall, UserTurn
from harnesslab.core.messages import MessageView, text_of, view
from harnesslab.core.tape import Tape


@dataclass(frozen=True, slots=True)
class InputDifference:
    """The first message that differs, and who made it: `user`, `tool:<name>` or `harness`."""

    label: str
    boundary: str
    why: str
    a: str
    b: str


def first_input_difference(a: Tape, b: Tape, at_a: int, at_b: int) -> InputDifference | None:
    """Compare the inputs of two model calls as sent, ids renamed; None where they are equal."""
    left, right = a.messages(at_a), b.messages(at_b)
    reader_a, reader_b = Reader(RAW, ()), Reader(RAW, ())
    for position in range(max(len(left), len(right))):
        one = left[position] if position < len(left) else None
        two = right[position] if position < len(right) else None
        if canonical_bytes(reader_a.message(one)) != canonical_bytes(reader_b.message(two)):
            return _trace_back(a, b, at_a, at_b, position, one, two)
    return None


def _trace_back(a: Tape, b: Tape, at_a: int, at_b: int, position: int, one: JSON, two: JSON) -> InputDifference:
    seen_a, seen_b = view(one) if one is not None else None, view(two) if two is not None else None
    shown = seen_a or seen_b or MessageView("unknown")
    label = f"message {position} ({shown.role})"
    text_a, text_b = _shown(seen_a, one), _shown(seen_b, two)
    if seen_a is None or seen_b is None:
        longer = "B" if seen_a is None else "A"
        return InputDifference(
            label, "harness", f"the harness sent one more {shown.role} message in {longer}", text_a, text_b
        )
    boundary, why = _producer(a, b, at_a, at_b, position, seen_a, seen_b)
    return InputDifference(label, boundary, why, text_a, text_b)


def _producer(
    a: Tape, b: Tape, at_a: int, at_b: int, position: int, seen_a: MessageView, seen_b: MessageView
) -> tuple[str, str]:
    if seen_a.role != seen_b.role:
        return "harness", f"the harness sent a {seen_a.role} message in A and a {seen_b.role} message in B"
    if seen_a.answers or seen_a.role == "tool":
        call_a, call_b = _tool_call(a, at_a, seen_a), _tool_call(b, at_b, seen_b)
        if call_a is not None and call_b is not None and call_a.result != call_b.result:
            return f"tool:{call_a.name}", f"the result of {call_a.name} that the model was given differs"
        return "harness", "the same tool result was given to the model in another form"
    if seen_a.role == "user" and (_said(a, at_a, seen_a) or _said(b, at_b, seen_b)):
        return "user", "the user said something different"
    what = {"system": "instructions", "developer": "instructions", "assistant": "earlier answers"}.get(
        seen_a.role, f"{seen_a.role} message"
    )
    return "harness", f"the harness sent other {what}"


def _tool_call(tape: Tape, before: int, seen: MessageView) -> ToolCall | None:
    """Find the call that a message answers, by id or by its text, walking back."""
    for index in range(before - 1, -1, -1):
        if tape.kinds[index] != "tool_call":
            continue
        event = tape.event(index)
        if isinstance(event, ToolCall) and (
            event.id == seen.answers if seen.answers else text_of(event.result) in seen.text
        ):
            return event
    return None


def _said(tape: Tape, before: int, seen: MessageView) -> bool:
    """Say whether a user turn before the call holds the message's text."""
    for index in range(before - 1, -1, -1):
        if tape.kinds[index] == "user_turn":
            event = tape.event(index)
            if isinstance(event, UserTurn) and text_of(event.content) == seen.text:
                return True
    return False


def _shown(seen: MessageView | None, message: JSON) -> str:
    if seen is None:
        return "–"
    return seen.text or canonical_bytes(message).decode()
