"""The events of one Codex session, from its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import HarnessAction, RolloutStarted, ToolCall
from harnesslab.core.trace.messages import text_of
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.codex.kinship import CodexKin
from harnesslab.formats.codex.payloads import dialect, from_output, result, texts
from harnesslab.formats.openai.response_items import Walk, kind_of
from harnesslab.formats.reading.inputs import JsonLine
from harnesslab.formats.reading.lineage import COPIED_FROM, LEFT, SPAWNED_BY, SUBAGENT, copied_from, mark
from harnesslab.formats.reading.values import elapsed, mapping, moment, number, text, whole, without_nulls

_COPIES = {"user_message": "message", "agent_message": "message", "agent_reasoning": "text"}
"""Event messages that repeat a response item for display, with the key of their text."""
_PRODUCED = ("exec_command_end", "mcp_tool_call_end", "patch_apply_end", "dynamic_tool_call_response")
_WITHIN = ("item_completed", "web_search_end", "agent_reasoning", "agent_message")
_ENDED_BADLY = {
    "aborted": (Outcome.INTERRUPTED, "the last turn was aborted"),
    "error": (Outcome.INFRA_ERROR, "the last turn ended in an error"),
}
_INJECTED = ("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "# AGENTS.md")


class CodexSession:
    """Turns a session's lines into events."""

    def __init__(self, manifest: Manifest, start: float | None, kin: CodexKin, begun: Mapping[str, str]) -> None:
        builder = TraceBuilder()
        opening: dict[str, JSON] = {SPAWNED_BY: dict(kin.spawned_by)} if kin.spawned_by else {}
        if kin.parent:
            opening[COPIED_FROM] = kin.parent
        builder.add(RolloutStarted(manifest=manifest.digest, extra=opening))
        self.walk = Walk(builder)
        self.walk.turn_fields = {"extra": {"provenance": "person"}}
        self.kin, self.begun = kin, begun
        self.turns: list[tuple[int, int]] = []
        """Position of each user turn among the events, and how long the context was before it."""
        self.start = start
        self.open_turns = 0
        self.ended = ""
        """How the last turn ended: complete, aborted, error, or empty while it has not."""
        self.total: JSON = None
        self.said: set[str] = set()

    def read(self, lines: Sequence[JsonLine], meta: Mapping[str, JSON], turn: Mapping[str, JSON]) -> None:
        """Append the events of all lines."""
        self._settings(turn)
        told = text_of(mapping(meta.get("base_instructions")).get("text") or meta.get("instructions"))
        if told:
            self.walk.transcript.say({"role": "system", "content": told})
        for line in lines:
            if line.value.get("type") == "response_item":
                self.said |= texts(mapping(line.value.get("payload")))
        copying = bool(self.kin.copied)
        for line in lines:
            if copying and line.number > self.kin.copied:
                copying = self._end_copy()
            self._line(line, meta)
        if copying:
            self._end_copy()
        self.walk.close()
        self._link_subagents()

    def _link_subagents(self) -> None:
        """Name at each call that began a sub-agent the file beside this one that holds its session."""
        for index, event in enumerate(self.walk.builder.events):
            if isinstance(event, ToolCall) and self.begun:
                shown = text_of(event.result) if isinstance(event.result, str | list) else str(event.result)
                for session, file in self.begun.items():
                    if session in shown and "spawn" in event.name:
                        mark(self.walk.builder, index, {SUBAGENT: {"agent": session, "file": file}})

    def _line(self, line: JsonLine, meta: Mapping[str, JSON]) -> None:
        payload = mapping(line.value.get("payload"))
        at, origin = elapsed(moment(line.value.get("timestamp")), self.start), f"line {line.number}"
        match line.value.get("type"):
            case "response_item":
                self._item(payload, at, origin)
            case "event_msg":
                self._event(payload, at, origin)
            case "session_meta" if payload is meta:
                pass
            case "compacted":
                self._note("compacted", without_nulls(payload, "replacement_history"), at, origin)
                self._compact(payload)
            case str(kind):
                if kind == "turn_context":
                    self._settings(payload)
                self._note(kind, dict(payload), at, origin)

    def _end_copy(self) -> bool:
        """Mark all events up to here as copied; return that no more are."""
        self.walk.flush()
        for index in range(1, len(self.walk.builder.events)):
            mark(self.walk.builder, index, copied_from(self.kin.parent))
        return False

    def _roll_back(self, count: int) -> None:
        """Take the last turns out of the context, and mark what was said and done in them."""
        self.walk.close()
        if count < 1 or not self.turns:
            return
        first, length = self.turns[-min(count, len(self.turns))]
        del self.turns[-count:]
        for index in range(first, len(self.walk.builder.events)):
            mark(self.walk.builder, index, {LEFT: True})
        self.walk.transcript.rewind(self.walk.transcript.length - length)

    def _settings(self, turn: Mapping[str, JSON]) -> None:
        model = {"model": text(turn.get("model"))} if turn.get("model") else {}
        settings = without_nulls({key: turn.get(key) for key in ("effort", "summary")})
        self.walk.flush()
        self.walk.call_fields = {**self.walk.call_fields, **model, "settings": settings}

    def _note(self, name: str, detail: JSON, at: float | None, origin: str) -> None:
        """Append something the harness did; but for notices within a response, the run of items before it is over."""
        if name not in _WITHIN:
            self.walk.flush()
        step = max(self.walk.step, 0)
        self.walk.builder.add(
            HarnessAction(name=name.replace("_", " "), detail=detail, step=step, at=at, origin=origin)
        )

    def _compact(self, payload: Mapping[str, JSON]) -> None:
        history = payload.get("replacement_history")
        if not isinstance(history, list):
            history = [{"role": "user", "content": payload["message"]}] if payload.get("message") else None
        if history is None:
            return
        self.walk.transcript.restart(history)
        here = len(self.walk.builder.events)
        self.turns = [(here, at) for at, item in enumerate(history) if mapping(item).get("role") == "user"]

    def _item(self, item: Mapping[str, JSON], at: float | None, origin: str) -> None:
        if kind_of(item) == "asked" and text_of(item.get("content")).lstrip().startswith(_INJECTED):
            self._note("context message", item.get("content"), at, origin)
            self.walk.transcript.say(item)
            return
        if kind_of(item) == "asked" and item.get("role") == "user":
            self.walk.flush()
            self.turns.append((len(self.walk.builder.events), self.walk.transcript.length))
        if kind_of(item) == "answer":
            self._learn(text(item.get("call_id")), from_output(item.get("output")))
        self.walk.take(item, at, origin)

    def _learn(self, call_id: str, known: dict[str, Any]) -> None:
        """Keep what an output itself says of a tool's result, under what is known of it already."""
        if call_id and known:
            queue = self.walk.produced.setdefault(call_id, [])
            queue[:1] = [{**known, **(queue[0] if queue else {})}]

    def _event(self, payload: Mapping[str, JSON], at: float | None, origin: str) -> None:
        kind = text(payload.get("type"))
        if kind == "token_count":
            self._count(mapping(payload.get("info")))
        elif (kind in _COPIES and text(payload.get(_COPIES[kind])) in self.said) or (
            kind in _PRODUCED and self._produced(payload)
        ):
            return
        else:
            self._turn(kind, payload)
            if kind == "thread_rolled_back":
                self._roll_back(whole(payload.get("num_turns")) or 0)
            self._note(kind or "event", without_nulls(payload, "type"), at, origin)

    def _turn(self, kind: str, payload: Mapping[str, JSON]) -> None:
        if kind == "task_started":
            self.open_turns, self.ended = self.open_turns + 1, ""
        elif kind in ("task_complete", "turn_aborted"):
            self.open_turns = max(self.open_turns - 1, 0)
            self.ended = "aborted" if kind == "turn_aborted" else "error" if payload.get("error") else "complete"
        elif kind == "error":
            self.ended = "error"

    def _count(self, info: Mapping[str, JSON]) -> None:
        """Give the last model call its usage; a count that repeats the total before is a mere notice."""
        total = info.get("total_token_usage")
        if not info or (total is not None and total == self.total):
            return
        self.total = total
        self.walk.flush()
        self.walk.amend(self.walk.last_call, usage=usage.openai(dialect(mapping(info.get("last_token_usage")))))

    def _produced(self, payload: Mapping[str, JSON]) -> bool:
        """Keep what a tool produced for the call that waits for it; say whether one does."""
        self.walk.flush()
        call_id = text(payload.get("call_id")) or text(payload.get("callId"))
        if call_id not in self.walk.waiting:
            return False
        duration = mapping(payload.get("duration"))
        seconds = number(duration.get("secs"))
        known: dict[str, Any] = {"result": result(payload), "extra": {"event": payload.get("type")}}
        if seconds is not None:
            known["latency"] = seconds + (number(duration.get("nanos")) or 0) / 1e9
        if whole(payload.get("exit_code")) is not None:
            known["exit_code"] = whole(payload.get("exit_code"))
        queue = self.walk.produced.setdefault(call_id, [])
        if len(queue) < self.walk.waits(call_id):
            queue.append(known)
        else:
            queue[-1] = {**known, **queue[-1]}
        return True

    def outcome(self) -> tuple[Outcome, str | None]:
        """Return how the session ended; a turn that was begun and not ended was cut short."""
        if self.ended in _ENDED_BADLY:
            return _ENDED_BADLY[self.ended]
        if self.open_turns and not self.ended:
            return Outcome.INTERRUPTED, "the last turn has no end"
        return Outcome.UNKNOWN, None
