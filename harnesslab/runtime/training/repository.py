"""The repository of a harness under training: candidates as commits under refs, promotions as fast-forwards.

A candidate never touches a branch or a working tree; it is a commit on the base, kept under a ref. Only a promotion
moves the branch, and only forwards from where the training left it, in a clean working tree.
"""

from __future__ import annotations

import fnmatch
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harnesslab.core.errors import Conflict, HarnessLabError, InvalidValue
from harnesslab.runtime.training.git import GitFailed, git

CANDIDATES = "refs/harnesslab/candidates"
EXPERIMENTS = "refs/harnesslab/experiments"
LARGEST = 2_000_000
"""Bytes of one changed file."""
TRIES, PAUSE_S = 5, 0.5
"""How often a branch is moved that another git holds, and seconds in between."""
_LINK, _MODULE = "120000", "160000"


class NoChange(HarnessLabError):
    """A proposal changes nothing, or can't be applied."""


class OutsideEditableFiles(HarnessLabError):
    """A proposal changes what a candidate may not change."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change as a commit on its base."""

    commit: str
    files: tuple[str, ...]
    diff: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A local git repository with the branch that promotions move."""

    place: Path
    branch: str
    surface: Sequence[str]

    @classmethod
    def at(cls, address: str, branch: str, surface: Sequence[str]) -> Repository:
        """Return the repository; raises `InvalidValue` where it isn't on this machine."""
        place = Path(address)
        if "://" in address or not place.is_dir():
            hint = "clone it, and bind the project to the clone"
            raise InvalidValue(f"a training needs a repository on this machine: {address}", hint=hint)
        return cls(place, branch, tuple(surface))

    def head(self) -> str:
        """Return the commit of the branch; raises `GitFailed`."""
        named = ("rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}^{{commit}}")
        commit = git(self.place, *named, allowed=(0, 1)).strip()
        if not commit:
            raise GitFailed(f"the repository has no branch {self.branch!r}", where=str(self.place))
        return commit

    def refuse_dirty(self) -> None:
        """Raise `Conflict` where the branch is checked out with changes that no commit holds."""
        tree = self._checked_out()
        if tree is None:
            return
        changed = git(tree, "status", "--porcelain", "--untracked-files=no").strip().splitlines()
        if changed:
            files = ", ".join(line.split(maxsplit=1)[-1] for line in changed[:3])
            hint = "commit or undo them, then go on"
            raise Conflict(f"the working tree has changes that no commit holds: {files}", where=self.branch, hint=hint)

    def candidate_of_patch(self, base: str, patch: bytes, message: str) -> Candidate:
        """Return the commit that a patch makes of the base; raises `NoChange` or `OutsideEditableFiles`."""
        with self._index(base) as environ:
            try:
                git(self.place, "apply", "--cached", "--3way", "-", environ=environ, stdin=patch)
            except GitFailed as error:
                raise NoChange(f"the patch does not apply to {base[:8]}: {error.what}") from None
            return self._commit(base, message, environ)

    @contextmanager
    def worktree(self, base: str) -> Iterator[Path]:
        """Give a working tree of the base, detached, that is removed afterwards."""
        with tempfile.TemporaryDirectory(prefix="harnesslab-proposal-") as folder:
            place = Path(folder) / "harness"
            git(self.place, "worktree", "add", "--quiet", "--detach", str(place), base)
            try:
                yield place
            finally:
                git(self.place, "worktree", "remove", "--force", "--force", str(place), allowed=(0, 128))
                git(self.place, "worktree", "prune")

    def candidate_of_tree(self, base: str, place: Path, message: str) -> Candidate:
        """Return the commit of the base with a changed working tree; raises `NoChange` or `OutsideEditableFiles`."""
        with self._index(base) as environ:
            git(self.place, "add", "--all", ".", environ={**environ, "GIT_WORK_TREE": str(place)})
            return self._commit(base, message, environ)

    def keep(self, candidate: str) -> str:
        """Put a candidate under a ref, so that it stays whatever becomes of it; returns the ref."""
        ref = f"{CANDIDATES}/{candidate}"
        git(self.place, "update-ref", ref, candidate)
        return ref

    def keep_experiment(self, name: str, commit: str) -> str:
        """Put what an experiment measured under a ref; returns the ref."""
        ref = f"{EXPERIMENTS}/{name}"
        git(self.place, "update-ref", ref, commit)
        return ref

    def promote(self, base: str, commit: str) -> None:
        """Fast-forward the branch from the base to a candidate; once it holds it, nothing happens.

        Raises `Conflict`, and changes nothing, where the branch is elsewhere or its working tree is dirty.
        """
        now = self.head()
        if self._holds(commit, now):
            return
        if now != base:
            raise Conflict(
                f"the branch moved from {base[:8]} to {now[:8]} meanwhile: it was left alone",
                where=self.branch,
                hint=f"the candidate is kept at {CANDIDATES}/{commit[:12]}…",
            )
        self.refuse_dirty()
        for again in reversed(range(TRIES)):
            try:
                self._forward(base, commit)
            except GitFailed as error:
                if self._holds(commit, self.head()):  # by the git of a worker that was killed, which went on to its end
                    return
                if not again or "lock" not in error.what:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def _forward(self, base: str, commit: str) -> None:
        tree = self._checked_out()
        if tree is not None:
            git(tree, "merge", "--quiet", "--ff-only", commit)  # a moved ref alone would make the tree look changed
        else:
            # git compares with the base as it moves the branch: a commit that came since the look isn't lost
            git(self.place, "update-ref", f"refs/heads/{self.branch}", commit, base)

    def _holds(self, commit: str, head: str) -> bool:
        """Say whether a head is a commit or went on from it."""
        return not git(self.place, "rev-list", "--max-count=1", commit, "--not", head).strip()

    def diff(self, base: str, commit: str) -> str:
        """Return what changed between two commits."""
        return git(self.place, "diff", "--no-color", "--no-ext-diff", "--no-textconv", base, commit)

    def _checked_out(self) -> Path | None:
        """Return the working tree, of the repository or linked to it, where the branch is checked out."""
        tree = self.place
        for line in git(self.place, "worktree", "list", "--porcelain").splitlines():
            name, _, value = line.partition(" ")
            if name == "worktree":
                tree = Path(value)
            elif (name, value) == ("branch", f"refs/heads/{self.branch}") and tree.is_dir():
                return tree
        return None

    @contextmanager
    def _index(self, base: str) -> Iterator[dict[str, str]]:
        """Give an index of its own, filled with the base."""
        with tempfile.TemporaryDirectory(prefix="harnesslab-index-") as folder:
            environ = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            git(self.place, "read-tree", base, environ=environ)
            yield environ

    def _commit(self, base: str, message: str, environ: dict[str, str]) -> Candidate:
        tree = git(self.place, "write-tree", environ=environ).strip()
        changes = git(self.place, "diff-tree", "-r", "-z", "--no-renames", base, tree).split("\0")
        files = self._checked(list(zip(changes[0::2], changes[1::2], strict=False)))
        said = message.replace("\x00", "␀").encode("utf-8", "replace")
        commit = git(self.place, "commit-tree", tree, "-p", base, stdin=said).strip()
        return Candidate(commit, files, self.diff(base, commit))

    def _checked(self, changes: list[tuple[str, str]]) -> tuple[str, ...]:
        """Return the changed files; raises where there is none, or one that a candidate may not change."""
        if not changes:
            raise NoChange("the proposal changes nothing")
        for facts, name in changes:
            _, mode, _, blob, _ = facts.split()
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.surface):
                allowed = ", ".join(self.surface)
                raise OutsideEditableFiles(f"it changes {name}, outside what a candidate may change", hint=allowed)
            if mode in (_LINK, _MODULE):
                raise OutsideEditableFiles(f"it makes {name} a link, which no candidate may hold")
            if blob.strip("0") and int(git(self.place, "cat-file", "-s", blob)) > LARGEST:
                raise OutsideEditableFiles(f"it makes {name} larger than {LARGEST:,} bytes")
        return tuple(name for _, name in changes)
