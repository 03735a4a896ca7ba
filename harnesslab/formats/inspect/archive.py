"""The samples of an Inspect `.eval` archive, one in memory at a time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused
from harnesslab.formats.inspect.log import Log
from harnesslab.formats.reading.archives import Archive
from harnesslab.formats.reading.inputs import Report, json_document
from harnesslab.formats.reading.values import items, mapping

_SAMPLE = re.compile(r"samples/(?P<case>.+)_epoch_(?P<epoch>\d+)(?:\.json|/(?P<part>.+\.json))")
_NUMBERED = re.compile(r"(?P<kind>messages|events|calls|attachments)/(?P<number>\d+)\.json")


def header(archive: Archive, report: Report) -> Mapping[str, JSON]:
    """Return the log's header; one that never finished has only its journal's start."""
    for member in ("header.json", "_journal/start.json"):
        if member in archive.members:
            try:
                return mapping(json_document(archive.read(member), member))
            except FormatRefused as error:
                report.skip(member, error.what)
    report.skip("header.json", "missing: what was evaluated is not known")
    return {}


def samples(archive: Archive, log: Log, report: Report) -> Iterator[Mapping[str, JSON]]:
    """Yield the samples in order of the data set and epoch; damaged ones are noted in the report."""
    parts: dict[tuple[str, int], list[str]] = defaultdict(list)
    for member in archive.members:
        if match := _SAMPLE.fullmatch(member):
            parts[unquote(match["case"]), int(match["epoch"])].append(member)
    if not archive.whole:
        report.skip(archive.name, "the archive is cut off: only its whole members are read")
        _note_missing(archive, log, parts, report)
    order = log.sort_key()
    for case, epoch in sorted(parts, key=lambda key: order(*key)):
        members = parts[case, epoch]
        try:
            yield _whole_sample(archive, members)
        except FormatRefused as error:
            report.skip(f"sample {case} epoch {epoch}", error.what)


def _note_missing(archive: Archive, log: Log, found: Mapping[tuple[str, int], list[str]], report: Report) -> None:
    """List the samples that the header promises and the archive has lost."""
    ids = items(mapping(log.spec.get("dataset")).get("sample_ids"))
    epochs = mapping(log.spec.get("config")).get("epochs")
    for case in ids:
        for epoch in range(1, (epochs if isinstance(epochs, int) else 1) + 1):
            if (str(case), epoch) not in found:
                report.skip(f"sample {case} epoch {epoch}", "not among the whole members of the archive")


def _whole_sample(archive: Archive, members: list[str]) -> Mapping[str, JSON]:
    """Read a sample that is one member, or put together one that is kept in parts."""
    single = next((member for member in members if member.endswith(".json") and member.count("/") == 1), None)
    if single:
        return mapping(json_document(archive.read(single), single))
    sample: dict[str, JSON] = {}
    lists: dict[str, list[JSON]] = defaultdict(list)
    attachments: dict[str, JSON] = {}
    for member in sorted(members, key=_member_order):
        match = _NUMBERED.search(member)
        if match is None:
            if member.endswith(("/sample.json", "/metadata.json")):
                sample |= mapping(json_document(archive.read(member), member))
            continue
        content = json_document(archive.read(member), member)
        if match["kind"] == "attachments":
            attachments |= mapping(content)
        else:
            lists[match["kind"]] += items(content) or items(mapping(content).get(match["kind"]))
    pools: dict[str, JSON] = {"messages": lists["messages"], "calls": lists["calls"]}
    given = mapping(sample.get("attachments"))
    return {**sample, "events": lists["events"], "events_data": pools, "attachments": {**given, **attachments}}


def _member_order(member: str) -> tuple[str, int]:
    match = _NUMBERED.search(member)
    return (match["kind"], int(match["number"])) if match else (member, 0)
