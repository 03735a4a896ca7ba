"""Codex sessions: JSONL envelopes with a time, a type and a payload.

Response items are the conversation; event messages add what the tools produced, usage, and how turns ended.
A session's later `session_meta` lines of forks and sub-agents are part of it; one of another session begins a
new rollout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import HarnessAction, RolloutStarted
from harnesslab.core.trace.messages import text_of
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.codex.payloads import dialect, from_output, result, texts
from harnesslab.formats.openai.response_items import Walk, kind_of
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit
from harnesslab.formats.reading.rows import rows_of, stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import elapsed, epoch_time, mapping, moment, number, text, whole, without_nulls

NAME = "codex"
_UNKNOWN = "not recorded by Codex sessions"
_KINDS = ("session_meta", "response_item", "turn_context", "event_msg")
_COPIES = {"user_message": "message", "agent_message": "message", "agent_reasoning": "text"}
"""Event messages that repeat a response item for display, with the key of their text."""
_PRODUCED = ("exec_command_end", "mcp_tool_call_end", "patch_apply_end", "dynamic_tool_call_response")
_WITHIN = ("item_completed", "web_search_end", "agent_reasoning", "agent_message")
_ENDED_BADLY = {
    "aborted": (Outcome.INTERRUPTED, "the last turn was aborted"),
    "error": (Outcome.INFRA_ERROR, "the last turn ended in an error"),
}
_INJECTED = ("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "# AGENTS.md")
_MISSING = "model: requests (tool schemas, sampling settings) are not recorded, only the items of the conversation"


def recognises(shape: Shape) -> bool:
    """Envelopes with a payload under one of the session's types."""
    rows = [mapping(row) for row in (*shape.head, *shape.items[:10], shape.object)]
    return any(row.get("type") in _KINDS and isinstance(row.get("payload"), Mapping) for row in rows)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's sessions, one in memory at a time."""
    source_digest, position = unit.digest(), 0
    for lines in _sessions(unit, report):
        yield _recording(lines, Source(unit.name, source_digest, NAME, position), stem(unit))
        position += 1
    if not position:
        raise FormatRefused("no session line could be read", where=unit.name)


def _sessions(unit: Unit, report: Report) -> Iterator[list[JsonLine]]:
    """Yield the lines of each session; forks, parents and resumed ids belong to the session they are named in."""
    lines: list[JsonLine] = []
    known: set[str] = set()
    for line in rows_of(unit, report):
        payload = line.value.get("payload")
        if not isinstance(payload, Mapping) or not isinstance(line.value.get("type"), str):
            report.skip(f"line {line.number}", "no type with a payload")
            continue
        if line.value["type"] == "session_meta":
            names = {text(payload.get(key)) for key in ("id", "session_id")} - {""}
            related = text(payload.get("parent_thread_id")) or text(payload.get("forked_from_id"))
            if lines and known and not related and not names & known:
                yield lines
                lines, known = [], set()
            known |= names | ({related} if related else set())
        lines.append(line)
    if lines:
        yield lines


def _recording(lines: Sequence[JsonLine], source: Source, name: str) -> Recording:
    payloads = [(text(line.value.get("type")), mapping(line.value.get("payload"))) for line in lines]
    meta = next((payload for kind, payload in payloads if kind == "session_meta"), {})
    turn = next((payload for kind, payload in payloads if kind == "turn_context"), {})
    times = [at for line in lines if (at := moment(line.value.get("timestamp"))) is not None]
    manifest = _manifest(meta, turn)
    session = _Session(manifest, times[0] if times else None)
    session.read(lines, meta, turn)
    outcome, error = session.outcome()
    return Recording(
        manifest=manifest,
        trace=session.walk.builder.close(outcome, error=error),
        outcome=outcome,
        case=text(meta.get("id")) or name,
        source=source,
        harness=NAME,
        revision=text(meta.get("cli_version")),
        model=text(turn.get("model")),
        workspace=text(meta.get("cwd")),
        replayability=Replayability.VIEW_ONLY,
        missing=_MISSING,
        started_at=epoch_time(times[0] if times else None),
        ended_at=epoch_time(times[-1] if times else None),
        facts={"session": dict(meta)} if meta else {},
    )


class _Session:
    """Turns a session's lines into events."""

    def __init__(self, manifest: Manifest, start: float | None) -> None:
        builder = TraceBuilder()
        builder.add(RolloutStarted(manifest=manifest.digest))
        self.walk = Walk(builder)
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
        for line in lines:
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
        self.walk.close()

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
        if isinstance(history, list):
            self.walk.transcript.restart(history)
        elif payload.get("message"):
            self.walk.transcript.restart([{"role": "user", "content": payload["message"]}])

    def _item(self, item: Mapping[str, JSON], at: float | None, origin: str) -> None:
        if kind_of(item) == "asked" and text_of(item.get("content")).lstrip().startswith(_INJECTED):
            self._note("context message", item.get("content"), at, origin)
            self.walk.transcript.say(item)
            return
        if kind_of(item) == "answer":
            self._learn(text(item.get("call_id")), from_output(item.get("output")))
        self.walk.take(item, at, origin)

    def _learn(self, call_id: str, known: dict[str, Any]) -> None:
        """Keep what is known of a tool's result until its output comes."""
        if call_id and known:
            self.walk.produced[call_id] = {**known, **self.walk.produced.get(call_id, {})}

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
        self._learn(call_id, known)
        return True

    def outcome(self) -> tuple[Outcome, str | None]:
        """Return how the session ended; a turn that was begun and not ended was cut short."""
        if self.ended in _ENDED_BADLY:
            return _ENDED_BADLY[self.ended]
        if self.open_turns and not self.ended:
            return Outcome.INTERRUPTED, "the last turn has no end"
        return Outcome.UNKNOWN, None


def _manifest(meta: Mapping[str, JSON], turn: Mapping[str, JSON]) -> Manifest:
    network = mapping(turn.get("sandbox_policy")).get("network_access")
    return Manifest.of(
        {
            "harness.name": NAME,
            "harness.revision": meta.get("cli_version"),
            "model.name": turn.get("model"),
            "model.provider": meta.get("model_provider"),
            "sampling.reasoning_effort": turn.get("effort"),
            "environment.network": {"access": network} if isinstance(network, bool) else None,
            "environment.platform": meta.get("cwd"),
        },
        unknown=_UNKNOWN,
    )
