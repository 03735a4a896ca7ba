"""Running git on a repository of a user's: no hooks, no prompts, no daemon, and the repository that is named.

Filters that the user's own configuration names do run, as in any checkout: without them a file would look changed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harnesslab.core.errors import HarnessLabError
from harnesslab.runtime.driver.checkout import outside_repositories

SECONDS = 120
_IDENTITY = {
    "GIT_AUTHOR_NAME": "HarnessLab",
    "GIT_AUTHOR_EMAIL": "training@harnesslab.invalid",
    "GIT_COMMITTER_NAME": "HarnessLab",
    "GIT_COMMITTER_EMAIL": "training@harnesslab.invalid",
}
# a repository's own configuration can name programs for these, which would run as the worker does
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false")


class GitFailed(HarnessLabError):
    """Git refused, or is not there."""


def git(
    place: Path,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    allowed: tuple[int, ...] = (0,),
    stdin: bytes | None = None,
) -> str:
    """Run git in a repository and return what it printed; raises `GitFailed` with what it said of it."""
    whole = {
        **outside_repositories(os.environ),
        **_IDENTITY,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        **(environ or {}),
    }
    command = ["git", "-c", f"safe.directory={place}", *_QUIET, "-C", str(place), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - arguments are a list
            command, env=whole, input=stdin, capture_output=True, timeout=SECONDS, check=False
        )
    except FileNotFoundError:
        raise GitFailed("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git took longer than {SECONDS} s", where=str(place)) from None
    if done.returncode not in allowed:
        raise GitFailed(_reason(done.stderr) or f"git ended with {done.returncode}", where=str(place))
    return done.stdout.decode(errors="replace")


def _reason(said: bytes) -> str:
    """Return git's last error, with the name on the next line where it only announces one; else its last line."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    errors = [place for place, line in enumerate(lines) if line.startswith(("error: ", "fatal: "))]
    place = errors[-1] if errors else len(lines) - 1
    return " ".join(lines[place : place + 2] if lines and lines[place].endswith(":") else lines[place : place + 1])
