"""One small episode written in the shapes of several formats, and read by their real importers.

What is planted in an episode is planted in each format that can hold it: `native` and `chat` keep requests as they were
sent, `mini` and `swe` keep a conversation whose actions are written in text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harnesslab.core.comparing.comparison import compare_traces
from harnesslab.core.contracts.contract import RAW, Contract
from harnesslab.core.contracts.trace_reader import MemoryTraceReader, SourceIdentity
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.registry import recognise
from harnesslab.queries.comparisons.result import ComparisonResult, result


@dataclass(frozen=True)
class Turn:
    """One step: what the model said and called, and what came back."""

    text: str = "Looking."
    command: str = ""
    output: str = "ok"
    tokens: int | None = None
    """Prompt tokens, as counted by the provider."""
    error: str = ""
    """The request failed with this, and was tried again."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the native model call."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the native tool call."""
    said: str = ""
    """What the user says after it."""
    id: str = ""
    """The provider's id of the answer."""


@dataclass(frozen=True)
class Episode:
    """A whole run."""

    turns: tuple[Turn, ...] = (Turn("I look first.", "cat notes.txt", "one\ntwo"), Turn("All done."))
    opening: str = "Sort the names in names.txt and write them to out.txt."
    system: str = "You are a shell agent."
    examples: tuple[str, ...] = ()
    """User messages before the opening one, each answered."""
    case: str = "tidy"
    settings: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    tools: Any = None
    outcome: str = "solved"
    ended: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the closing event."""
    events: tuple[Mapping[str, Any], ...] = ()
    """Native events between the opening and the first answer."""

    def but(self, **changes: Any) -> Episode:
        """Return it with other fields."""
        return replace(self, **changes)

    def turn(self, number: int, **changes: Any) -> Episode:
        """Return it with one turn changed."""
        turns = list(self.turns)
        turns[number] = replace(turns[number], **changes)
        return replace(self, turns=tuple(turns))

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages of the first request."""
        opening: list[dict[str, Any]] = [{"role": "system", "content": self.system}]
        for example in self.examples:
            opening += [{"role": "user", "content": example}, {"role": "assistant", "content": f"Done: {example}"}]
        return [*opening, {"role": "user", "content": self.opening}]


def _asked(turn: Turn, number: int) -> list[dict[str, Any]]:
    call = {"name": "bash", "arguments": json.dumps({"command": turn.command})}
    return [{"id": f"c{number}", "type": "function", "function": call}] if turn.command else []


def _reply(turn: Turn, number: int) -> list[dict[str, Any]]:
    asked = _asked(turn, number)
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": turn.text, **({"tool_calls": asked} if asked else {})}
    ]
    if turn.command:
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": turn.output})
    return messages + ([{"role": "user", "content": turn.said}] if turn.said else [])


def native(episode: Episode) -> bytes:
    """Write our own lines, with the requests as they were sent."""
    conditions = {"model.name": "m-1", "harness.name": "loop", **episode.conditions}
    header = {
        "schema": "harnesslab.trace/1",
        "case": episode.case,
        "outcome": episode.outcome,
        "conditions": conditions,
    }
    rows: list[dict[str, Any]] = [{"rollout": header}, {"kind": "user_turn", "content": episode.opening}]
    rows += [dict(event) for event in episode.events]
    messages = episode.messages()
    common = {"kind": "model_call", "fidelity": "recorded", "model": "m-1", "settings": episode.settings}
    for number, turn in enumerate(episode.turns):
        asked: dict[str, Any] = {**common, "step": number, "messages": list(messages), "tools": episode.tools}
        if turn.error:
            rows.append({**asked, "error": turn.error})
        calls = [{"name": "bash", "arguments": {"command": turn.command}, "id": f"c{number}"}] if turn.command else []
        usage = {"usage": {"input": turn.tokens, "output": 5}} if turn.tokens else {}
        named = {"response_id": turn.id} if turn.id else {}
        answered = {"text": turn.text, "tool_calls": calls, "attempt": int(bool(turn.error)), **usage, **named}
        rows.append({**asked, **answered, **turn.answer})
        if turn.command:
            call = {"kind": "tool_call", "step": number, "name": "bash", "arguments": {"command": turn.command}}
            rows.append({**call, "id": f"c{number}", "result": turn.output, **turn.result})
        if turn.said:
            rows.append({"kind": "user_turn", "step": number + 1, "content": turn.said})
        messages += _reply(turn, number)
    rows.append({"kind": "rollout_ended", "outcome": episode.outcome, **episode.ended})
    return _lines(rows)


