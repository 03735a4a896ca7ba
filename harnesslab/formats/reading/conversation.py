"""From a chat transcript to events, for the many formats that keep a conversation and no requests.

Each assistant message becomes a model call whose input is rebuilt from the messages before it; each of its
tool calls becomes a tool call with the result found in the answering message; user messages become user turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import HarnessAction, ToolCall, ToolRequest, UserTurn
from harnesslab.core.trace.messages import MessageView, result_of, view
from harnesslab.core.trace.trace import TraceBuilder

Details = Callable[[int, JSON], Mapping[str, Any]]
"""From (position, message) to further fields of the event it makes, such as usage or latency."""


def _no_details(position: int, message: JSON) -> Mapping[str, Any]:
    return {}


def add_conversation(
    builder: TraceBuilder,
    messages: Sequence[JSON],
    *,
    model: str = "",
    prompt: JSON = None,
    tools: JSON = None,
    settings: Mapping[str, JSON] | None = None,
    simulated_user: bool | None = None,
    agent: str = "",
    first_step: int = 0,
    call_details: Details = _no_details,
    result_details: Details = _no_details,
) -> int:
    """Append the events of a whole transcript and return the next free step.

    `call_details` adds fields to the model call of an assistant message, `result_details` to the tool call that
    a tool message answers. A `prompt` is a system message that stands beside the transcript and opens every input.
    """
    step, answered = first_step, set[int]()
    opening: list[JSON] = [] if prompt is None else [{"role": "system", "content": prompt}]
    loose: list[tuple[int, MessageView]] = []
    for position, message in enumerate(messages):
        seen = view(message)
        origin = f"message {position}"
        if seen.role in ("assistant", "model"):
            asked: dict[str, Any] = {"model": model, "settings": dict(settings or {}), "step": step, "origin": origin}
            said = {**asked, **model_output(seen), **call_details(position, message)}
            builder.model_call([*opening, *messages[:position]], tools=tools, agent=agent, **said)
            answered |= _add_tool_calls(builder, messages, position, seen, step, agent, result_details)
            step, loose = step + 1, []
        elif position not in answered and (seen.answers or seen.role in ("tool", "function")):
            builder.add(_orphan(message, max(step - 1, first_step), agent, origin, result_details(position, message)))
        elif seen.role in ("user", "human") and not seen.answers:
            content = message.get("content") if isinstance(message, Mapping) else message
            builder.add(UserTurn(step=step, agent=agent, content=content, simulated=simulated_user, origin=origin))
        elif position not in answered:
            loose.append((position, seen))
    _add_loose(builder, messages, loose, step=max(step - 1, first_step), agent=agent)
    return step


def _turn(message: JSON, **fields: Any) -> UserTurn:
    return UserTurn(content=message.get("content") if isinstance(message, Mapping) else message, **fields)


def _add_loose(
    builder: TraceBuilder, messages: Sequence[JSON], loose: Sequence[tuple[int, MessageView]], **fields: Any
) -> None:
    """Append what no call was sent and nobody said, which would be lost."""
    for position, seen in loose:
        builder.add(HarnessAction(name=seen.role, detail=messages[position], origin=f"message {position}", **fields))


def model_output(seen: MessageView) -> dict[str, Any]:
    """Return the output fields of a model call from the assistant message it became."""
    return {"text": seen.text or None, "reasoning": seen.reasoning or None, "tool_calls": seen.tool_calls}


def _add_tool_calls(
    builder: TraceBuilder,
    messages: Sequence[JSON],
    position: int,
    seen: MessageView,
    step: int,
    agent: str,
    details: Details,
) -> set[int]:
    """Append the tool calls of one assistant message and return the positions of the answers they took."""
    answers = _answers(messages, position)
    taken: set[int] = set()
    for emitted, request in enumerate(seen.tool_calls):
        found = _take(answers, request)
        if found is None:
            builder.add(_tool_call(request, step, agent, emitted, has_result=False, origin=f"message {position}"))
            continue
        where, answer = found
        taken.add(where)
        fields = {"result": result_of(answer), "origin": f"message {where}", **details(where, answer)}
        builder.add(_tool_call(request, step, agent, emitted, **fields))
    return taken


def _orphan(message: JSON, step: int, agent: str, origin: str, details: Mapping[str, Any]) -> ToolCall:
    """Make the tool call of a result whose request the transcript does not hold."""
    seen = view(message)
    fields = {"result": result_of(message), "origin": origin, **details}
    return ToolCall(name=seen.name or "unnamed", id=seen.answers, step=step, agent=agent, **fields)


def _tool_call(request: ToolRequest, step: int, agent: str, emitted: int, **fields: Any) -> ToolCall:
    return ToolCall(
        name=request.name,
        arguments=request.arguments,
        raw=request.raw,
        id=request.id,
        step=step,
        agent=agent,
        emitted=emitted,
        **fields,
    )


def _answers(messages: Sequence[JSON], position: int) -> list[tuple[int, JSON]]:
    """Return the tool messages between an assistant message and the next one."""
    found: list[tuple[int, JSON]] = []
    for index in range(position + 1, len(messages)):
        seen = view(messages[index])
        if seen.role in ("assistant", "model"):
            break
        if seen.answers or seen.role in ("tool", "function"):
            found.extend((index, part) for part in answer_parts(messages[index]))
    return found


def answer_parts(message: JSON) -> list[JSON]:
    """Return a message that answers several tool calls as one message for each; any other is itself."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(content, list):
        return [message]
    results = [part for part in content if isinstance(part, Mapping) and part.get("type") == "tool_result"]
    return [{**message, "content": [part]} for part in results] or [message]


def _take(answers: list[tuple[int, JSON]], request: ToolRequest) -> tuple[int, JSON] | None:
    """Remove and return the answer to a call: the one with its id, else the first that names no id."""
    for index, (_, answer) in enumerate(answers):
        if request.id and view(answer).answers == request.id:
            return answers.pop(index)
    for index, (_, answer) in enumerate(answers):
        if not view(answer).answers or not request.id:
            return answers.pop(index)
    return None
