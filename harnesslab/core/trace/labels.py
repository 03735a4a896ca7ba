"""What an event did, in a few words: a step is named by its action, never by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    HarnessAction,
    MemoryAccess,
    ModelCall,
    NetworkExchange,
    Retrieval,
    RolloutEnded,
    RolloutStarted,
    SubagentCall,
    ToolCall,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.messages import text_of

WIDTH = 160
"""Characters of detail that are kept."""
_TELLING = ("command", "cmd", "path", "file_path", "filename", "query", "pattern", "url", "code", "input", "text")
"""Arguments that say what a call does, most telling first."""


@dataclass(frozen=True, slots=True)
class Label:
    """The actor or action, and one line of detail."""

    what: str
    detail: str


def label(event: AnyEvent) -> Label:
    """Name an event."""
    match event:
        case ModelCall():
            return _model(event)
        case ToolCall():
            return Label(event.name, short_arguments(event.arguments, event.raw))
        case UserTurn():
            return Label("user", clip(text_of(event.content)))
        case SubagentCall():
            return Label(f"sub-agent {event.name}", clip(text_of(event.input)))
        case Retrieval():
            return Label("retrieval", clip(text_of(event.query)))
        case MemoryAccess():
            return Label(f"memory {event.operation}", clip(event.key))
        case ClockRead():
            return Label("clock", clip(text_of(event.value)))
        case NetworkExchange():
            return Label("network", clip(event.target))
        case HarnessAction():
            return Label(event.mechanism or event.name, clip(text_of(event.detail)))
        case Verification():
            return Label("verifier", _verdict(event))
        case RolloutStarted():
            return Label("start", "")
        case RolloutEnded():
            return Label("end", event.outcome.replace("_", " "))


def result_line(event: ToolCall) -> str:
    """Say how a tool call ended: exit code, error, or the first line of its result and how many there are."""
    if not event.has_result:
        return "no result recorded"
    text = text_of(event.result)
    lines = text.count("\n") + 1 if text.strip() else 0
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no output")
    parts = []
    if event.timed_out:
        parts.append("timed out")
    if event.exit_code is not None:
        parts.append(f"exit {event.exit_code}")
    if event.error:
        parts.append(clip(event.error, 60))
    parts.append(clip(first, 100) if lines <= 1 else f"{lines} lines · {clip(first, 80)}")
    return " · ".join(parts)


def short_arguments(arguments: JSON, raw: str | None) -> str:
    """Return the telling part of a call's arguments in one line."""
    if isinstance(arguments, Mapping):
        for name in _TELLING:
            if isinstance(arguments.get(name), str) and arguments[name]:
                return clip(text_of(arguments[name]))
        pairs = (f"{name}={_value(value)}" for name, value in arguments.items())
        return clip(" ".join(pairs))
    if arguments is None:
        return clip(raw or "")
    return clip(text_of(arguments))


def clip(text: str, width: int = WIDTH) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: width * 4].split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _value(value: JSON) -> str:
    return value if isinstance(value, str) else canonical_bytes(value).decode()


def _model(event: ModelCall) -> Label:
    if event.error is not None:
        return Label("model failed", clip(event.error))
    if event.tool_calls:
        names = ", ".join(call.name for call in event.tool_calls)
        first = event.tool_calls[0]
        said, asked = clip(event.text or "", 60), short_arguments(first.arguments, first.raw)
        return Label(f"model → {names}", clip(" · ".join(dict.fromkeys(part for part in (said, asked) if part))))
    if event.refusal is not None:
        return Label("model refused", clip(event.refusal))
    if event.rejected is not None:
        return Label("model, rejected", clip(event.text or event.rejected))
    return Label("model", clip(event.text or event.reasoning or "no text"))


def _verdict(event: Verification) -> str:
    if event.error:
        return clip(event.error)
    word = {True: "passed", False: "failed", None: "no verdict"}[event.passed]
    reward = f" · reward {event.reward:g}" if event.reward is not None else ""
    tests = f" · {sum(test.passed is True for test in event.tests)}/{len(event.tests)} tests" if event.tests else ""
    return word + reward + tests
