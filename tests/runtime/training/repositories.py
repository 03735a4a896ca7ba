"""A small git repository to train on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from harnesslab.runtime.training.repository import Repository

ENVIRON = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
}


def run_git(place: Path, *arguments: str) -> str:
    """Run git as a user of the repository would."""
    done = subprocess.run(["git", *arguments], cwd=place, env=ENVIRON, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(place: Path, surface: tuple[str, ...] = ("*.py", "examples/*")) -> Repository:
    """Make a repository with one commit on `main`, checked out."""
    place.mkdir(parents=True)
    run_git(place, "init", "-q", "--initial-branch=main")
    (place / "harness.py").write_text("ONE = 1\n\n\nTWO = 2\n")
    (place / "README").write_text("read me\n")
    run_git(place, "add", ".")
    run_git(place, "commit", "-qm", "one")
    return Repository.at(str(place), "main", surface)


def patch_of(repository: Repository, **files: str) -> bytes:
    """Return the patch that writes some files (`__` is a dot), leaving the working tree as it was."""
    for name, text in files.items():
        place = repository.place / name.replace("__", ".").replace("_in_", "/")
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    run_git(repository.place, "add", "-A")
    patch = run_git(repository.place, "diff", "--cached", "HEAD")
    run_git(repository.place, "reset", "-q", "--hard")
    return (patch + "\n").encode()
