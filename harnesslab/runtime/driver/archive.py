"""A tar archive, written out into an empty folder that nothing in it leads out of, on any patch release of Python."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from harnesslab.core.errors import HarnessLabError

MOST_LINKS = 40  # followed for one name, as Linux does

Parts = tuple[str, ...]  # of a name inside the archive


class UnsafeArchive(HarnessLabError):
    """An archive holds something that doesn't belong into the folder that it is written to."""


def write_out(archive: bytes, folder: Path) -> None:
    """Write an archive's files, folders and symbolic links; raises `UnsafeArchive`, `tarfile.TarError` or `OSError`.

    What came before a refusal is left in the folder, which is the caller's to remove.
    """
    links: dict[Parts, tarfile.TarInfo] = {}
    folders: list[tuple[Path, float]] = []
    # `extractall` can do this since 3.11.4 alone, and follows links that it made: here links are made last
    with tarfile.open(fileobj=BytesIO(archive)) as members:
        for member in members:
            parts = _parts(member.name)
            place = folder.joinpath(*parts)
            if member.isdir():
                _make(folder, parts)
                folders.append((place, member.mtime))
            elif member.isreg():
                _make(folder, parts[:-1])
                _write(members, member, place)
            elif member.issym():
                links[parts] = member
            else:
                raise UnsafeArchive(f"neither a file, a folder nor a symbolic link: {member.name!r}")
    _link(links, folder)
    for place, moment in reversed(folders):
        _touch(place, moment)


def _touch(place: Path, moment: float) -> None:
    try:
        os.utime(place, (moment, moment), follow_symlinks=False)
    except (OverflowError, ValueError):  # a time that is none, or further off than any file system goes
        raise UnsafeArchive(f"no time of a file: {moment!r}") from None


def _parts(name: str) -> Parts:
    """Return the parts of a member's name; raises `UnsafeArchive` for one that isn't relative and plain."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise UnsafeArchive(f"not a relative and plain name: {name!r}")
    return parts


def _make(folder: Path, parts: Parts) -> None:
    for part in parts:
        folder /= part
        if not folder.is_dir():
            folder.mkdir()
            folder.chmod(0o755)  # whatever the umask: the sandbox's user reads it


def _write(members: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    content = members.extractfile(member)
    with place.open("xb") as target:  # a name that came before is refused
        target.write(content.read() if content is not None else b"")
    place.chmod(0o755 if member.mode & 0o100 else 0o644)
    _touch(place, member.mtime)


def _link(links: Mapping[Parts, tarfile.TarInfo], folder: Path) -> None:
    targets = {parts: member.linkname for parts, member in links.items()}
    for parts in targets:
        _stays_inside(parts, targets)
    for parts, member in links.items():
        if any(parts[:count] in targets for count in range(1, len(parts))):
            raise UnsafeArchive(f"a name under a link: {member.name!r}")
        _make(folder, parts[:-1])
        place = folder.joinpath(*parts)
        place.symlink_to(member.linkname)
        _touch(place, member.mtime)


def _stays_inside(parts: Parts, targets: Mapping[Parts, str]) -> None:
    """Follow a link by the archive's own links, as the kernel would; raises `UnsafeArchive` where it leaves."""
    at: list[str] = list(parts[:-1])
    pending = [parts[-1]] if parts else []
    followed = 0
    while pending:
        part = pending.pop(0)
        if part == "..":
            if not at:
                raise UnsafeArchive(f"a link that leads outside: {'/'.join(parts)!r}")
            at.pop()
        elif part not in ("", "."):
            at.append(part)
        if tuple(at) in targets:
            target, followed = targets[tuple(at)], followed + 1
            if target.startswith("/") or "\0" in target or followed > MOST_LINKS:
                raise UnsafeArchive(f"a link that leads nowhere inside: {'/'.join(parts)!r}")
            at.pop()
            pending = [*target.split("/"), *pending]
