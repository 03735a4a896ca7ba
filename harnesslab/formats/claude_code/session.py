"""The events of one Claude Code session, from its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesslab.core.canonical import JSON, Digest
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import HarnessAction, RolloutStarted, SubagentCall, ToolRequest, UserTurn
from harnesslab.core.trace.messages import text_of, view
from harnesslab.core.trace.parts import parts_of
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.inputs import JsonLine, Report
from harnesslab.formats.reading.transcript import Transcript, tool_call
from harnesslab.formats.reading.values import elapsed, items, mapping, moment, number, text, without_nulls

_ENVELOPE = (
    "type", "message", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version", "gitBranch", "userType",
    "isSidechain", "requestId", "toolUseResult", "slug", "entrypoint",
)  # fmt: skip
_STOPPED = "[Request interrupted by user"
_SPAWNING = ("Task", "Agent")


@dataclass(slots=True)
class _Waiting:
    """A tool call whose result has not come yet."""

    request: ToolRequest
    step: int
    emitted: int
    agent: str


@dataclass(slots=True)
class Session:
    """Appends a session's events in the order of its lines, main chain and sub-agents together."""

    manifest: Digest
    start: float | None
    builder: TraceBuilder = field(default_factory=TraceBuilder)
    interrupted: str = ""
    """What shows that the session did not come to its end by itself."""
    _transcripts: dict[str, Transcript] = field(default_factory=dict)
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)
    """Agent path by the uuid of a sidechain's line."""
    _prompts: dict[str, str] = field(default_factory=dict)
    """Agent path by the prompt that a sidechain began with."""
    _step: int = -1
    _left: bool = False
    """Whether a person spoke after the last reply."""
    _completed: dict[int, int] = field(default_factory=dict)

    def read(self, lines: Sequence[JsonLine], report: Report) -> None:
        """Append the events of all lines."""
        self.builder.add(RolloutStarted(manifest=self.manifest))
        replies = _replies(lines)
        for line in lines:
            agent = self._agent(line.value)
            fields: dict[str, Any] = {
                "agent": agent,
                "origin": f"line {line.number}",
                "at": elapsed(moment(line.value.get("timestamp")), self.start),
            }
            match line.value.get("type"):
                case "assistant" if isinstance(line.value.get("message"), Mapping):
                    self._assistant(line, replies, fields)
                case "user" if "content" in mapping(line.value.get("message")):
                    self._user(line.value, fields)
                case "assistant" | "user":
                    report.skip(f"line {line.number}", "a message without content")
                case _:
                    self._harness(line.value, fields)
        for waiting in self._waiting.values():
            self._tool(waiting, {"has_result": False, "agent": waiting.agent})
            if waiting.step < self._step or self._left:
                continue
            self.interrupted = (
                self.interrupted or f"no result of {waiting.request.name}: the session ends inside the call"
            )

    def _agent(self, row: Mapping[str, JSON]) -> str:
        """Return the path of the agent that a line belongs to; a sidechain without a name is numbered."""
        if not row.get("isSidechain"):
            return ""
        uuid, parent = text(row.get("uuid")), text(row.get("parentUuid"))
        path = text(row.get("agentId")) or self._agents.get(parent)
        if path is None or not path:
            path = f"sidechain/{len(set(self._agents.values()))}"
        if uuid:
            self._agents[uuid] = path
        if row.get("type") == "user" and path not in self._transcripts:
            self._prompts.setdefault(text_of(mapping(row.get("message")).get("content")), path)
        return path

    def _say(self, agent: str, message: JSON) -> None:
        self._transcript(agent).say(message)

    def _transcript(self, agent: str) -> Transcript:
        return self._transcripts.setdefault(agent, Transcript(self.builder, agent))

    def _assistant(self, line: JsonLine, replies: Mapping[str, list[JsonLine]], fields: dict[str, Any]) -> None:
        """Append the model call of a reply at its first line; its other lines are part of it."""
        key = _reply_key(line)
        parts = replies[key]
        if parts[0].number != line.number:
            return
        last = mapping(parts[-1].value.get("message"))
        merged: dict[str, JSON] = {"role": "assistant", "content": _content(parts)}
        if last.get("model") == "<synthetic>" or line.value.get("isApiErrorMessage"):
            name = "api error" if line.value.get("isApiErrorMessage") else "synthetic reply"
            detail = {**without_nulls(last, "content", "usage"), "content": merged["content"]}
            self.builder.add(HarnessAction(name=name, detail=detail, step=max(self._step, 0), **fields))
            return
        self._step, self._left = self._step + 1, False
        seen = view(merged)
        agent = fields.pop("agent")
        stop = next((text(mapping(p.value.get("message")).get("stop_reason")) for p in reversed(parts)), "")
        self._transcript(agent).call(
            **fields,
            step=self._step,
            model=text(last.get("model")),
            text=seen.text or None,
            reasoning=seen.reasoning or None,
            tool_calls=seen.tool_calls,
            finish_reason=stop or None,
            usage=usage.anthropic(last.get("usage")),
            response_id=text(last.get("id")) or None,
            extra=without_nulls({"request_id": line.value.get("requestId"), "usage": last.get("usage")}),
        )
        self._say(agent, merged)
        for emitted, request in enumerate(seen.tool_calls):
            self._waiting[request.id or f"{key}/{emitted}"] = _Waiting(request, self._step, emitted, agent)

    def _user(self, row: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append what a user line is: results of tools, a person's turn, or the harness's words in their place."""
        message = mapping(row.get("message"))
        content, agent = message.get("content"), fields["agent"]
        blocks = [content] if isinstance(content, str) else items(content)
        results = [mapping(block) for block in blocks if mapping(block).get("type") == "tool_result"]
        rest = [block for block in blocks if mapping(block).get("type") != "tool_result"]
        for block in results:
            self._result(block, row.get("toolUseResult") if len(results) == 1 else None, fields)
        if row.get("isCompactSummary"):
            self._transcript(agent).restart()
        self._say(agent, {"role": message.get("role") or "user", "content": content})
        if not rest:
            return
        said = content if not results else rest
        step = max(self._step, 0) if row.get("isMeta") or row.get("isCompactSummary") else self._step + 1
        notes = {
            key: value for key, value in without_nulls(row, *_ENVELOPE).items() if not isinstance(value, bool) or value
        }
        if row.get("isMeta") or row.get("isCompactSummary"):
            name = "compact summary" if row.get("isCompactSummary") else "meta message"
            self.builder.add(HarnessAction(name=name, detail=said, step=step, extra=notes, **fields))
        else:
            self.builder.add(UserTurn(content=said, step=step, extra=notes, **fields))
            self._left = True
        stopped = text_of(said).startswith(_STOPPED)
        self.interrupted = "the user interrupted the request" if stopped and not agent else ""

    def _result(self, block: Mapping[str, JSON], produced: JSON, fields: dict[str, Any]) -> None:
        """Append the tool call that a result answers; `produced` is the result before it was shown to the model."""
        call_id = text(block.get("tool_use_id"))
        waiting = self._waiting.pop(call_id, None)
        if waiting is None:
            waiting = _Waiting(ToolRequest("unnamed", id=call_id), max(self._step, 0), 0, fields["agent"])
        content = block.get("content")
        shown = content if parts_of(content) else text_of(content)
        result = shown if produced is None else produced
        known = mapping(produced)
        milliseconds = number(known.get("durationMs")) or number(known.get("totalDurationMs"))
        completed = self._completed.get(waiting.step, 0)
        self._completed[waiting.step] = completed + 1
        outcome: dict[str, Any] = {
            "result": result,
            "seen": shown if result != shown else None,
            "error": text_of(content) if block.get("is_error") is True else None,
            "latency": milliseconds / 1000 if milliseconds is not None else None,
            "completed": completed,
        }
        self._tool(waiting, {**fields, **outcome})

    def _tool(self, waiting: _Waiting, fields: dict[str, Any]) -> None:
        """Append a tool call, or the hand-over to a sub-agent whose own lines are in the session."""
        request = waiting.request
        asked = mapping(request.arguments)
        child = self._prompts.get(text(asked.get("prompt"))) if request.name in _SPAWNING else None
        child = child or (text(mapping(fields.get("result")).get("agentId")) if request.name in _SPAWNING else "")
        if child and child in self._transcripts:
            extra = without_nulls({"id": request.id, "seen": fields.get("seen"), "emitted": waiting.emitted})
            kept = {key: fields[key] for key in ("at", "latency", "origin", "error", "agent") if key in fields}
            name = text(asked.get("subagent_type")) or request.name
            output, step = fields.get("result"), waiting.step
            call = SubagentCall(
                name=name, child=child, input=request.arguments, output=output, step=step, extra=extra, **kept
            )
            self.builder.add(call)
            return
        self.builder.add(tool_call(request, step=waiting.step, emitted=waiting.emitted, **fields))

    def _harness(self, row: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append a line that is neither user nor assistant: compaction, hooks, permissions, snapshots, notices."""
        kind = text(row.get("subtype")) or text(row.get("type"))
        detail = without_nulls(row, *_ENVELOPE)
        if kind == "compact_boundary":
            self._transcript(fields["agent"]).restart()
        self.builder.add(HarnessAction(name=kind.replace("_", " "), detail=detail, step=max(self._step, 0), **fields))


def _reply_key(line: JsonLine) -> str:
    """Name the reply that a line is part of: its message, else its request, else itself."""
    message = mapping(line.value.get("message"))
    side = "side " if line.value.get("isSidechain") else ""
    return side + (text(message.get("id")) or text(line.value.get("requestId")) or f"line {line.number}")


def _replies(lines: Sequence[JsonLine]) -> dict[str, list[JsonLine]]:
    found: dict[str, list[JsonLine]] = {}
    for line in lines:
        if line.value.get("type") == "assistant":
            found.setdefault(_reply_key(line), []).append(line)
    return found


def _content(parts: Sequence[JsonLine]) -> list[JSON]:
    """Put the blocks of a reply's lines together; a line that repeats another's blocks adds nothing."""
    blocks: list[JSON] = []
    seen: set[str] = set()
    for part in parts:
        uuid = text(part.value.get("uuid"))
        if uuid and uuid in seen:
            continue
        seen.add(uuid)
        content = mapping(part.value.get("message")).get("content")
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    return blocks
