"""Inspect: evaluation logs as JSON or `.eval` archives, one rollout per sample and epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused
from harnesslab.core.measuring.experiments import ExperimentRecord
from harnesslab.core.running.rollout import Recording
from harnesslab.formats.inspect.archive import header, samples
from harnesslab.formats.inspect.log import NAME, Log, evaluation, recording
from harnesslab.formats.reading.archives import open_archive
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.recordings import attempt, some
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import items, mapping, objects, text, whole

__all__ = ["NAME", "experiments", "read", "recognises"]

_MEMBERS = (b"header.json", b"_journal/start.json", b"samples/")


def recognises(shape: Shape) -> bool:
    """A log object, a bare list of its events, or a zip with a log's members."""
    if shape.kind == "zip":
        data = shape.unit.only.read()
        return any(member in data[:4096] or member in data[-(2**20) :] for member in _MEMBERS)
    document = shape.object
    return ({"eval", "status"} <= document.keys() and "task" in mapping(document["eval"])) or _is_events(document)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the samples in order of the data set and epoch; raises `FormatRefused` where there is none."""
    found = _archive(unit, report) if unit.only.read()[:2] == b"PK" else _document(unit, report)
    yield from some(unit.name, report, _samples(found, report))


def experiments(unit: Unit, report: Report) -> Iterator[ExperimentRecord]:
    """Yield the evaluation that a log is of, where it holds samples."""
    if unit.only.read()[:2] == b"PK":
        archive = open_archive(unit.only.read(), unit.name)
        document, held = header(archive, Report()), any(name.startswith("samples/") for name in archive.members)
    else:
        document = mapping(unit.only.json())
        held = bool(items(document.get("samples")))
    log = Log(unit.name, unit.digest(), document)
    if held and log.experiment:
        yield evaluation(log)


def _samples(found: Iterator[tuple[Log, Mapping[str, JSON]]], report: Report) -> Iterator[Recording]:
    position = 0
    for log, sample in found:
        case, epoch = sample.get("id", "unnamed"), sample.get("epoch", "not stated")
        for made in attempt(report, f"sample {case} epoch {epoch}", partial(recording, log, sample, position)):
            position += 1
            yield made


def _archive(unit: Unit, report: Report) -> Iterator[tuple[Log, Mapping[str, JSON]]]:
    archive = open_archive(unit.only.read(), unit.name)
    log = Log(unit.name, unit.digest(), header(archive, report))
    count = 0
    for sample in samples(archive, log, report):
        count += 1
        yield log, sample
    if not count:
        raise _empty(log)


def _document(unit: Unit, report: Report) -> Iterator[tuple[Log, Mapping[str, JSON]]]:
    document = mapping(unit.only.json())
    log = Log(unit.name, unit.digest(), document)
    if _is_events(document):
        yield log, _bare(document, unit)
        return
    given = objects(document.get("samples"))
    for index, item in enumerate(items(document.get("samples"))):
        if not isinstance(item, Mapping):
            report.skip(f"sample {index}", "not an object")
    if not given:
        raise _empty(log)
    order = log.sort_key()
    for sample in sorted(given, key=lambda item: order(str(item.get("id")), whole(item.get("epoch")) or 1)):
        yield log, sample


def _is_events(document: Mapping[str, JSON]) -> bool:
    """Say whether this is a bare list of events, as Inspect's own fixtures and transcripts are."""
    events = objects(document.get("events"))
    return bool(events) and {"event", "timestamp", "working_start"} <= events[0].keys()


def _bare(document: Mapping[str, JSON], unit: Unit) -> Mapping[str, JSON]:
    return {"id": unit.name.removesuffix(".json"), "events": document["events"]}


def _empty(log: Log) -> FormatRefused:
    error = mapping(log.header.get("error"))
    why = f": {text(error.get('message'))}" if error.get("message") else ""
    return FormatRefused(
        f"the log holds no samples, its status is {log.status}{why}",
        where=log.name,
        hint="if it was written with samples left out, log it again with them",
    )
