"""Making units in memory, and reading them whole."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.trace import messages_at
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.registry import Importer, recognise, recordings


def file_unit(name: str, content: Any) -> Unit:
    """Make a unit of one file: bytes as they are, a list of lines, or a JSON document."""
    return Unit(name, {name: InputFile.of_bytes(name, as_bytes(content))})


def folder_unit(name: str, files: Mapping[str, Any]) -> Unit:
    """Make a folder unit of files by path."""
    return Unit(
        name, {path: InputFile.of_bytes(path, as_bytes(content)) for path, content in files.items()}, folder=True
    )


def as_bytes(content: Any) -> bytes:
    """Write content as a file holds it: bytes, text, or JSON."""
    if isinstance(content, bytes):
        return content
    return content.encode() if isinstance(content, str) else json.dumps(content).encode()


def lines(rows: list[Any]) -> bytes:
    """Write JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def zipped(members: Mapping[str, Any]) -> bytes:
    """Write a zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, as_bytes(content))
    return out.getvalue()


def read(unit: Unit, expected: Importer) -> tuple[list[Recording], Report]:
    """Read a unit whole by the importer that recognises it, which must be the expected one."""
    found = recognise(unit)
    assert found.importer is expected
    report = Report()
    return list(recordings(found, report)), report


def events_of(recording: Recording, kind: type) -> list[Any]:
    """Return a recording's events of one kind."""
    return [event for event in recording.trace.events if isinstance(event, kind)]


def facts_of(recording: Recording) -> Any:
    """Return a recording's facts, to be looked into without casts."""
    return recording.facts


def sent(recording: Recording, index: int) -> Any:
    """Return the messages of the model call at an event position, to be looked into without casts."""
    return messages_at(recording.trace, index)