def chat(episode: Episode) -> bytes:
    """Write a log of chat requests and responses."""
    rows: list[dict[str, Any]] = []
    messages = episode.messages()
    for number, turn in enumerate(episode.turns):
        tools = {"tools": episode.tools} if episode.tools else {}
        metadata = {"metadata": {"case": episode.case}} if episode.case else {}
        request = {"model": "m-1", "messages": list(messages), **tools, **metadata, **episode.settings}
        if turn.error:
            rows.append({"request": request, "error": {"message": turn.error}, "status": 429})
        asked = _asked(turn, number)
        message = {"role": "assistant", "content": turn.text, **({"tool_calls": asked} if asked else {})}
        choice = {"index": 0, "message": message, "finish_reason": turn.answer.get("finish_reason", "stop")}
        choice |= {"token_ids": list(turn.answer["token_ids"])} if "token_ids" in turn.answer else {}
        body: dict[str, Any] = {"choices": [choice], **({"id": turn.id} if turn.id else {})}
        body |= {"usage": {"prompt_tokens": turn.tokens, "completion_tokens": 5}} if turn.tokens else {}
        body |= {key: turn.answer[key] for key in ("prompt_token_ids",) if key in turn.answer}
        body |= {"system_fingerprint": turn.answer["fingerprint"]} if "fingerprint" in turn.answer else {}
        rows.append({"request": request, "response": body})
        messages += _reply(turn, number)
    return _lines(rows)


def mini(episode: Episode) -> bytes:
    """Write a mini-swe-agent trajectory: commands in blocks of text."""
    messages: list[dict[str, Any]] = episode.messages()
    for turn in episode.turns:
        block = f"\n\n```mswea_bash_command\n{turn.command}\n```" if turn.command else ""
        body: dict[str, Any] = {"id": turn.id or None, "choices": [{"finish_reason": "stop"}]}
        body |= {"usage": {"prompt_tokens": turn.tokens, "completion_tokens": 5}} if turn.tokens else {}
        actions = [{"command": turn.command}] if turn.command else []
        extra = {"response": body, "actions": actions}
        messages.append({"role": "assistant", "content": f"{turn.text}{block}", "extra": extra})
        if turn.command:
            seen = f"<returncode>0</returncode>\n<output>\n{turn.output}\n</output>"
            messages.append({"role": "user", "content": seen, "extra": {"raw_output": turn.output, "returncode": 0}})
    config = {"model": {"model_name": "m-1", "model_kwargs": dict(episode.settings)}, "agent": {}}
    info = {
        "exit_status": "Submitted",
        "submission": episode.ended.get("diff", ""),
        "mini_version": "2.0",
        "config": config,
    }
    if episode.ended.get("error"):
        info["exit_status"] = episode.ended["error"]
    run = {"instance_id": episode.case, "messages": messages, "info": info, "trajectory_format": "mini-swe-agent-1.1"}
    return json.dumps(run).encode()


def swe(episode: Episode) -> bytes:
    """Write a SWE-agent trajectory: actions parsed out of text."""
    history: list[dict[str, Any]] = [{**message, "agent": "main"} for message in episode.messages()]
    steps: list[dict[str, Any]] = []
    for turn in episode.turns:
        response = f"{turn.text}\n```\n{turn.command}\n```" if turn.command else turn.text
        query = [{key: message[key] for key in ("role", "content")} for message in history]
        observation = turn.output if turn.command else ""
        step = {"action": turn.command, "observation": observation, "response": response, "thought": turn.text}
        steps.append({**step, "query": query})
        history.append({"role": "assistant", "content": response, "agent": "main", "action": turn.command})
        if turn.command:
            history.append({"role": "user", "content": turn.output, "agent": "main"})
    model = {"name": "m-1", **episode.settings}
    config = {"agent": {"model": model}, "problem_statement": {"id": episode.case}}
    info = {"exit_status": episode.ended.get("error", "submitted"), "submission": episode.ended.get("diff", "")}
    run = {"trajectory": steps, "history": history, "info": info, "replay_config": json.dumps(config)}
    return json.dumps(run).encode()


Writing = Callable[[Episode], bytes]
FORMATS: dict[Writing, tuple[str, str]] = {
    native: ("run.jsonl", "harnesslab"),
    chat: ("log.jsonl", "chat-log"),
    mini: ("run.traj.json", "mini-swe-agent"),
    swe: ("run.traj", "swe-agent"),
}
"""The file's name and the importer's, by format."""


def reader(data: bytes, writing: Writing) -> MemoryTraceReader:
    """Read a file's one rollout by the importer that recognises it, which must be the one meant."""
    name, importer = FORMATS[writing]
    unit = Unit(name, {name: InputFile.of_bytes(name, data)})
    recognised = recognise(unit).importer
    assert importer == recognised.NAME
    (recording,) = recognised.read(unit, Report())
    source = SourceIdentity(recording.case, recording.source.format, recording.source.digest)
    return MemoryTraceReader(recording.trace, recording.manifest, recording.outcome.value, source)


def compared(a: MemoryTraceReader, b: MemoryTraceReader, contract: Contract = RAW) -> ComparisonResult:
    """Compare two read traces as everybody is told it."""
    return result("a", "b", compare_traces(a, b, contract))


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(
        json.dumps({key: value for key, value in row.items() if value is not None}).encode() + b"\n" for row in rows
    )
