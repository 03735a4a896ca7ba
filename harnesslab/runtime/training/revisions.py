"""The revisions of a harness on this machine that are near at hand: branches, tags, and the newest commits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harnesslab.core.errors import InvalidValue
from harnesslab.runtime.training.git import git

MOST = 40
_FIELDS = "%(refname:short)%00%(objectname)%00%(*objectname)%00%(subject)"


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit, and how a person would name it."""

    name: str
    commit: str
    subject: str


def revisions(repository: str, branch: str) -> list[Revision]:
    """Return branches and tags, the newest first, then the branch's commits; raises `InvalidValue` or `GitFailed`."""
    place = Path(repository)
    if "://" in repository or not place.is_dir():
        raise InvalidValue("its repository is not on this machine, so that its revisions are not listed")
    refs = ("refs/heads", "refs/tags")
    named = git(place, "for-each-ref", "--sort=-creatordate", f"--count={MOST}", f"--format={_FIELDS}", *refs)
    rows = [line.split("\0") for line in named.split("\n") if line]
    found = [Revision(name, target or commit, subject) for name, commit, target, subject in rows]
    asked = ("log", f"--max-count={MOST}", "--format=%h%x00%H%x00%s", f"refs/heads/{branch}", "--")
    commits = [line.split("\0") for line in git(place, *asked).split("\n") if line]
    return found + [Revision(*row) for row in commits]
