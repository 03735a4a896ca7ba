"""Makes units of values, and reads them as the registry does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import HarnessAction, ModelCall, ToolCall, UserTurn, Verification
from harnesslab.core.trace.trace import messages_at
from harnesslab.formats import registry
from harnesslab.formats.reading.inputs import InputFile, Report, Unit


def file_unit(data: bytes, name: str = "run.json") -> Unit:
    return Unit(name, {name: InputFile.of_bytes(name, data)})


def json_unit(value: Any, name: str = "run.json", **options: Any) -> Unit:
    return file_unit(json.dumps(value, **options).encode(), name)


def lines_unit(rows: Sequence[Any], name: str = "run.jsonl") -> Unit:
    return file_unit("\n".join(json.dumps(row) for row in rows).encode() + b"\n", name)


def recordings(unit: Unit, format_name: str, report: Report | None = None) -> list[Recording]:
    """Read a unit by its own importer, checking on the way that it is the named one and that all seals hold."""
    recognised = registry.recognise(unit)
    assert format_name == recognised.importer.NAME
    found = list(registry.recordings(recognised, report or Report()))
    for recording in found:
        seals.verify(recording.trace, seals.seals(recording.trace))
        assert recording.source.format == format_name
    assert [recording.source.position for recording in found] == list(range(len(found)))
    return found


def only(unit: Unit, format_name: str, report: Report | None = None) -> Recording:
    (recording,) = recordings(unit, format_name, report)
    return recording


def model_calls(recording: Recording) -> list[ModelCall]:
    return [event for event in recording.trace.events if isinstance(event, ModelCall)]


def tool_calls(recording: Recording) -> list[ToolCall]:
    return [event for event in recording.trace.events if isinstance(event, ToolCall)]


def user_turns(recording: Recording) -> list[UserTurn]:
    return [event for event in recording.trace.events if isinstance(event, UserTurn)]


def actions(recording: Recording) -> list[HarnessAction]:
    return [event for event in recording.trace.events if isinstance(event, HarnessAction)]


def verifications(recording: Recording) -> list[Verification]:
    return [event for event in recording.trace.events if isinstance(event, Verification)]


def sent(recording: Recording, call: ModelCall) -> list[Any]:
    """Return the messages of one of the recording's model calls."""
    return messages_at(recording.trace, recording.trace.events.index(call))
