"""Traces for tests: strategies that draw them, and a few written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.contracts.trace_reader import MemoryTraceReader
from harnesslab.core.trace.events import (
    AnyEvent,
    ClockRead,
    Fidelity,
    HarnessAction,
    ModelCall,
    RolloutStarted,
    ToolCall,
    ToolRequest,
    UserTurn,
)
from harnesslab.core.trace.trace import Trace, TraceBuilder

TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
"""Any text: controls, NUL, astral characters and lone surrogates included."""
NUMBERS = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(2**53 - 3, 2**53 + 3),
    st.integers(-(2**53) - 3, -(2**53) + 3),
    st.integers(0, 10**40),
    st.floats(),
    st.floats(1e14, 1e24).map(round).map(float),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
"""Any JSON value, and the numbers and half characters that JSON can't write."""
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS | st.integers(0, 1) | NUMBERS}
)
AGENTS = st.sampled_from(["", "research/1", "research/2"])


@st.composite
def transcripts(draw: st.DrawFn) -> list[tuple[str, list[JSON]]]:
    """Draw the (agent, messages) of successive calls: lists that grow, are cut at either end, or are clipped."""
    lists: dict[str, list[JSON]] = {}
    calls: list[tuple[str, list[JSON]]] = []
    for _ in range(draw(st.integers(0, 6))):
        agent = draw(AGENTS)
        messages = list(lists.get(agent, []))
        change = draw(st.sampled_from(["extend", "trim", "drop", "clip", "replace"]))
        if change == "trim":
            messages = messages[: draw(st.integers(0, len(messages)))]
        elif change == "drop":
            messages = messages[draw(st.integers(0, len(messages))) :]
        elif change == "clip" and messages:
            messages[draw(st.integers(0, len(messages) - 1))] = {"role": "tool", "content": "[clipped]"}
        elif change == "replace":
            messages = []
        messages += draw(st.lists(MESSAGES, max_size=3))
        lists[agent] = messages
        calls.append((agent, messages))
    return calls


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Draw a closed trace with several agents, tool calls and odd values."""
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest="0" * 64))
    for step, (agent, messages) in enumerate(draw(transcripts())):
        tools = draw(st.none() | st.lists(st.dictionaries(st.sampled_from("ab"), TEXTS, max_size=2), max_size=1))
        logprobs = draw(st.none() | st.lists(st.floats(), max_size=3).map(tuple))
        builder.model_call(messages, tools=tools, agent=agent, step=step, text=draw(TEXTS), logprobs=logprobs)
        for event in draw(st.lists(_events(step, agent), max_size=2)):
            builder.add(event)
    return builder.close("solved")


def _events(step: int, agent: str) -> st.SearchStrategy[AnyEvent]:
    return st.one_of(
        st.builds(
            lambda value, result: ToolCall(name="bash", step=step, agent=agent, arguments=value, result=result),
            VALUES,
            VALUES,
        ),
        st.builds(lambda value: UserTurn(step=step, agent=agent, content=value), TEXTS),
        st.builds(lambda value: ClockRead(step=step, agent=agent, value=value), VALUES),
        st.builds(lambda value: HarnessAction(step=step, name="reminder", detail=value), VALUES),
    )


def request(name: str, arguments: Mapping[str, JSON], raw: str | None = None, call: str = "") -> ToolRequest:
    """Make a tool call as a model emits it."""
    return ToolRequest(name, dict(arguments), raw, call)


def model(text: str | None = None, *calls: ToolRequest, **fields: Any) -> ModelCall:
    """Make a model call with a recorded input; its messages come from the episode."""
    return ModelCall(text=text, **{"tool_calls": calls, "fidelity": Fidelity.RECORDED, **fields})


def bash(command: str, result: JSON = "ok", **fields: Any) -> ToolCall:
    """Make a call of the tool `bash`."""
    return ToolCall(name="bash", arguments={"command": command}, result=result, **fields)


def episode(
    *steps: Sequence[AnyEvent],
    system: JSON = "You fix bugs.",
    outcome: str = "solved",
    tools: JSON = None,
) -> Trace:
    """Build the trace of an agent that sends its whole transcript at each model call; each argument is a step."""
    builder = TraceBuilder()
    builder.add(RolloutStarted())
    messages: list[JSON] = [{"role": "system", "content": system}]
    for step, events in enumerate(steps):
        for event in events:
            if isinstance(event, ModelCall):
                fields = {name: getattr(event, name) for name in event.__struct_fields__}
                for name in ("input", "tools", "step", "agent"):
                    del fields[name]
                builder.model_call(list(messages), step=step, agent=event.agent, tools=tools, **fields)
            else:
                builder.add(_at_step(event, step))
            messages += _messages(event)
    return builder.close(outcome)


def _at_step(event: AnyEvent, step: int) -> AnyEvent:
    return msgspec.structs.replace(event, step=step)


def _messages(event: AnyEvent) -> list[JSON]:
    """Return what an event adds to the transcript."""
    match event:
        case ModelCall(error=None, rejected=None):
            calls: list[JSON] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in event.tool_calls
            ]
            return [{"role": "assistant", "content": event.text, "tool_calls": calls}]
        case ToolCall():
            shown = event.result if event.seen is None else event.seen
            return [{"role": "tool", "tool_call_id": event.id, "content": shown}]
        case UserTurn():
            return [{"role": "user", "content": event.content}]
        case HarnessAction(name="message"):
            return [{"role": "user", "content": event.detail}]
    return []


def reader(trace: Trace, conditions: Mapping[str, JSON] | None = None, outcome: str = "solved") -> MemoryTraceReader:
    """Make a trace reader with a manifest that states the given conditions."""
    return MemoryTraceReader(trace, Manifest.of(conditions or {}, unknown="not stated"), outcome)


def step(*events: AnyEvent) -> list[AnyEvent]:
    """Make a step of events of any kind."""
    return list(events)
