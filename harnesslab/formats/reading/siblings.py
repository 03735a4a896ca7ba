"""The session files that lie in one folder with another: what forks copied from, and what began sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.errors import HarnessLabError
from harnesslab.formats.reading.inputs import InputFile, JsonLine, Report, Unit, lines_of
from harnesslab.formats.reading.values import mapping

MAX_SIBLING = 64 * 2**20
"""Largest session file that is looked at for the sake of another, in bytes."""
_HEAD = 256 * 2**10
_ROWS = 40
_KEPT = ("type", "uuid", "id", "sessionId", "isSidechain", "agentId", "requestId")
_LONG = ("base_instructions", "instructions", "dynamic_tools")


class Siblings(Mapping[str, InputFile]):
    """JSON-line files by path, whose first rows are read once for all the files that ask."""

    def __init__(self, files: Mapping[str, InputFile]) -> None:
        self._files = files
        self._heads: dict[str, list[Mapping[str, JSON]]] | None = None

    def __getitem__(self, path: str) -> InputFile:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def heads(self) -> Mapping[str, list[Mapping[str, JSON]]]:
        """Return what the first rows of each file that is not too large say of the session: ids, and how it opens."""
        if self._heads is None:
            self._heads = {path: _head(file) for path, file in self._files.items() if file.size <= MAX_SIBLING}
        return self._heads

    def lines(self, path: str) -> list[JsonLine]:
        """Return all rows of one file; none where it can't be read."""
        with suppress(HarnessLabError):
            return list(lines_of(self._files[path].read(), Report()))
        return []


def siblings_of(unit: Unit) -> Siblings | None:
    """Return the files beside a session's; None for one that was given without its surroundings."""
    return unit.beside if isinstance(unit.beside, Siblings) else None


def _head(file: InputFile) -> list[Mapping[str, JSON]]:
    try:
        data = file.read()[:_HEAD]
    except HarnessLabError:
        return []
    rows: list[Mapping[str, JSON]] = []
    prompted = False
    for line in data.splitlines()[:_ROWS]:
        with suppress(ValueError):
            row = mapping(parse(line))
            opens = row.get("type") == "user" and not prompted
            rows.append(_slim(row, opens=opens))
            prompted = prompted or opens
    return rows


def _slim(row: Mapping[str, JSON], *, opens: bool) -> dict[str, JSON]:
    """Return a row's ids, since the heads of all files are held at once; and what opens a session."""
    found: dict[str, JSON] = {key: row[key] for key in _KEPT if key in row}
    if row.get("type") == "session_meta":
        found["payload"] = {key: each for key, each in mapping(row.get("payload")).items() if key not in _LONG}
    if "requestId" in row:
        found["message"] = {"id": mapping(row.get("message")).get("id")}
    if opens:
        found["message"] = row.get("message")
    return found
