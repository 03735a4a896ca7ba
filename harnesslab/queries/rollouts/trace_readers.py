"""Reading stored traces: by position, chunk by chunk, never the whole for one page."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from backports import zstd
from django.db.models import Q

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.contracts import comparators, scrub
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.contracts.trace_reader import SourceIdentity
from harnesslab.core.errors import NotComparable, NotFound
from harnesslab.core.trace import packing
from harnesslab.core.trace.events import AnyEvent, ModelCall
from harnesslab.core.trace.trace import Trace, Windows, rebuild
from harnesslab.queries.rollouts.manifests import load_manifest
from harnesslab.store.models import Blob, Chunk, Event, LooseEvent, Rollout, StoredPath
from harnesslab.store.models.events import KINDS, MAX_EVENTS, key

FEW = 20
OPEN_CHUNKS = 8
"""How many opened chunks a trace reader holds."""


class StoredTraceReader:
    """A trace reader over a stored rollout: reads event rows once, and chunks when asked for what is in them."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.outcome = rollout.outcome
        self._opened: dict[int, packing.Opened] = {}
        self._paths: dict[str, comparators.Path | None] = {}

    @cached_property
    def manifest(self) -> Manifest:
        """The conditions it ran under."""
        return load_manifest(self.rollout.manifest_id)

    @cached_property
    def identity(self) -> SourceIdentity:
        """Its case and its source."""
        source = self.rollout.source
        case = self.rollout.case.name
        if source is None:
            return SourceIdentity(case, crash_origin=self.rollout.crash_origin)
        place = self.rollout.position
        return SourceIdentity(case, source.format, source.digest, place, self.rollout.crash_origin)

    @cached_property
    def _rows(self) -> list[tuple[int, int]]:
        first = key(self.rollout.pk, 0)
        rows = Event.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS).order_by("key")
        return list(rows.values_list("kind", "step"))

    @cached_property
    def kinds(self) -> Sequence[str]:
        """The tag of each event."""
        return [KINDS[kind] for kind, _ in self._rows]

    def first_of(self, kind: str) -> int | None:
        """Return the position of the first event of a kind, without reading the others."""
        first = key(self.rollout.pk, 0)
        rows = Event.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS, kind=KINDS.index(kind))
        found = rows.order_by("key").values_list("key", flat=True).first()
        return None if found is None else found - first

    def before(self, index: int, kind: str) -> Iterator[int]:
        """Yield the positions of the events of a kind before one, the nearest first, read a few at a time."""
        first = key(self.rollout.pk, 0)
        below = first + index
        while True:
            rows = Event.objects.filter(key__gte=first, key__lt=below, kind=KINDS.index(kind)).order_by("-key")
            found = list(rows.values_list("key", flat=True)[:FEW])
            yield from (place - first for place in found)
            if len(found) < FEW:
                return
            below = found[-1]

    @cached_property
    def steps(self) -> Sequence[int]:
        """The step of each event."""
        return [step for _, step in self._rows]

    @cached_property
    def _index(self) -> list[tuple[int, int]]:
        """(first event, first payload) of each chunk; a rollout that still runs reads as one chunk."""
        if self.rollout.head is None:
            return [(0, 0)]
        first = key(self.rollout.pk, 0)
        rows = Chunk.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS).order_by("key")
        return list(rows.values_list("first_event", "first_payload"))

    def event(self, index: int) -> AnyEvent:
        """Return one event."""
        chunk = self._chunk_of_event(index)
        return chunk.events[index - chunk.first_event]

    def messages(self, index: int, start: int = 0) -> list[JSON]:
        """Return the messages, from the `start`-th on, of the model call at an event position."""
        return [self.payload(position) for position in self.message_positions(index)[start:]]

    def message_positions(self, index: int) -> list[int]:
        """Return the payload positions of a model call's messages."""
        chunk = self._chunk_of_event(index)
        windows = Windows.at(dict(chunk.windows))
        positions: list[int] = []
        for event in chunk.events[: index - chunk.first_event + 1]:
            if isinstance(event, ModelCall):
                positions = windows.open(event)
        return list(positions)

    def payload(self, position: int) -> JSON:
        """Return one payload; raises `NotFound`."""
        number = bisect_right(self._index, position, key=lambda entry: entry[1]) - 1
        # chunks without payloads of their own begin at the same payload position as the next
        while number > 0 and position >= self._payload_end(number):
            number -= 1
        chunk = self._chunk(number)
        if not 0 <= position - chunk.first_payload < len(chunk.payloads):
            raise NotFound(f"there is no payload {position}", where=f"rollout {self.rollout.pk}")
        return chunk.payloads[position - chunk.first_payload]

    @property
    def payloads(self) -> StoredPayloads:
        """The payload table, read chunk by chunk."""
        return StoredPayloads(self)

    def path(self, contract: Contract) -> comparators.Path:
        """Return the path under a contract, from the store or computed, once; raises `NotComparable`."""
        if contract.key not in self._paths and self.read_paths([contract]):
            self._paths[contract.key] = self._computed(contract)
        path = self._paths[contract.key]
        if path is None:
            raise NotComparable(f"the trace does not record {contract.level.value}")
        return path

    def read_paths(self, contracts: Iterable[Contract]) -> list[Contract]:
        """Read the kept paths under some contracts in one query; returns the contracts under which none is kept."""
        missing = {contract.key: contract for contract in contracts if contract.key not in self._paths}
        if missing:
            for row in StoredPath.objects.filter(rollout_id=self.rollout.pk, contract__in=list(missing)):
                self._paths[row.contract] = _stored_path(row, missing.pop(row.contract))
        return list(missing.values())

    def _computed(self, contract: Contract) -> comparators.Path | None:
        try:
            return comparators.path(self.trace(), contract)
        except NotComparable:
            return None

    def events(self) -> Iterator[AnyEvent]:
        """Yield the events in order, with one chunk in memory at a time."""
        for number in range(len(self._index)):
            yield from self._read_chunk(number).events

    def trace(self) -> Trace:
        """Return the whole trace; only for what must see all of it."""
        events: list[AnyEvent] = []
        payloads: list[JSON] = []
        for number in range(len(self._index)):
            chunk = self._chunk(number)
            events += chunk.events
            payloads += chunk.payloads
        return rebuild(events, payloads)

    def seal(self, index: int) -> bytes:
        """Return the recorded seal of one event."""
        return bytes(Event.objects.values_list("seal", flat=True).get(key=key(self.rollout.pk, index)))

    def seals(self) -> list[bytes]:
        """Return the recorded seals in order."""
        first = key(self.rollout.pk, 0)
        rows = Event.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS).order_by("key")
        return [bytes(seal) for seal in rows.values_list("seal", flat=True)]

    def _payload_end(self, number: int) -> int:
        return self._index[number + 1][1] if number + 1 < len(self._index) else 1 << 62

    def chunk_number(self, index: int) -> int:
        """Return the number of the chunk that holds an event; raises `NotFound`."""
        number = bisect_right(self._index, index, key=lambda entry: entry[0]) - 1
        if number < 0 or index >= self.rollout.events:
            raise NotFound(f"there is no event {index}", where=f"rollout {self.rollout.pk}")
        return number

    def take(self, number: int, chunk: packing.Opened) -> None:
        """Hold a chunk that was read elsewhere."""
        self._opened[number] = chunk

    def _chunk_of_event(self, index: int) -> packing.Opened:
        return self._chunk(self.chunk_number(index))

    def _chunk(self, number: int) -> packing.Opened:
        known = self._opened.get(number)
        if known is None:
            if len(self._opened) >= OPEN_CHUNKS:
                self._opened.pop(next(iter(self._opened)))
            known = self._opened[number] = self._read_chunk(number)
        return known

    def _read_chunk(self, number: int) -> packing.Opened:
        if self.rollout.head is None:
            first = key(self.rollout.pk, 0)
            rows = LooseEvent.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS).order_by("key")
            return packing.open_loose(bytes(body) for body in rows.values_list("body", flat=True))
        data = Chunk.objects.values_list("data", flat=True).get(key=key(self.rollout.pk, number))
        return _with_blobs(packing.open_chunk(bytes(data)))


