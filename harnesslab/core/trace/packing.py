"""Chunks: how an ended trace is kept, in the database and in bundles, so that any part can be read alone.

A chunk is lines of UTF-8. The first is a header: format version, position of the first event and payload, and
each agent's message list at that point. Then come the events in order, each after the payloads that it is the
first to name: ``P`` + canonical JSON of a payload, ``B`` + digest of a payload kept elsewhere, ``E`` + canonical
JSON of an event. Chunks end after an event, near `CHUNK_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from backports import zstd

from harnesslab.core.canonical import JSON, canonical_bytes, parse
from harnesslab.core.errors import SealBroken
from harnesslab.core.trace.events import AnyEvent, ModelCall, from_json, to_json
from harnesslab.core.trace.trace import Windows

VERSION = 1
CHUNK_BYTES = 256 * 1024
"""Uncompressed size after which a chunk is closed."""
LEVEL = 6
"""Compression level; higher ones cost more time than they save space on transcripts."""


@dataclass(frozen=True, slots=True)
class PackedChunk:
    """One chunk with where it begins; `data` is compressed."""

    number: int
    first_event: int
    first_payload: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """A chunk's content. A payload kept elsewhere is in `absent` by position, with its digest."""

    first_event: int
    first_payload: int
    windows: Mapping[str, list[int]]
    events: Sequence[AnyEvent]
    payloads: list[JSON]
    absent: Mapping[int, str]


def _nowhere(position: int, body: bytes) -> str | None:
    return None


def pack(
    events: Sequence[AnyEvent],
    payloads: Sequence[JSON],
    elsewhere: Callable[[int, bytes], str | None] = _nowhere,
) -> Iterator[PackedChunk]:
    """Yield a trace's chunks; `elsewhere(position, canonical bytes)` returns a digest to keep in its place."""
    windows, number, named = Windows(), 0, 0
    lines = [_header(0, 0, {})]
    size, first_event, first_payload = 0, 0, 0
    for index, event in enumerate(events):
        # The last event takes every payload that is left, also those that no event names: a payload is found by its
        # position, so the table must come back whole.
        needed = needs(event, named) if index + 1 < len(events) else len(payloads)
        added = event_lines(event, payloads, range(named, needed), elsewhere)
        named = needed
        lines += added
        size += sum(map(len, added))
        if isinstance(event, ModelCall):
            windows.open(event)
        if size >= CHUNK_BYTES and index + 1 < len(events):  # not after the last one, so that no chunk is empty
            yield PackedChunk(number, first_event, first_payload, compress(b"\n".join(lines)))
            number, size, first_event, first_payload = number + 1, 0, index + 1, named
            lines = [_header(first_event, first_payload, windows.state())]
    yield PackedChunk(number, first_event, first_payload, compress(b"\n".join(lines)))


def event_lines(
    event: AnyEvent,
    payloads: Sequence[JSON],
    fresh: range,
    elsewhere: Callable[[int, bytes], str | None] = _nowhere,
) -> list[bytes]:
    """Return the lines of one event: the payloads at the positions `fresh`, then itself."""
    lines = []
    for position in fresh:
        body = canonical_bytes(payloads[position])
        kept = elsewhere(position, body)
        lines.append(b"P" + body if kept is None else b"B" + kept.encode())
    return [*lines, b"E" + canonical_bytes(to_json(event))]


def open_loose(bodies: Iterable[bytes]) -> Opened:
    """Read the events of a trace that is still being recorded, each body being the lines of one event."""
    head: Mapping[str, JSON] = {"event": 0, "payload": 0, "windows": {}}
    return _opened(head, [line for body in bodies for line in body.split(b"\n")])


def open_chunk(data: bytes) -> Opened:
    """Read a chunk; raises `SealBroken` where it can't be read."""
    try:
        head, *lines = zstd.decompress(data).split(b"\n")
        header = parse(head)
        if not isinstance(header, Mapping) or header.get("v") != VERSION:
            version = header.get("v") if isinstance(header, Mapping) else None
            raise SealBroken(f"not a chunk of a known version: {version!r:.40}", hint=f"this version reads {VERSION}")
        return _opened(header, lines)
    except (zstd.ZstdError, ValueError, KeyError, TypeError) as error:
        raise SealBroken(f"the chunk can't be read: {error}") from error


def _opened(header: Mapping[str, JSON], lines: Iterable[bytes]) -> Opened:
    first_payload = _integer(header["payload"])
    events: list[AnyEvent] = []
    payloads: list[JSON] = []
    absent: dict[int, str] = {}
    for line in lines:
        match line[:1]:
            case b"E":
                events.append(from_json(parse(line[1:])))
            case b"P":
                payloads.append(parse(line[1:]))
            case b"B":
                absent[first_payload + len(payloads)] = line[1:].decode()
                payloads.append(None)
            case _:
                raise SealBroken("a line of the chunk is neither event nor payload")
    return Opened(_integer(header["event"]), first_payload, _windows(header["windows"]), events, payloads, absent)


def compress(data: bytes) -> bytes:
    """Compress bytes as chunks are."""
    return zstd.compress(data, LEVEL)


def _header(first_event: int, first_payload: int, windows: Mapping[str, list[int]]) -> bytes:
    ranges: dict[str, JSON] = {agent: _ranges(positions) for agent, positions in windows.items()}
    return canonical_bytes({"v": VERSION, "event": first_event, "payload": first_payload, "windows": ranges})


def _ranges(positions: Sequence[int]) -> list[JSON]:
    """Write a list of mostly consecutive positions as [first, count] pairs."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][0] + runs[-1][1] == position:
            runs[-1][1] += 1
        else:
            runs.append([position, 1])
    return list(runs)


def _windows(ranges: JSON) -> dict[str, list[int]]:
    if not isinstance(ranges, Mapping):
        raise SealBroken("the chunk's header is damaged")
    return {agent: [position for run in _list(runs) for position in _run(_list(run))] for agent, runs in ranges.items()}


def _run(pair: Sequence[JSON]) -> range:
    if len(pair) != 2:
        raise SealBroken("the chunk's header is damaged")
    first, count = map(_integer, pair)
    return range(first, first + count)


def _list(value: JSON) -> Sequence[JSON]:
    if not isinstance(value, list):
        raise SealBroken("the chunk's header is damaged")
    return value


def needs(event: AnyEvent, named: int) -> int:
    """Return how many payloads must have been written before an event."""
    if not isinstance(event, ModelCall):
        return named
    positions = [*event.input.add]
    if event.tools is not None:
        positions.append(event.tools)
    return max([named, *(position + 1 for position in positions)])


def _integer(value: JSON) -> int:
    if not isinstance(value, int):
        raise SealBroken("the chunk's header is damaged")
    return value
