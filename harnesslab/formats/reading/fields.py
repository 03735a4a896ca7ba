"""Small readers of foreign values, and the two things several importers share: lines and a growing transcript.

A reader returns None, or an empty value, where the source has another type: foreign files state anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.trace.events import ModelCall, ToolCall, ToolRequest, Window
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit, lines_of
from harnesslab.formats.reading.sniff import shape_of
from harnesslab.formats.reading.values import mapping, number


def without_nulls(values: Mapping[str, JSON], *skip: str) -> dict[str, JSON]:
    """Return what an object states, without nulls and without the keys in `skip`."""
    return {key: value for key, value in values.items() if value is not None and key not in skip}


def moment(value: JSON) -> float | None:
    """Return seconds since 1970 of an ISO 8601 text or of epoch seconds or milliseconds; None for anything else.

    A time without a zone counts as UTC, which leaves differences within a file right.
    """
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    seconds = number(value)
    if seconds is None or seconds <= 0:
        return None
    return seconds / 1000 if seconds > 1e11 else seconds


def epoch_time(seconds: float | None) -> datetime | None:
    """Return the time of epoch seconds, or None where it is unknown or out of range."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def elapsed(value: float | None, start: float | None) -> float | None:
    """Return the seconds between two moments, rounded to microseconds."""
    return None if value is None or start is None else round(value - start, 6)


def stem(unit: Unit) -> str:
    """Return the unit's name without its ending, to name a case that the source does not name."""
    name = unit.name.rsplit("/", 1)[-1]
    for ending in (".traj.json", ".jsonl", ".json", ".traj"):
        if name.endswith(ending) and name != ending:
            return name[: -len(ending)]
    return name


def line_at(data: bytes, start: int, end: int) -> Mapping[str, JSON]:
    """Read again a line that `lines_of` yielded."""
    return mapping(parse(data[start:end].strip()))


def rows_of(unit: Unit, report: Report, *keys: str) -> Iterator[JsonLine]:
    """Yield the objects of a unit: of its lines, of its list, of a list under one of its `keys`, or itself."""
    shape = shape_of(unit)
    if shape.kind == "lines":
        yield from lines_of(unit.only.read(), report)
        return
    found = next((shape.object[key] for key in keys if isinstance(shape.object.get(key), list)), shape.document)
    for index, row in enumerate(found if isinstance(found, list) else [found]):
        if isinstance(row, Mapping):
            yield JsonLine(index + 1, 0, 0, row)
        else:
            report.skip(f"item {index}", "not an object")


@dataclass(slots=True)
class Transcript:
    """One agent's growing message list, from which its model calls are made in time linear in what is new."""

    builder: TraceBuilder
    agent: str = ""
    _kept: int = 0
    _new: list[JSON] = field(default_factory=list)

    def say(self, *messages: JSON) -> None:
        """Append messages that the next call will have sent."""
        self._new.extend(messages)

    def restart(self, messages: Sequence[JSON] = ()) -> None:
        """Replace the whole list, as a compaction of the context does."""
        self._kept, self._new = 0, list(messages)

    def call(self, *, tools: JSON = None, **fields: Any) -> ModelCall:
        """Append a model call that sent everything said so far."""
        window = Window(self._kept, tuple(map(self.builder.payload, self._new)))
        self._kept, self._new = self._kept + len(self._new), []
        position = None if tools is None else self.builder.payload(tools)
        return self.builder.add(ModelCall(agent=self.agent, input=window, tools=position, **fields))


def tool_call(request: ToolRequest, **fields: Any) -> ToolCall:
    """Make the tool call of a request, with what else is known of it."""
    return ToolCall(
        **{
            "name": request.name,
            "arguments": request.arguments,
            "raw": request.raw,
            "id": request.id,
            **fields,
        }
    )


def most_used(names: Iterable[str]) -> str:
    """Return the name that occurs most often, the first of equals; empty where there is none."""
    counts: dict[str, int] = {}
    for name in names:
        if name:
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else ""
