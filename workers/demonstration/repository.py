"""The git repository of the reference harness, made in the lab's home with the same commits everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from workers.driver.checkout import CheckoutFailed

REFERENCE = Path(__file__).resolve().parent / "reference"
PATCHES = Path(__file__).resolve().parent / "patches"
"""The queue of changes that the small training tries."""
BASELINE, PLAIN = "r1", "r2"
"""Tags: the reference harness, and the same with a changed prompt: no worked examples."""
_IDENTITY = {
    "GIT_AUTHOR_NAME": "HarnessLab",
    "GIT_AUTHOR_EMAIL": "demonstration@harnesslab.invalid",
    "GIT_COMMITTER_NAME": "HarnessLab",
    "GIT_COMMITTER_EMAIL": "demonstration@harnesslab.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def ensure_repository(home: Path, name: str = "reference") -> Path:
    """Return the repository, made where it isn't there yet; a training gets one of its own to promote in."""
    place = home / "harnesses" / name
    if (place / ".git").is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=place.parent))
    _git(made, "init", "--quiet", "--initial-branch=main")
    shutil.copytree(REFERENCE, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    _commit(made, "Reference harness: run or submit", BASELINE)
    shutil.rmtree(made / "examples")
    _commit(made, "Prompt without worked examples", PLAIN)
    _git(made, "checkout", "--quiet", "-B", "main", BASELINE)
    try:
        made.rename(place)
    except OSError:  # another process was quicker
        shutil.rmtree(made, ignore_errors=True)
    return place


def _commit(place: Path, message: str, tag: str) -> None:
    _git(place, "add", "--all")
    _git(place, "commit", "--quiet", "--message", message)
    _git(place, "tag", tag)


def _git(place: Path, *arguments: str) -> None:
    environ = {**os.environ, **_IDENTITY}
    try:
        subprocess.run(["git", *arguments], cwd=place, env=environ, check=True, capture_output=True)  # noqa: S603, S607
    except FileNotFoundError:
        raise CheckoutFailed("git is not installed", hint="harnesses are read from git repositories") from None
