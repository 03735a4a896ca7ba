"""OpenHands event lists: actions and observations, with the model's response kept beside each of its actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import ToolRequest
from harnesslab.core.trace.messages import MessageView, text_of, view
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.rows import rows_of, stem
from harnesslab.formats.reading.session_events import SessionEvents
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import (
    elapsed,
    epoch_time,
    items,
    mapping,
    moment,
    most_used,
    text,
    whole,
    without_nulls,
)

NAME = "openhands"
_UNKNOWN = "not recorded by OpenHands event lists"
_MISSING = "model: responses are recorded, the requests are rebuilt from the events before them"
_ENVELOPE = ("id", "timestamp", "source", "action", "observation", "cause", "tool_call_metadata")


def recognises(shape: Shape) -> bool:
    """A list of events with an id and a source that are actions or observations."""
    rows = [mapping(row) for row in shape.items[:10]]
    return bool(rows) and all("id" in row and "source" in row and _kinds(row) for row in rows)


def _kinds(row: Mapping[str, JSON]) -> bool:
    return isinstance(row.get("action"), str) or isinstance(row.get("observation"), str)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's one session."""
    rows = [line.value for line in rows_of(unit, report)]
    if not rows:
        raise FormatRefused("no event could be read", where=unit.name)
    times = [at for row in rows if (at := moment(row.get("timestamp"))) is not None]
    model = most_used(text(_response(row).get("model")) for row in rows)
    manifest = Manifest.of({"harness.name": NAME, "model.name": model or None}, unknown=_UNKNOWN)
    session = _Session(manifest, times[0] if times else None)
    for row in rows:
        session.add(row)
    outcome = Outcome.INTERRUPTED if session.events.waiting and not session.finished else Outcome.UNKNOWN
    session.events.close()
    yield Recording(
        manifest=manifest,
        trace=session.events.builder.close(outcome),
        outcome=outcome,
        case=stem(unit),
        source=Source(unit.name, unit.digest(), NAME),
        harness=NAME,
        model=model,
        replayability=Replayability.VIEW_ONLY,
        missing=_MISSING,
        started_at=epoch_time(times[0] if times else None),
        ended_at=epoch_time(times[-1] if times else None),
    )


def _response(row: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return mapping(mapping(row.get("tool_call_metadata")).get("model_response"))


class _Session:
    """Turns events into ours; a response that led to several actions is one model call."""

    def __init__(self, manifest: Manifest, start: float | None) -> None:
        self.events = SessionEvents(manifest)
        self.start = start
        self.finished = False
        self.seen: set[str] = set()

    def add(self, row: Mapping[str, JSON]) -> None:
        """Append what an event is."""
        at = elapsed(moment(row.get("timestamp")), self.start)
        fields: dict[str, Any] = {"at": at, "origin": f"event {row.get('id')}"}
        call_id = text(mapping(row.get("tool_call_metadata")).get("tool_call_id"))
        action, observation = text(row.get("action")), text(row.get("observation"))
        if _response(row):
            self._call(_response(row), fields)
        if action:
            self._action(action, row, fields)
        elif observation and (call_id or self.events.waits_for(call_id := f"event {row.get('cause')}")):
            self._result(row, call_id, fields)
        else:
            self.events.note(observation or "event", without_nulls(row, *_ENVELOPE), **fields)

    def _call(self, response: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        name = text(response.get("id"))
        if name and name in self.seen:
            return
        self.seen.add(name)
        choice = mapping(next(iter(items(response.get("choices"))), None))
        message = mapping(choice.get("message"))
        self.events.reply(
            dict(message),
            view(message),
            model=text(response.get("model")),
            finish_reason=text(choice.get("finish_reason")) or None,
            usage=usage.openai(response.get("usage")),
            response_id=name or None,
            fingerprint=text(response.get("system_fingerprint")) or None,
            raw_response=dict(response),
            **fields,
        )

    def _action(self, action: str, row: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append an action that is no tool call of a recorded response: a message, or the harness's own."""
        asked = mapping(row.get("args"))
        if action == "message" and row.get("source") == "user":
            self.events.turn(asked.get("content"), **fields)
            self.events.transcript.say({"role": "user", "content": asked.get("content")})
        elif action == "message" and row.get("source") == "agent" and not _response(row):
            said = text_of(asked.get("content")) or text(row.get("message"))
            reply = {"role": "assistant", "content": said}
            self.events.reply(reply, MessageView("assistant", said), **fields)
        elif _response(row):
            self.finished = self.finished or action == "finish"
        elif row.get("source") == "agent":
            request = ToolRequest(action, dict(asked), id=f"event {row.get('id')}")
            thought = text(asked.get("thought"))
            self.events.reply(
                {"role": "assistant", "content": thought}, MessageView("assistant", thought, "", (request,)), **fields
            )
        else:
            self.events.note(action, without_nulls(row, *_ENVELOPE), **fields)

    def _result(self, row: Mapping[str, JSON], call_id: str, fields: dict[str, Any]) -> None:
        extras = mapping(row.get("extras"))
        content = row.get("content")
        code = whole(mapping(extras.get("metadata")).get("exit_code"))
        known: dict[str, Any] = {"exit_code": code, "extra": without_nulls({"extras": row.get("extras")})}
        failed = text(row.get("observation")) == "error"
        error = text(content) or None if failed else None
        self.events.result(call_id, text(row.get("observation")), result=content, error=error, **known, **fields)
        self.events.transcript.say({"role": "tool", "tool_call_id": call_id, "content": content})
