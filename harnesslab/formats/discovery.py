"""From paths to units: which files are read alone, and which folders are one thing.

A harness-training run folder and a Harbor trial folder are one unit each, with all their files. Everything else
is one unit per file. Archives of such files are opened in the same way.
"""

from __future__ import annotations

import glob
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from harnesslab.core.errors import FormatRefused, LimitExceeded, NotFound
from harnesslab.formats.companions import (
    job_files,
    parent,
    run_companions,
    run_surroundings,
    tree_files,
    trial_surroundings,
)
from harnesslab.formats.places import place_of
from harnesslab.formats.reading.archives import Archive, open_archive
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.reading.siblings import Siblings

MAX_FILES = 200_000
"""Most files that are looked at below one path."""
_ZIP = b"PK\x03\x04"
_LOGS = ("header.json", "_journal/", "samples/")
_BUNDLE = ("bundle.json",)


def discover(paths: Iterable[str | Path], report: Report | None = None) -> Iterator[Unit]:
    """Yield the units at files, folders and glob patterns, in the order given and sorted within each.

    Raises `NotFound` for a path that doesn't exist or a pattern without a match.
    """
    for given in paths:
        for path in _expand_pattern(given):
            if not path.is_dir():
                yield Unit(path.name, {path.name: InputFile.of_path(path)}, place=place_of(path))
                continue
            name, place = path.resolve().name, place_of(path)
            for unit in units_of(_folder_files(path, report or Report()), name):
                # the folder that was named is one run of what lies above it
                alone = unit.folder and not unit.within and unit.name == name
                yield replace(unit, place=place_of(path.resolve().parent) if alone else place)


def expand(unit: Unit) -> Iterator[Unit]:
    """Yield the units inside a zip of importable files; any other unit is yielded as it is.

    Raises `FormatRefused` for unsafe member names and `LimitExceeded` beyond the bounds of `archives`.
    """
    if unit.folder or unit.only.read()[:4] != _ZIP:
        yield unit
        return
    archive = open_archive(unit.only.read(), unit.name)
    if _is_log(archive) or any(name in archive.members for name in _BUNDLE):
        yield unit
        return
    if not archive.whole:
        raise FormatRefused("the zip archive is cut off", where=unit.name, hint="copy it again")
    files = {
        name: InputFile(name, info.file_size, lambda name=name: archive.read(name))  # type: ignore[misc]
        for name, info in archive.members.items()
        if not _hidden(name) and not name.startswith("__MACOSX/")
    }
    yield from (replace(inner, place=unit.place) for inner in units_of(files, PurePosixPath(unit.name).stem))


def units_of(files: Mapping[str, InputFile], name: str) -> Iterator[Unit]:
    """Group files by path into units; `name` is that of the folder they are in."""
    owner = _owners(files)
    groups: dict[str, dict[str, InputFile]] = defaultdict(dict)
    for path, file in files.items():
        groups[owner.get(path, path)][path] = file
    folders = set(owner.values())
    runs = {folder for folder in folders if _is_run(set(groups[folder]), folder)}
    jobs = job_files(files, folders - runs)
    shared = tree_files(files, runs) | jobs.keys()
    lines = {path: files[path] for path in files if path.endswith(".jsonl") and path not in owner}
    siblings = Siblings(lines) if len(lines) > 1 else {}
    for key in sorted(groups):
        if key in shared:
            continue
        if key not in folders:
            short = PurePosixPath(key).name
            beside = siblings if key in lines else {}
            yield Unit(short, {short: files[key].renamed(short)}, beside=beside, within=_within(name, key))
            continue
        inside = {_below(path, key): file.renamed(_below(path, key)) for path, file in groups[key].items()}
        title = PurePosixPath(key).name or name
        if key in runs:
            inside |= run_companions(files, parent(key), inside, title)
        around = run_surroundings(files, key) if key in runs else trial_surroundings(files, key, folders - runs, jobs)
        yield Unit(title, dict(sorted(inside.items())), folder=True, beside=around)


def _within(name: str, path: str) -> str:
    """Return the folder of a path inside a named one, for people."""
    inner = _folder(PurePosixPath(path).parent)
    return f"{name}/{inner}".rstrip("/")


def _expand_pattern(given: str | Path) -> list[Path]:
    path = Path(given)
    if str(given) and _exists(path):
        return [path]
    matches = sorted(glob.glob(str(given), recursive=True)) if glob.has_magic(str(given)) else []  # noqa: PTH207
    if not matches:
        raise NotFound("no such file or folder", where=str(given))
    return [Path(match) for match in matches]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise NotFound(f"can't be looked at: {error.strerror}", where=str(path)) from error


def _entries(folder: Path, root: Path, report: Report) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        report.skip(folder.relative_to(root).as_posix(), f"the folder can't be read: {error.strerror}")
        return []


def _leads_elsewhere(link: Path, inside: Path) -> bool:
    try:
        return link.is_dir() or not link.resolve().is_relative_to(inside)
    except (OSError, RuntimeError):  # links in a circle
        return True


def _folder_files(root: Path, report: Report) -> dict[str, InputFile]:
    """List the files below a folder, hidden ones and links that lead elsewhere left out."""
    found: dict[str, InputFile] = {}
    inside = root.resolve()
    waiting = [root]
    while waiting:
        for entry in _entries(waiting.pop(), root, report):
            name = entry.relative_to(root).as_posix()
            if entry.name.startswith("."):
                continue
            if entry.is_symlink() and _leads_elsewhere(entry, inside):
                report.skip(name, "a symbolic link to a folder, out of the given one, or to itself")
            elif entry.is_dir():
                waiting.append(entry)
            elif entry.is_file():
                found[name] = InputFile.of_path(entry, root)
                if len(found) > MAX_FILES:
                    raise LimitExceeded(f"more than {MAX_FILES:,} files", where=str(root), hint="import parts of it")
            else:
                report.skip(name, "not a regular file, or a link to nothing")
    return found


def _owners(files: Mapping[str, InputFile]) -> dict[str, str]:
    """Map each path that belongs to a folder unit to that folder; the outermost folder wins."""
    below: dict[str, set[str]] = defaultdict(set)
    for path in files:
        for above in PurePosixPath(path).parents:
            below[_folder(above)].add(path)
    owner: dict[str, str] = {}
    for folder in sorted(below, key=lambda item: (item.count("/") + bool(item), item)):
        paths = below[folder]
        if next(iter(paths)) not in owner and (_is_run(paths, folder) or _is_trial(paths, folder)):
            owner.update(dict.fromkeys(paths, folder))
    return owner


def _is_run(paths: set[str], folder: str) -> bool:
    inner = {_below(path, folder) for path in paths}
    return "experiment.json" in inner or any(
        name.startswith("tasks/") and name.endswith("/agent/steps.jsonl") and name.count("/") == 3 for name in inner
    )


def _is_trial(paths: set[str], folder: str) -> bool:
    inner = {_below(path, folder) for path in paths}
    parts = {name.split("/", 1)[0] for name in inner if "/" in name}
    stated = {"result.json", "config.json"} & inner
    nested = any(name.endswith("/result.json") for name in inner)
    return bool(stated and parts & {"agent", "verifier"}) or (len(stated) == 2 and not nested)


def _is_log(archive: Archive) -> bool:
    return any(name.startswith(_LOGS) for name in archive.members)


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(path).parts)


def _folder(path: PurePosixPath) -> str:
    return "" if str(path) == "." else str(path)


def _below(path: str, folder: str) -> str:
    return path[len(folder) + 1 :] if folder else path
