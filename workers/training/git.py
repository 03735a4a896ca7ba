"""Running git on a repository of a user's: no hooks, no prompts, no configuration that runs programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harnesslab.core.errors import HarnessLabError

SECONDS = 120
_IDENTITY = {
    "GIT_AUTHOR_NAME": "HarnessLab",
    "GIT_AUTHOR_EMAIL": "training@harnesslab.invalid",
    "GIT_COMMITTER_NAME": "HarnessLab",
    "GIT_COMMITTER_EMAIL": "training@harnesslab.invalid",
}
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false")


class GitFailed(HarnessLabError):
    """Git refused, or is not there."""


def git(
    place: Path,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    allowed: tuple[int, ...] = (0,),
    given: bytes | None = None,
) -> str:
    """Run git in a repository and return what it printed; raises `GitFailed` with its last line."""
    whole = {**os.environ, **_IDENTITY, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(environ or {})}
    command = ["git", "-c", f"safe.directory={place}", *_QUIET, "-C", str(place), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - arguments are a list
            command, env=whole, input=given, capture_output=True, timeout=SECONDS, check=False
        )
    except FileNotFoundError:
        raise GitFailed("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git took longer than {SECONDS} s", where=str(place)) from None
    if done.returncode not in allowed:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitFailed(said[-1] if said else f"git ended with {done.returncode}", where=str(place))
    return done.stdout.decode(errors="replace")
