"""A harness at one commit, as a read-only folder that sandboxes are given."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harnesslab.core.canonical import Digest, bytes_digest, digest
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.runtime.driver.archive import UnsafeArchive, write_out

GIT_SECONDS = 120
LONGEST_REVISION = 250
_COMMIT = re.compile("[0-9a-f]{40}")
_POINTS = re.compile(
    "GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX"
    "|IMPLICIT_WORK_TREE|GRAFT_FILE|SHALLOW_FILE|REPLACE_REF_BASE|NO_REPLACE_OBJECTS|QUARANTINE_PATH"
    "|CONFIG|CONFIG_PARAMETERS|CONFIG_COUNT|CONFIG_KEY_.*|CONFIG_VALUE_.*|EXTERNAL_DIFF)"
)


class CheckoutFailed(HarnessLabError):
    """A harness revision can't be read from its repository."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A harness's files at a commit."""

    folder: Path
    commit: str
    files_digest: Digest


def outside_repositories(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that points git at no repository, as that of a hook does which started this process."""
    return {name: value for name, value in environ.items() if not _POINTS.fullmatch(name)}


def resolve(repository: str, revision: str, cache: Path) -> str:
    """Return the commit that a revision names; raises `InvalidValue` for none, `CheckoutFailed` where git fails."""
    if not revision or revision.startswith("-") or len(revision) > LONGEST_REVISION or not revision.isprintable():
        raise InvalidValue(f"not a revision: {revision[:80]!r}", where="revision")
    place = _local(repository, cache, revision)
    found = _git(
        place, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", allowed=(0, 1)
    )
    commit = found.decode().strip()
    if not _COMMIT.fullmatch(commit):
        raise InvalidValue(f"no revision {revision!r}", where="revision", hint="name a commit, tag or branch")
    return commit


def checkout(repository: str, revision: str, cache: Path) -> Checkout:
    """Return the files of a revision, written out once and kept by commit; raises `CheckoutFailed`."""
    commit = resolve(repository, revision, cache)
    folder = cache / "commits" / commit
    if not folder.is_dir():
        _write_out(_git(_local(repository, cache, commit), "archive", "--format=tar", commit), folder)
    return Checkout(folder, commit, files_digest(folder))


def files_digest(folder: Path) -> Digest:
    """Return a digest over a folder's files by name and content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return digest({path.relative_to(folder).as_posix(): bytes_digest(path.read_bytes()) for path in files})


def _local(repository: str, cache: Path, revision: str) -> Path:
    """Return a repository on this machine: the folder itself, or a mirror of an address, fetched where it lacks."""
    if not repository:
        raise InvalidValue("the harness names no repository", where="harness")
    if not repository.isprintable():
        raise InvalidValue(f"no path or address of a repository: {repository[:80]!r}", where="repository")
    if "://" not in repository and not re.match(r"[\w.-]+@[\w.-]+:", repository):
        return Path(repository)
    mirror = cache / "mirrors" / bytes_digest(repository.encode())[:16]
    if not mirror.is_dir():
        mirror.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=mirror.parent))
        _git(made, "clone", "--quiet", "--mirror", "--", repository, str(made / "mirror"))
        _move(made / "mirror", mirror)
        shutil.rmtree(made, ignore_errors=True)
    elif not _has(mirror, revision):
        _git(mirror, "fetch", "--quiet", "--prune")
    return mirror


def _has(mirror: Path, revision: str) -> bool:
    if not _COMMIT.fullmatch(revision):
        return False  # a branch may have moved
    return bool(_git(mirror, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", allowed=(0, 1)))


def _git(place: Path, *arguments: str, allowed: tuple[int, ...] = (0,)) -> bytes:
    environ = {**outside_repositories(os.environ), "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    # a repository of another owner, such as a mounted one, is only read here
    command = ["git", "-c", f"safe.directory={place}", "-C", str(place), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - arguments are a list, and revisions can't be options
            command, env=environ, capture_output=True, timeout=GIT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise CheckoutFailed("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise CheckoutFailed(f"git took longer than {GIT_SECONDS} s", where=str(place)) from None
    if done.returncode not in allowed:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise CheckoutFailed(said[-1] if said else f"git ended with {done.returncode}", where=str(place))
    return done.stdout


def _write_out(archive: bytes, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # beside it and renamed when it is whole: the folder's name promises a commit, also after a kill
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        write_out(archive, made)
    except BaseException as error:
        shutil.rmtree(made, ignore_errors=True)
        if not isinstance(error, UnsafeArchive | tarfile.TarError | OSError):
            raise
        raise CheckoutFailed(f"the revision can't be written out: {error}", where=folder.name) from None
    made.chmod(0o755)  # the sandbox's user reads it
    _move(made, folder)


def _move(made: Path, folder: Path) -> None:
    """Put a finished folder in its place, where another process may have been quicker."""
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not folder.is_dir():
            raise
