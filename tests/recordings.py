"""Recordings that tests store: small, complete, and different only where a test says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from harnesslab.core.canonical import JSON, bytes_digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Source
from harnesslab.core.trace.events import (
    Fidelity,
    ModelCall,
    RolloutStarted,
    ToolCall,
    ToolRequest,
    Usage,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.trace import Trace, TraceBuilder

COMMANDS = ("ls", "cat a.txt", "echo done > b.txt")


def manifest(**values: JSON) -> Manifest:
    """A manifest with a few known conditions; keywords use `__` for the dot."""
    known: dict[str, JSON] = {"model.name": "m-1", "sampling.temperature": 1.0}
    known |= {name.replace("__", "."): value for name, value in values.items()}
    return Manifest.of(known, unknown="not recorded in the test")


def trace(
    commands: Sequence[str] = COMMANDS,
    *,
    results: Mapping[int, str] | None = None,
    outcome: Outcome = Outcome.SOLVED,
    user: str = "Do the task.",
    digest: str = "",
    system: str = "Be brief.",
    retried: int = -1,
    latency: float | None = None,
) -> Trace:
    """An agent that runs commands one after the other, each in its own step; the first request of `retried` fails."""
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=digest))
    builder.add(UserTurn(content=user, simulated=True))
    messages: list[JSON] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    for step, command in enumerate(commands):
        call_id = f"call_{step:024d}"
        arguments: dict[str, JSON] = {"command": command}
        if step == retried:
            builder.model_call(messages, step=step, model="m-1", fidelity=Fidelity.RECORDED, error="connection reset")
        builder.model_call(
            messages,
            step=step,
            attempt=int(step == retried),
            model="m-1",
            fidelity=Fidelity.RECORDED,
            settings={"temperature": 1.0},
            text=f"I run {command}.",
            tool_calls=(ToolRequest(name="run", arguments=arguments, id=call_id),),
            usage=Usage(input=100 + step, output=10, cache_read=50),
            at=float(step),
            latency=latency,
        )
        result = (results or {}).get(step, f"output of {command}")
        builder.add(ToolCall(name="run", arguments=arguments, id=call_id, step=step, result=result, exit_code=0))
        messages.append(
            {"role": "assistant", "content": f"I run {command}.", "tool_calls": [_message_call(call_id, command)]}
        )
        messages.append({"role": "tool", "tool_call_id": call_id, "content": result})
    passed = outcome is Outcome.SOLVED
    builder.add(Verification(step=len(commands) - 1, passed=passed, reward=float(passed)))
    return builder.close(outcome)


def _message_call(call_id: str, command: str) -> JSON:
    return {"id": call_id, "type": "function", "function": {"name": "run", "arguments": f'{{"command": "{command}"}}'}}


def recording(
    commands: Sequence[str] = COMMANDS,
    *,
    case: str = "case-1",
    trial: int = 0,
    outcome: Outcome = Outcome.SOLVED,
    results: Mapping[int, str] | None = None,
    user: str = "Do the task.",
    retried: int = -1,
    latency: float | None = None,
    conditions: Mapping[str, JSON] | None = None,
    **fields: Any,
) -> Recording:
    """A whole recording of `trace`."""
    document = manifest(**{"panel__case": case, **(conditions or {})})
    said = {"outcome": outcome, "user": user, "digest": document.digest, "retried": retried, "latency": latency}
    made = trace(commands, results=results, **said)  # type: ignore[arg-type]
    defaults: dict[str, Any] = {
        "source": Source("test.jsonl", bytes_digest(b"test"), "harnesslab"),
        "project": "tests",
        "panel": "panel-1",
        "model": "m-1",
        "harness": "loop",
        "trial_stated": True,
        "tags": ("small",),
        "reward": 1.0 if outcome is Outcome.SOLVED else 0.0,
    }
    return Recording(manifest=document, trace=made, outcome=outcome, case=case, trial=trial, **(defaults | fields))


def served(recording: Recording, below: int = 2) -> Recording:
    """The recording as a rerun has it that took the answers of its first steps from its record."""
    return changed(recording, below, extra={"served": "from the record"})


def changed(recording: Recording, below: int, **fields: Any) -> Recording:
    """The recording with other fields of its model calls, in the first steps."""
    events = [
        structs.replace(event, **fields) if isinstance(event, ModelCall) and event.step < below else event
        for event in recording.trace.events
    ]
    return replace(recording, trace=Trace(tuple(events), recording.trace.payloads, recording.trace.digests))
