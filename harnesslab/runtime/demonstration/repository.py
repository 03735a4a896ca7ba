"""The git repositories of the demonstration's harnesses, made in the lab's home with the same commits everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from harnesslab.runtime.driver.checkout import CheckoutFailed

_HERE = Path(__file__).resolve().parent
REFERENCE, TRAINEE, PATCHES = _HERE / "reference", _HERE / "trainee", _HERE / "patches"
"""The reference harness, the one of the small training, and the queue of changes that the training tries."""
BASELINE, PLAIN = "r1", "r2"
"""Tags: the reference harness, and the same with a changed prompt: no worked examples."""
_BLOCK = re.MULTILINE | re.DOTALL
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


def ensure_repository(home: Path) -> Path:
    """Return the reference harness's repository, made where it isn't there yet."""

    def fill(made: Path) -> None:
        code = (REFERENCE / "harness.py").read_text()
        _commit(made, code, "Reference harness: run or submit", BASELINE)
        _commit(made, _without_examples(code), "Prompt without worked examples", PLAIN)
        _git(made, "checkout", "--quiet", "-B", "main", BASELINE)

    return _made(home / "harnesses" / "reference", fill)


def ensure_trainee(home: Path) -> Path:
    """Return the repository that the small training promotes in, made where it isn't there yet."""

    def fill(made: Path) -> None:
        shutil.copytree(TRAINEE, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        _git(made, "add", "--all")
        _git(made, "commit", "--quiet", "--message", "A very small harness with one worked example")

    return _made(home / "harnesses" / "trainee", fill)


def _made(place: Path, fill: Callable[[Path], None]) -> Path:
    if (place / ".git").is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=place.parent))
    _git(made, "init", "--quiet", "--initial-branch=main")
    fill(made)
    try:
        made.rename(place)
    except OSError:  # another process was quicker
        shutil.rmtree(made, ignore_errors=True)
    return place


def _without_examples(code: str) -> str:
    return re.sub(
        r"^EXAMPLES = \(\n.*?^\)\n", "EXAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = ()\n", code, flags=_BLOCK
    )


def _commit(place: Path, code: str, message: str, tag: str) -> None:
    (place / "harness.py").write_text(code)
    _git(place, "add", "harness.py")
    _git(place, "commit", "--quiet", "--message", message)
    _git(place, "tag", tag)


def _git(place: Path, *arguments: str) -> None:
    environ = {**os.environ, **_IDENTITY}
    try:
        subprocess.run(["git", *arguments], cwd=place, env=environ, check=True, capture_output=True)  # noqa: S603, S607
    except FileNotFoundError:
        raise CheckoutFailed("git is not installed", hint="harnesses are read from git repositories") from None
