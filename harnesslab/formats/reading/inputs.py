"""What importers read: a unit is one file, or a folder whose files belong together; everything is bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from harnesslab.core.canonical import JSON, Digest, bytes_digest, digest, parse
from harnesslab.core.errors import FormatRefused, LimitExceeded
from harnesslab.core.running.rollout import Skipped
from harnesslab.core.trace.stated import BalanceLine

MAX_FILE = 1024 * 2**20
"""Largest file that is read, in bytes."""
MAX_DOCUMENT = 64 * 2**20
"""Largest single JSON document or line, in bytes."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file by its path inside the unit, with a way to read it."""

    path: str
    size: int
    load: Callable[[], bytes]

    @classmethod
    def of_bytes(cls, path: str, data: bytes) -> InputFile:
        """Make a file of bytes in memory, such as an upload."""
        return cls(path, len(data), lambda: data)

    @classmethod
    def of_path(cls, file: Path, root: Path | None = None) -> InputFile:
        """Make a file on disk, named relative to `root` or by its name."""
        name = file.relative_to(root).as_posix() if root else file.name
        try:
            size = file.stat().st_size
        except OSError:
            size = 0  # reading it will say why
        return cls(name, size, lambda: _bytes_of(file, name))

    def read(self) -> bytes:
        """Return the bytes; raises `LimitExceeded` beyond `MAX_FILE`."""
        if self.size > MAX_FILE:
            raise LimitExceeded(
                f"{self.size:,} bytes, more than the limit of {MAX_FILE:,}", where=self.path, hint="split the file"
            )
        return self.load()

    def renamed(self, path: str) -> InputFile:
        """Return the file under another path."""
        return InputFile(path, self.size, self.load)

    def json(self) -> JSON:
        """Return the file as one JSON document; raises `FormatRefused` where it is none."""
        return json_document(self.read(), self.path)


def _bytes_of(file: Path, name: str) -> bytes:
    """Read a regular file, and never wait for the writer of a pipe or read a device that doesn't end."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise FormatRefused("not a regular file", where=name, hint="write it to a file first")
            data = handle.read(MAX_FILE + 1)  # it may have grown since it was looked at
    except OSError as error:
        raise FormatRefused(f"can't be read: {error.strerror}", where=name) from error
    if len(data) > MAX_FILE:
        raise LimitExceeded(f"more than the limit of {MAX_FILE:,} bytes", where=name, hint="split the file")
    return data


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where something was brought from: a name for people, and what tells it from another place of that name."""

    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class Unit:
    """What is imported as one: a file, or a folder of files that belong together."""

    name: str
    """Shown to people: the file's or folder's name."""
    files: Mapping[str, InputFile]
    """By path inside the unit; a single file has one entry under its own name."""
    folder: bool = False
    beside: Mapping[str, InputFile] = field(default_factory=dict)
    """Files of its surroundings that say more of it; no part of it, since they change as the surroundings grow."""
    within: str = ""
    """The folder it lies in, as people see it; empty for a file that is given by itself."""
    place: SourcePlace | None = None
    """Where it was brought from; None for what was sent without its surroundings."""

    @property
    def only(self) -> InputFile:
        """The file of a single-file unit."""
        return next(iter(self.files.values()))

    def in_memory(self) -> Unit:
        """Return the unit with its file read once; a folder's files are read when they are asked for."""
        return (
            self
            if self.folder
            else replace(self, files={self.only.path: InputFile.of_bytes(self.only.path, self.only.read())})
        )

    def digest(self) -> Digest:
        """SHA-256 of the file's bytes; for a folder, over its paths and their digests."""
        if not self.folder:
            return bytes_digest(self.only.read())
        return digest({path: bytes_digest(file.read()) for path, file in sorted(self.files.items())})


@dataclass(slots=True)
class Report:
    """Collects what could not be imported of a unit, and what is to be said of the rest."""

    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[Skipped] = field(default_factory=list)
    """What people should know of what was imported; nothing is left out for it."""
    shortfalls: list[Skipped] = field(default_factory=list)
    """Where less is stored than the source's own totals state: of what it states and doesn't hold, or was not read."""
    balances: dict[int, tuple[BalanceLine, ...]] = field(default_factory=dict)
    """By a rollout's position, the source's totals against what is stored of it."""

    def skip(self, where: str, why: str) -> None:
        """Note a line, member or part that is left out, and why."""
        self.skipped.append(Skipped(where, why))

    def remark(self, where: str, what: str) -> None:
        """Note something of what is imported, such as bytes that are damaged."""
        self.remarks.append(Skipped(where, what))


def json_document(data: bytes, where: str) -> JSON:
    """Read one JSON document; raises `FormatRefused` or `LimitExceeded` with the place of the fault."""
    if len(data) > MAX_DOCUMENT:
        raise LimitExceeded(
            f"one JSON document of {len(data):,} bytes, more than the limit of {MAX_DOCUMENT:,}",
            where=where,
            hint="export it as JSON lines, or split it",
        )
    if not data.strip():
        raise FormatRefused("the file is empty", where=where)
    try:
        return parse(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise FormatRefused(f"not valid JSON: {error}", where=where) from error


class JsonLine(NamedTuple):
    """One JSON line: its number from 1, where it lies in the file, and its object."""

    number: int
    start: int
    end: int
    value: Mapping[str, JSON]


def lines_of(data: bytes, report: Report, where: str = "") -> Iterator[JsonLine]:
    """Yield the objects of JSON lines one at a time; bad lines are noted in the report.

    The last line is said to be cut off where it is no whole JSON and has no line end.
    """
    start, count = 3 if data.startswith(b"\xef\xbb\xbf") else 0, 0
    while start < len(data):
        found = data.find(b"\n", start)
        end = len(data) if found < 0 else found
        count += 1
        why = ""
        if end - start > MAX_DOCUMENT:
            why = f"longer than {MAX_DOCUMENT:,} bytes"
        elif raw := data[start:end].strip():
            try:
                value = parse(raw)
            except ValueError as error:
                why = "cut off: the file ends inside this line" if found < 0 else f"not valid JSON: {error}"
            else:
                if isinstance(value, Mapping):
                    yield JsonLine(count, start, end, value)
                else:
                    why = f"a JSON {_json_type(value)}, not an object"
        if why:
            report.skip(f"{where} line {count}".strip(), why)
        start = end + 1


def json_lines(data: bytes, report: Report, where: str = "") -> Iterator[tuple[int, Mapping[str, JSON]]]:
    """Yield (line number from 1, object) of JSON lines; see `lines_of`."""
    return ((line.number, line.value) for line in lines_of(data, report, where))


def _json_type(value: JSON) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "list"
