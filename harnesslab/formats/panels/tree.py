"""Reading the folder of a panel within bounds: text files alone, no link, nothing outside it."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused, LimitExceeded

LARGEST_FILE = 2**20
"""Bytes of one file of a case: each job of a rollout carries them all."""
LARGEST_PANEL = 32 * 2**20
"""Bytes of all files of a panel."""
MOST_FILES = 20_000


@dataclass(slots=True)
class PanelTree:
    """A panel's folder; what was read so far is counted."""

    root: Path
    _bytes: int = 0
    _files: int = 0

    def name_in_messages(self, place: Path) -> str:
        """Return how messages name a place in it."""
        name = place.relative_to(self.root).as_posix()
        return self.root.name if name == "." else name.encode("utf-8", "backslashreplace").decode()

    def folders(self, place: Path) -> list[Path]:
        """Return the folders in a folder by name, without hidden ones."""
        return [entry for entry in self._entries(place) if entry.is_dir() and not entry.name.startswith((".", "__"))]

    def has(self, place: Path) -> bool:
        """Say whether a file is there; raises `FormatRefused` where it is something else."""
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return False
        except OSError as error:
            raise FormatRefused(f"can't be read: {error.strerror}", where=self.name_in_messages(place)) from None
        if not stat.S_ISREG(mode):
            raise FormatRefused(f"{_kind(mode)}, where a file is needed", where=self.name_in_messages(place))
        return True

    def text(self, place: Path) -> str:
        """Return a file's text; raises `FormatRefused` or `LimitExceeded`, naming it."""
        self.has(place)
        where = self.name_in_messages(place)
        try:
            with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
                data = stream.read(LARGEST_FILE + 1)
        except OSError as error:
            raise FormatRefused(f"can't be read: {error.strerror}", where=where) from None
        self._count(len(data), where)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise FormatRefused(f"no text: byte {error.start} is not UTF-8", where=where, hint=_BINARY) from None
        if "\0" in text:
            raise FormatRefused(f"no text: byte {text.index(chr(0))} is 0", where=where, hint=_BINARY)
        return text

    def toml(self, place: Path) -> Mapping[str, JSON]:
        """Return a TOML file's table; raises `FormatRefused` with the line."""
        try:
            return tomllib.loads(self.text(place))
        except tomllib.TOMLDecodeError as error:
            raise FormatRefused(f"no TOML: {error}", where=self.name_in_messages(place)) from None
        except RecursionError:
            raise FormatRefused("no TOML: nested too deeply", where=self.name_in_messages(place)) from None

    def below(self, place: Path) -> dict[str, str]:
        """Return every file below a folder, by its path in there; nothing where there is no such folder."""
        if not place.exists() and not place.is_symlink():
            return {}
        found: dict[str, str] = {}
        waiting = [place]
        while waiting:
            for entry in self._entries(waiting.pop()):
                if entry.is_dir():
                    waiting.append(entry)
                else:
                    found[self._name(entry, place)] = self.text(entry)
        return dict(sorted(found.items()))

    def _name(self, entry: Path, place: Path) -> str:
        name = entry.relative_to(place).as_posix()
        try:
            name.encode()
        except UnicodeEncodeError:
            raise FormatRefused(
                "a name that is not UTF-8", where=self.name_in_messages(entry), hint="rename it"
            ) from None
        return name

    def _entries(self, place: Path) -> list[Path]:
        """Return what a folder holds, by name; raises `FormatRefused` for a link."""
        try:
            if place.is_symlink():
                raise FormatRefused("a link, which no panel may hold", where=self.name_in_messages(place), hint=_LINK)
            found = sorted(place.iterdir())
        except OSError as error:
            raise FormatRefused(f"can't be read: {error.strerror}", where=self.name_in_messages(place)) from None
        for entry in found:
            if entry.is_symlink():
                raise FormatRefused("a link, which no panel may hold", where=self.name_in_messages(entry), hint=_LINK)
        return found

    def _count(self, size: int, where: str) -> None:
        if size > LARGEST_FILE:
            hint = "make it in `setup`, or put it into an image"
            raise LimitExceeded(f"larger than the limit of {LARGEST_FILE:,} bytes", where=where, hint=hint)
        self._bytes += size
        self._files += 1
        if self._bytes > LARGEST_PANEL:
            raise LimitExceeded(f"the panel holds more than {LARGEST_PANEL:,} bytes", where=where, hint="split it")
        if self._files > MOST_FILES:
            raise LimitExceeded(f"the panel holds more than {MOST_FILES:,} files", where=where, hint="split it")


_BINARY = "a panel's files are text; make others in `setup`, such as with base64 -d"
_LINK = "put the file itself there"


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a folder" if stat.S_ISDIR(mode) else "no plain file"
