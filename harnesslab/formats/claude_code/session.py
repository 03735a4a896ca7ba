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
from harnesslab.formats.claude_code.calls import OpenCalls, Waiting
from harnesslab.formats.claude_code.kinship import SubagentFile
from harnesslab.formats.claude_code.replies import SessionReply, content_of, replies_of
from harnesslab.formats.reading.inputs import JsonLine, Report
from harnesslab.formats.reading.lineage import LEFT, SUBAGENT, Lineage, SessionEntry, copied_from, mark
from harnesslab.formats.reading.transcript import Transcript, tool_call
from harnesslab.formats.reading.values import elapsed, items, mapping, moment, number, text, without_nulls

_ENVELOPE = (
    "type", "message", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version", "gitBranch", "userType",
    "isSidechain", "requestId", "toolUseResult", "slug", "entrypoint",
)  # fmt: skip
_STOPPED = "[Request interrupted by user"
_SPAWNING = ("Task", "Agent")


@dataclass(slots=True)
class Session:
    """Appends a session's events in the order of its lines, main chain and sub-agents together."""

    manifest: Digest
    start: float | None
    copied: Mapping[int, str] = field(default_factory=dict)
    """By line number, the session that a line was copied from."""
    subagents: Mapping[str, SubagentFile] = field(default_factory=dict)
    """By a sub-agent's id or prompt, the file beside this one that holds it."""
    opening: Mapping[str, JSON] = field(default_factory=dict)
    """What `extra` of the opening event says."""
    builder: TraceBuilder = field(default_factory=TraceBuilder)
    interrupted: str = ""
    """What shows that the session did not come to its end by itself."""
    _lineages: dict[str, Lineage] = field(default_factory=dict)
    _calls: OpenCalls = field(default_factory=OpenCalls)
    _owners: list[tuple[int, str, SessionEntry]] = field(default_factory=list)
    """Event position, agent and entry of what was said or done in a conversation."""
    _preserved: Mapping[str, JSON] = field(default_factory=dict)
    """The part of the context that the compaction at hand preserves: ids of its first and last line."""
    _rooted: bool = False
    """Whether the lines name their parents, so that a prompt without one begins at the root."""
    _agents: dict[str, str] = field(default_factory=dict)
    """Agent path by the uuid of a sidechain's line."""
    _prompts: dict[str, str] = field(default_factory=dict)
    """Agent path by the prompt that a sidechain began with."""
    _step: int = -1
    _left: bool = False
    """Whether a person spoke after the last reply."""

    def read(self, lines: Sequence[JsonLine], report: Report) -> None:
        """Append the events of all lines."""
        self.builder.add(RolloutStarted(manifest=self.manifest, extra=self.opening))
        replies = replies_of(lines)
        self._rooted = _names_parents(lines)
        read: dict[str, JsonLine] = {}
        for line in lines:
            uuid = text(line.value.get("uuid"))
            if uuid and line.value.get("type") == "user" and uuid in read and _is_same(read[uuid], line):
                report.remark(f"line {line.number}", f"line {read[uuid].number} again, which is read once")
                continue
            read.setdefault(uuid, line)
            first = len(self.builder.events)
            self._line(line, replies, report)
            if line.number in self.copied:
                for index in range(first, len(self.builder.events)):
                    mark(self.builder, index, copied_from(self.copied[line.number]))
        self._close()

    @property
    def sidechains(self) -> list[JSON]:
        """The sub-agents whose events are among the session's."""
        return [*sorted(set(self._lineages) - {""})]

    def _line(self, line: JsonLine, replies: Mapping[int, SessionReply], report: Report) -> None:
        agent = self._agent(line.value)
        fields: dict[str, Any] = {
            "agent": agent,
            "origin": f"line {line.number}",
            "at": elapsed(moment(line.value.get("timestamp")), self.start),
        }
        match line.value.get("type"):
            case "assistant" if isinstance(line.value.get("message"), Mapping):
                if replies[line.number].lines[0].number == line.number:
                    self._assistant(line, replies[line.number], fields)
            case "user" if "content" in mapping(line.value.get("message")):
                self._user(line.value, fields)
            case "assistant" | "user":
                report.skip(f"line {line.number}", "a message without content")
            case _:
                self._harness(line.value, fields)

    def _close(self) -> None:
        """Append the calls without a result, and mark what is on no path that the session ended on."""
        for waiting in self._calls.rest():
            self._tool(waiting, {"has_result": False, "agent": waiting.agent})
            if waiting.step < self._step or self._left:
                continue
            self.interrupted = (
                self.interrupted or f"no result of {waiting.request.name}: the session ends inside the call"
            )
        live = {agent: lineage.live() for agent, lineage in self._lineages.items()}
        left = [(index, agent) for index, agent, entry in self._owners if entry not in live[agent]]
        gone = {text(getattr(self.builder.events[index], "child", "")) for index, _ in left} - {""}
        left += [(index, agent) for index, agent, _ in self._owners if agent in gone]
        for index, _ in left:
            mark(self.builder, index, {LEFT: True})

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
        if row.get("type") == "user" and path not in self._lineages:
            self._prompts.setdefault(text_of(mapping(row.get("message")).get("content")), path)
        return path

    def _lineage(self, agent: str) -> Lineage:
        if agent not in self._lineages:
            self._lineages[agent] = Lineage(Transcript(self.builder, agent))
        return self._lineages[agent]

    def _parent(self, row: Mapping[str, JSON], agent: str) -> SessionEntry | None:
        """Return the entry that a line names as its parent; None where it goes on from the last one."""
        lineage = self._lineage(agent)
        found = lineage.named(text(row.get("parentUuid"))) or lineage.named(text(row.get("logicalParentUuid")))
        prompt = row.get("type") == "user" and not row.get("isCompactSummary") and not agent
        if found is None and prompt and self._rooted and "parentUuid" in row and row["parentUuid"] is None:
            return lineage.root
        return found

    def _own(self, agent: str, entry: SessionEntry) -> None:
        """Note that the event that is appended next belongs to an entry."""
        self._owners.append((len(self.builder.events), agent, entry))

    def _assistant(self, line: JsonLine, reply: SessionReply, fields: dict[str, Any]) -> None:
        """Append the model call of a reply at its first line; its other lines are part of it."""
        last, agent = reply.last, fields["agent"]
        merged: dict[str, JSON] = {"role": "assistant", "content": content_of(reply)}
        lineage, parent = self._lineage(agent), self._parent(line.value, agent)
        if last.get("model") == "<synthetic>" or line.value.get("isApiErrorMessage"):
            name = "api error" if line.value.get("isApiErrorMessage") else "synthetic reply"
            detail = {**without_nulls(last, "content", "usage"), "content": merged["content"]}
            lineage.name(parent or lineage.tip, *reply.uuids)
            self.builder.add(HarnessAction(name=name, detail=detail, step=max(self._step, 0), **fields))
            return
        self._step, self._left = self._step + 1, False
        seen = view(merged)
        entry = lineage.begin(parent, calls=len(seen.tool_calls))
        lineage.name(entry, *reply.uuids)
        self._own(agent, entry)
        del fields["agent"]
        lineage.transcript.call(
            **fields,
            step=self._step,
            model=text(last.get("model")),
            text=seen.text or None,
            reasoning=seen.reasoning or None,
            tool_calls=seen.tool_calls,
            finish_reason=reply.stop or None,
            usage=usage.anthropic(reply.usage),
            response_id=text(last.get("id")) or None,
            extra=without_nulls({"request_id": line.value.get("requestId"), "usage": reply.usage}),
        )
        lineage.say(merged)
        for emitted, request in enumerate(seen.tool_calls):
            self._calls.add(Waiting(request, self._step, emitted, agent, entry))

    def _user(self, row: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append what a user line is: results of tools, a person's turn, or the harness's words in their place."""
        message = mapping(row.get("message"))
        content, agent = message.get("content"), fields["agent"]
        blocks = [content] if isinstance(content, str) else items(content)
        results = [mapping(block) for block in blocks if mapping(block).get("type") == "tool_result"]
        rest = [block for block in blocks if mapping(block).get("type") != "tool_result"]
        lineage, parent = self._lineage(agent), self._parent(row, agent)
        added = bool(row.get("isMeta") or row.get("isCompactSummary"))
        entry = lineage.result(parent) if results else lineage.begin(parent, is_note=added)
        lineage.name(entry, text(row.get("uuid")))
        for block in results:
            self._result(block, row.get("toolUseResult") if len(results) == 1 else None, entry, fields)
        said_now: dict[str, JSON] = {"role": message.get("role") or "user", "content": content}
        if row.get("isCompactSummary"):
            self._compact(lineage, said_now)
        else:
            lineage.say(said_now)
        if not rest:
            return
        said = content if not results else rest
        self._own(agent, entry)
        self._said(row, said, added, fields)
        stopped = text_of(said).startswith(_STOPPED)
        self.interrupted = "the user interrupted the request" if stopped and not agent else ""

    def _said(self, row: Mapping[str, JSON], said: JSON, added: bool, fields: dict[str, Any]) -> None:
        """Append a turn: a person's, or in a sub-agent that of the agent that began it; else the harness's words."""
        notes = {
            key: value for key, value in without_nulls(row, *_ENVELOPE).items() if not isinstance(value, bool) or value
        }
        if added:
            name = "compact summary" if row.get("isCompactSummary") else "meta message"
            self.builder.add(HarnessAction(name=name, detail=said, step=max(self._step, 0), extra=notes, **fields))
            return
        extra = notes if fields["agent"] else {"provenance": "person", **notes}
        self.builder.add(UserTurn(content=said, step=self._step + 1, extra=extra, **fields))
        self._left = True

    def _compact(self, lineage: Lineage, summary: JSON) -> None:
        """Begin the context anew with a summary, and with the part of the session that was preserved beside it."""
        head, tail = (lineage.named(text(self._preserved.get(key))) for key in ("headUuid", "tailUuid"))
        kept = lineage.between(head, tail)
        first = kept and self._preserved.get("anchorUuid") == self._preserved.get("boundary")
        lineage.restart([*kept, summary] if first else [summary, *kept])
        lineage.name(lineage.tip, text(self._preserved.get("tailUuid")))
        self._preserved = {}

    def _result(self, block: Mapping[str, JSON], produced: JSON, entry: SessionEntry, fields: dict[str, Any]) -> None:
        """Append the tool call that a result answers; `produced` is the result before it was shown to the model."""
        call_id = text(block.get("tool_use_id"))
        waiting = self._calls.claim(call_id, entry)
        if waiting is None:
            waiting = Waiting(ToolRequest("unnamed", id=call_id), max(self._step, 0), 0, fields["agent"], entry)
        waiting.entry = entry
        content = block.get("content")
        shown = content if parts_of(content) else text_of(content)
        result = shown if produced is None else produced
        known = mapping(produced)
        milliseconds = number(known.get("durationMs")) or number(known.get("totalDurationMs"))
        outcome: dict[str, Any] = {
            "result": result,
            "seen": shown if result != shown else None,
            "error": text_of(content) if block.get("is_error") is True else None,
            "latency": milliseconds / 1000 if milliseconds is not None else None,
            "completed": self._calls.completed(waiting.step),
        }
        self._tool(waiting, {**fields, **outcome})

    def _tool(self, waiting: Waiting, fields: dict[str, Any]) -> None:
        """Append a tool call, or the hand-over to a sub-agent whose own lines are in the session."""
        request = waiting.request
        self._own(waiting.agent, waiting.entry)
        asked = mapping(request.arguments)
        child = self._prompts.get(text(asked.get("prompt"))) if request.name in _SPAWNING else None
        child = child or (text(mapping(fields.get("result")).get("agentId")) if request.name in _SPAWNING else "")
        if child and child in self._lineages:
            extra = without_nulls({"id": request.id, "seen": fields.get("seen"), "emitted": waiting.emitted})
            kept = {key: fields[key] for key in ("at", "latency", "origin", "error", "agent") if key in fields}
            name = text(asked.get("subagent_type")) or request.name
            output, step = fields.get("result"), waiting.step
            call = SubagentCall(
                name=name, child=child, input=request.arguments, output=output, step=step, extra=extra, **kept
            )
            self.builder.add(call)
            return
        begun = self.subagents.get(child or "") or self.subagents.get(text(asked.get("prompt")))
        if begun is not None and request.name in _SPAWNING:
            fields["extra"] = {SUBAGENT: begun.to_json()}
        self.builder.add(tool_call(request, step=waiting.step, emitted=waiting.emitted, **fields))

    def _harness(self, row: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append a line that is neither user nor assistant: compaction, hooks, permissions, snapshots, notices."""
        kind = text(row.get("subtype")) or text(row.get("type"))
        detail = without_nulls(row, *_ENVELOPE)
        lineage = self._lineage(fields["agent"])
        parent = self._parent(row, fields["agent"])
        if kind == "compact_boundary":
            parent = lineage.begin(parent)
            lineage.restart()
            kept = mapping(mapping(row.get("compactMetadata")).get("preservedSegment"))
            self._preserved = {**kept, "boundary": row.get("uuid")} if kept else {}
        lineage.name(parent or lineage.tip, text(row.get("uuid")))
        self._own(fields["agent"], parent or lineage.tip)
        self.builder.add(HarnessAction(name=kind.replace("_", " "), detail=detail, step=max(self._step, 0), **fields))


def _names_parents(lines: Sequence[JsonLine]) -> bool:
    """Say whether every reply of the main chain names a line of the session as its parent."""
    uuids = {text(line.value.get("uuid")) for line in lines} - {""}
    rows = [line.value for line in lines if line.value.get("type") == "assistant" and not line.value.get("isSidechain")]
    return bool(rows) and all(text(row.get("parentUuid")) in uuids for row in rows)


def _is_same(one: JsonLine, other: JsonLine) -> bool:
    return one.value.get("message") == other.value.get("message")
