"""The rows of a unit: its lines, its list, or a list that it holds; and the name it gives to a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harnesslab.core.canonical import JSON, parse
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit, lines_of
from harnesslab.formats.reading.sniff import shape_of
from harnesslab.formats.reading.sse import stream_data
from harnesslab.formats.reading.values import mapping


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
    if shape.kind == "stream":
        data = stream_data(unit.only.read().decode("utf-8", "surrogateescape"))
        yield from (JsonLine(number, 0, 0, row) for number, row in enumerate(data, start=1))
        return
    found = next((shape.object[key] for key in keys if isinstance(shape.object.get(key), list)), shape.document)
    for index, row in enumerate(found if isinstance(found, list) else [found]):
        if isinstance(row, Mapping):
            yield JsonLine(index + 1, 0, 0, row)
        else:
            report.skip(f"item {index}", "not an object")