def preload(wanted: Sequence[tuple[StoredTraceReader, int]]) -> None:
    """Read the chunks that hold some events, of many rollouts in three queries; one trace reader for each rollout."""
    ended = [(reader, index) for reader, index in wanted if reader.rollout.head is not None]
    firsts = {key(reader.rollout.pk, 0): reader for reader, _ in ended}
    inside = Q(pk__in=())
    for first in firsts:
        inside |= Q(key__gte=first, key__lt=first + MAX_EVENTS)
    begins: dict[int, list[tuple[int, int]]] = {first: [] for first in firsts}
    rows = Chunk.objects.filter(inside).order_by("key").values_list("key", "first_event", "first_payload")
    for place, first_event, first_payload in rows:
        begins[place - place % MAX_EVENTS].append((first_event, first_payload))
    for first, reader in firsts.items():
        reader.__dict__["_index"] = begins[first]  # what the cached property would read
    places = {key(reader.rollout.pk, reader.chunk_number(index)): reader for reader, index in ended}
    opened = {
        place: packing.open_chunk(bytes(data))
        for place, data in Chunk.objects.filter(key__in=places).values_list("key", "data")
    }
    blobs = Blob.objects.in_bulk({digest for chunk in opened.values() for digest in chunk.absent.values()})
    for place, chunk in opened.items():
        places[place].take(place % MAX_EVENTS, _filled(chunk, blobs))


class StoredPayloads:
    """A stored rollout's payload table."""

    def __init__(self, reader: StoredTraceReader) -> None:
        self._reader = reader

    def __getitem__(self, position: int, /) -> JSON:
        return self._reader.payload(position)


def _stored_path(row: StoredPath, contract: Contract) -> comparators.Path | None:
    """Read a kept path; None where the trace was found to lack what the contract compares."""
    if row.removed.get("unsupported"):
        return None
    indices = array("I", zstd.decompress(bytes(row.indices)))
    removed = scrub.Removed()
    removed.counts.update(row.removed.get("counts", {}))
    removed.examples.update(row.removed.get("examples", {}))
    return comparators.Path(contract, indices, bytes(row.own), bytes(row.path), removed)


def _with_blobs(chunk: packing.Opened) -> packing.Opened:
    """Put in the payloads that are kept once for all rollouts."""
    return _filled(chunk, Blob.objects.in_bulk(list(chunk.absent.values()))) if chunk.absent else chunk


def _filled(chunk: packing.Opened, blobs: Mapping[str, Blob]) -> packing.Opened:
    for position, digest in chunk.absent.items():
        chunk.payloads[position - chunk.first_payload] = parse(zstd.decompress(bytes(blobs[digest].data)))
    return chunk
