"""The lineage that something brought in belongs to: its repository, else the nearest folder that says more."""

from __future__ import annotations

from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from harnesslab.core.canonical import bytes_digest
from harnesslab.formats.reading.inputs import SourcePlace

_SAYS_NOTHING = frozenset(
    {
        *("experiments", "jobs", "runs", "results", "logs", "traces", "trajectories"),
        *("output", "outputs", "out", "data", "tmp", "downloads"),
    }
)
"""Names of folders that hold runs of whatever lies above them."""


def place_of(path: Path) -> SourcePlace:
    """Return the place of a file or folder that was named on the command line."""
    whole = path.resolve()
    folder = whole if whole.is_dir() else whole.parent
    repository = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    return _of(repository or folder)


def place_of_workspace(folder: str) -> SourcePlace:
    """Return the place of a folder that a recording states, which need not be of this machine."""
    return _of(PureWindowsPath(folder) if "\\" in folder else PurePosixPath(folder))


def _of(folder: PurePath) -> SourcePlace:
    """Return the place of a folder; of its path, nothing is kept but the name and a digest."""
    while folder.name.lower() in _SAYS_NOTHING and folder.parent != folder:
        folder = folder.parent
    return SourcePlace(folder.name, bytes_digest(str(folder).encode(errors="surrogateescape"))[:16])
