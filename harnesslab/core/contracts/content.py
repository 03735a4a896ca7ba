"""What of an event counts at a level, before ids are renamed and rules applied; conditions are left to manifests."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.contracts.contract import Level
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
    ToolRequest,
    UserTurn,
    Verification,
)

ANSWER_KEYS = ("text", "reasoning", "refusal", "calls", "finish")


def record(event: AnyEvent, level: Level) -> dict[str, JSON] | None:
    """Return the recorded content of an event at the levels above behaviour; conditions are left to manifests."""
    match event:
        case RolloutStarted():
            return None
        case ModelCall():
            return {"kind": "model", **output(event, level)}
        case ToolCall():
            return {
                "kind": "tool",
                "name": event.name,
                "arguments": _arguments(event.arguments, event.raw, level),
                "result": event.result if event.has_result else {"missing": True},
                "seen": event.seen,
                "exit": event.exit_code,
                "error": event.error,
                "timed_out": event.timed_out,
            }
        case UserTurn():
            return {"kind": "user", "content": event.content}
        case SubagentCall():
            asked: dict[str, JSON] = {"kind": "subagent", "name": event.name, "input": event.input}
            return {**asked, "output": event.output, "error": event.error}
        case Retrieval():
            return {"kind": "retrieval", "query": event.query, "documents": event.documents}
        case MemoryAccess():
            return {"kind": "memory", "operation": event.operation, "key": event.key, "value": event.value}
        case ClockRead():
            return {"kind": "clock", "value": event.value}
        case NetworkExchange():
            exchange = {"target": event.target, "request": event.request, "response": event.response}
            return {"kind": "network", **exchange, "error": event.error}
        case HarnessAction():
            return {"kind": "harness", "name": event.name, "mechanism": event.mechanism, "detail": event.detail}
        case Verification():
            tests: list[JSON] = [[test.name, test.passed] for test in event.tests]
            verdict: dict[str, JSON] = {"passed": event.passed, "reward": event.reward, "tests": tests}
            return {"kind": "verification", **verdict, "error": event.error}
        case RolloutEnded():
            return {"kind": "ended", "outcome": event.outcome, "diff": event.diff}


def output(event: ModelCall, level: Level) -> dict[str, JSON]:
    content: dict[str, JSON] = {
        "attempt": event.attempt,
        "rejected": event.rejected is not None,
        "finish": event.finish_reason,
        "error": event.error,
    }
    if level in (Level.TEXT, Level.JSON):
        content["text"] = event.text
        content["reasoning"] = event.reasoning
        content["refusal"] = event.refusal
        content["calls"] = [
            {"name": call.name, "arguments": _arguments(call.arguments, call.raw, level)} for call in event.tool_calls
        ]
        return content
    content["prompt"] = list(event.prompt_token_ids or ())
    content["tokens"] = list(event.token_ids or ())
    if level is Level.LOGPROBS:
        content["logprobs"] = list(event.logprobs or ())
    return content


def behaviour(event: AnyEvent) -> dict[str, JSON] | None:
    """Return the action of an event: what an agent did, whatever words it used; None where it did nothing."""
    match event:
        case ModelCall(rejected=None, error=None):
            return {
                "kind": "model",
                "calls": [_action(call) for call in event.tool_calls],
                "refused": event.refusal is not None,
            }
        case ToolCall():
            return tool_action(event, Level.JSON)
        case SubagentCall():
            return {"kind": "subagent", "name": event.name, "input": event.input}
        case Verification():
            return {"kind": "verification", "passed": event.passed}
        case RolloutEnded():
            return {"kind": "ended", "outcome": event.outcome}
    return None


def tool_action(event: AnyEvent, level: Level) -> dict[str, JSON] | None:
    """Return a tool call without its result; None for any other event."""
    if not isinstance(event, ToolCall):
        return None
    return {"kind": "tool", "name": event.name, "arguments": _arguments(event.arguments, event.raw, level)}


def _action(call: ToolRequest) -> Mapping[str, JSON]:
    return {"name": call.name, "arguments": _arguments(call.arguments, call.raw, Level.JSON)}


def _arguments(arguments: JSON, raw: str | None, level: Level) -> JSON:
    """Return the arguments as emitted at the text level, as values below it."""
    if level in (Level.JSON, Level.BEHAVIOUR):
        return arguments if arguments is not None else raw
    return raw if raw is not None else arguments
