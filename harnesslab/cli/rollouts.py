"""What a rollout argument is: an id of the store, or a trace file, with `#n` where it holds several."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harnesslab.actions.tables import ready_tables
from harnesslab.core.contracts.trace_reader import MemoryTraceReader, SourceIdentity, TraceReader
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import Recording
from harnesslab.formats.discovery import discover
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.registry import recognise, recordings
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader


@dataclass(frozen=True, slots=True)
class Named:
    """A rollout argument with the trace reader it means."""

    name: str
    reader: TraceReader


def named_rollout(argument: str) -> Named:
    """Return the rollout that an argument means; raises `NotFound` or `FormatRefused`."""
    stored = natural(argument)
    if stored is not None and not Path(argument).exists():
        ready_tables()
        rollout = get_rollout(stored)
        return Named(argument, _whole(StoredTraceReader(rollout)))
    path, position = _split(argument)
    recording = _recording(path, position)
    source = recording.source
    identity = SourceIdentity(recording.case, source.format, source.digest, source.position)
    return Named(argument, MemoryTraceReader(recording.trace, recording.manifest, recording.outcome.value, identity))


def _whole(reader: StoredTraceReader) -> TraceReader:
    """Read a stored trace once: a command compares at several contracts whose paths may not be kept."""
    return MemoryTraceReader(reader.trace(), reader.manifest, reader.outcome, reader.identity)


def _split(argument: str) -> tuple[str, int]:
    path, mark, number = argument.rpartition("#")
    position = natural(number)
    if mark and position is not None and not Path(argument).exists():
        return path, position
    return argument, 0


def _recording(path: str, position: int) -> Recording:
    if not path or not Path(path).exists():
        raise NotFound("no such rollout or file", where=path, hint="give an id, or FILE or FILE#n")
    units = list(discover([path]))
    if len(units) != 1:
        raise InvalidValue(f"{len(units)} trace files are there", where=path, hint="name one of them")
    found = recognise(units[0])
    recording = next(islice(recordings(found, Report()), position, None), None)
    if recording is None:
        raise NotFound(f"the file has no rollout #{position}", where=path, hint="#0 is the first")
    return recording
