"""What every recording passes on its way out of its importer.

Bytes that are no UTF-8 are marked where they stand, times without a zone are marked as such, and the source's totals
are set against what is stored. The marks are in `extra` of the events, and so under their seals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unicodedata import normalize

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.rollout import Recording, Skipped
from harnesslab.core.trace import damage, stated
from harnesslab.core.trace.events import AnyEvent, ModelCall, RolloutEnded, RolloutStarted, to_json
from harnesslab.core.trace.trace import Trace
from harnesslab.formats.reading.archives import open_archive
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.values import UNSTATED

TIMES = "times"
"""Key in `extra` of the opening event: the rollout's times as the source writes them, where that is not UTC."""
_NAMES = ("project", "panel", "case", "experiment", "harness", "revision", "model", "engine")
_ZIP = b"PK\x03\x04"


def accounted(recordings: Iterator[Recording], unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield recordings with their marks and balances; what is short of a total is noted as left out."""
    spelled: dict[tuple[str, str], str] = {}
    suspect = _is_suspect(unit)
    for recording in recordings:
        where = f"rollout {recording.source.position}"
        _note_spellings(recording, spelled, report)
        made = _with_marks(recording, _damages(recording, unit) if suspect else {}, where, report)
        yield _with_balance(made, where, report)


def in_utc(recording: Recording) -> Recording:
    """Return a recording with its times in UTC, in which one without a zone is counted."""
    return replace(recording, started_at=_utc(recording.started_at), ended_at=_utc(recording.ended_at))


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def times_of(opening: AnyEvent) -> dict[str, datetime]:
    """Return the times of a rollout as its source writes them, where that is not UTC: without a zone, or with one."""
    kept = opening.extra.get(TIMES)
    found: dict[str, datetime] = {}
    for name in ("started_at", "ended_at"):
        written = kept.get(name) if isinstance(kept, Mapping) else None
        with suppress(ValueError):
            found |= {name: datetime.fromisoformat(written)} if isinstance(written, str) else {}
    return found


def as_written(value: datetime | None) -> str:
    """Return a time as its source writes it where that says less or more than UTC does; empty for any other."""
    if value is None:
        return ""
    if value.tzinfo is None or value.tzinfo is UNSTATED:
        return value.replace(tzinfo=None).isoformat()
    return value.isoformat() if value.utcoffset() else ""


def _with_marks(
    recording: Recording, damages: Mapping[int, list[dict[str, JSON]]], where: str, report: Report
) -> Recording:
    """Mark damaged events, and the opening with times that have no zone or another than UTC."""
    changes: dict[int, dict[str, JSON]] = {
        place: {damage.KEY: damage.listed(found)} for place, found in damages.items() if found
    }
    if changes:
        ended = changes.setdefault(len(recording.trace.events) - 1, {})
        ended[damage.EVENTS] = sorted(damages)[: damage.MOST]
    for place, found in sorted(damages.items()):
        _note_damage(recording.trace.events[place], place, found, where, report)
    times = {name: text for name in ("started_at", "ended_at") if (text := as_written(getattr(recording, name)))}
    if times and isinstance(recording.trace.events[0], RolloutStarted):
        changes.setdefault(0, {})[TIMES] = dict(times)
    if any(not datetime.fromisoformat(text).tzinfo for text in times.values()):
        report.remark(where, "its times state no zone: they are kept as they are, and ordered as if they were UTC")
    return in_utc(_changed(recording, changes))


def _changed(recording: Recording, changes: Mapping[int, Mapping[str, JSON]]) -> Recording:
    """Return a recording with further keys in `extra` of some events; a key that is there already stays."""
    if not changes:
        return recording
    events = list(recording.trace.events)
    for place, more in changes.items():
        extra: dict[str, Any] = {**more, **events[place].extra}
        events[place] = msgspec.structs.replace(events[place], extra=extra)
    return replace(recording, trace=Trace(tuple(events), recording.trace.payloads, recording.trace.digests))


def _damages(recording: Recording, unit: Unit) -> dict[int, list[dict[str, JSON]]]:
    """Return by event the places whose bytes were no UTF-8; a half character that the source escaped is none."""
    trace = recording.trace
    found: dict[int, list[dict[str, JSON]]] = {}
    payloads = {
        place: list(damage.places(payload)) for place, payload in enumerate(trace.payloads) if damage.perhaps(payload)
    }
    for index, event in enumerate(trace.events):
        own = list(damage.places(to_json(event))) if damage.perhaps(event) else []
        own += _in_input(event, payloads) if payloads and isinstance(event, ModelCall) else []
        if own:
            found[index] = own
    names = {name: getattr(recording, name) for name in _NAMES}
    if own := list(damage.places({**names, "tags": list(recording.tags)})):
        found[0] = own + found.get(0, [])
    return found if found and _is_damaged(unit) else {}


def _in_input(event: ModelCall, payloads: Mapping[int, list[dict[str, JSON]]]) -> list[dict[str, JSON]]:
    """Return the damage of what a call's input adds to the one before it."""
    named = [(f"messages[{event.input.keep + at}]", place) for at, place in enumerate(event.input.add)]
    named += [("tools", event.tools)] if event.tools is not None else []
    return [
        {**each, "at": f"{name}.{each['at']}" if each["at"] else name}
        for name, place in named
        for each in payloads.get(place, ())
    ]


def _is_suspect(unit: Unit) -> bool:
    """Say cheaply whether a unit may be damaged: a whole file is looked at; folders and archives by what was read."""
    return unit.folder or (data := unit.only.read())[:4] == _ZIP or not _utf8(data)


def _is_damaged(unit: Unit) -> bool:
    """Say whether a file of the unit is no UTF-8, or a member of its archive."""
    for file in unit.files.values():
        data = file.read()
        if data[:4] != _ZIP:
            if not _utf8(data):
                return True
            continue
        try:
            archive = open_archive(data, file.path)
            if not all(_utf8(archive.read(member)) for member in archive.members):
                return True
        except HarnessLabError:
            return True
    return False


def _utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _note_damage(event: AnyEvent, place: int, found: list[dict[str, JSON]], where: str, report: Report) -> None:
    first, more = found[0], f", and {len(found) - 1} more" if len(found) > 1 else ""
    named = f"{where}, event {place}" + (f" ({event.origin})" if event.origin else "")
    said = f"bytes that are no UTF-8 are kept and marked as damaged: {first['bytes']} in {first['at']}, character"
    report.remark(named, f"{said} {first['offset']}{more}")


def _note_spellings(recording: Recording, spelled: dict[tuple[str, str], str], report: Report) -> None:
    """Say it where one name comes in two spellings that look alike, such as é as one character and as two."""
    for kind in _NAMES:
        name = getattr(recording, kind)
        if name and not name.isascii():
            first = spelled.setdefault((kind, normalize("NFC", name)), name)
            if first != name:
                said = "is spelled with other characters that look the same (Unicode NFC and NFD): they are told apart"
                report.remark(f"rollout {recording.source.position}", f"the {kind} {name!r} {said}")


def _with_balance(recording: Recording, where: str, report: Report) -> Recording:
    """Put the source's totals and their balance into the closing event, and note what is short."""
    totals, last = recording.totals, len(recording.trace.events) - 1
    if totals is None or not totals.to_json() or not isinstance(recording.trace.events[last], RolloutEnded):
        return recording
    lines = stated.balance(totals, recording.trace.events)
    for sentence in stated.sentences(lines):
        report.shortfalls.append(Skipped(where, sentence))
    kept: dict[str, JSON] = {stated.TOTALS: totals.to_json(), stated.BALANCE: [line.to_json() for line in lines]}
    report.balances[recording.source.position] = lines
    return _changed(recording, {last: kept})
