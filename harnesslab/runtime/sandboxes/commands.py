"""What a command is given, when it must end, and what is said of it afterwards."""

from __future__ import annotations

import hashlib
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harnesslab.core.running.ports import Execution, Limits, Place
from harnesslab.runtime.sandboxes import layout
from harnesslab.runtime.sandboxes.attending import Attended
from harnesslab.runtime.sandboxes.box import Box
from harnesslab.runtime.sandboxes.output import BoundedOutput
from harnesslab.runtime.sandboxes.pins import HeldPins
from harnesslab.runtime.sandboxes.sizes import mebibytes

WHOLE_OUTPUT = 1 << 30
"""Bytes after which a command that goes on putting out is ended."""
STOP_SECONDS = 0.5
MEMORY_SECONDS = 0.1
_AUTHOR = {
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@sandbox.invalid",
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@sandbox.invalid",
}


def program(command: str | Sequence[str]) -> list[str]:
    """Return a command as a program with arguments; text is for bash where there is one, else for sh.

    bash has a `getenv` of its own that hides the pinned clock from the library that pins it, unless a process before
    it has set that up: this is what `env` is for.
    """
    if not isinstance(command, str):
        return list(command)
    shell = ["/bin/bash", "--noprofile", "--norc"] if Path("/bin/bash").exists() else ["/bin/sh"]
    return ["/usr/bin/env", *shell, "-c", command]


def environment(place: Place, held: HeldPins) -> dict[str, str]:
    """Return a command's whole environment; nothing of the worker's is in it."""
    _, shown = layout.interpreter()
    path = layout.PATH + "".join(f":{folder}/bin" for folder in shown)
    own = {"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "agent", "LOGNAME": "agent"}  # noqa: S108
    return {**own, "SHELL": "/bin/sh", "TERM": "dumb", **_AUTHOR, **held.environ, **place.environ}


class RunningCommand:
    """One command while it runs."""

    def __init__(self, box: Box, limits: Limits, output: BoundedOutput, stopped: Callable[[], bool] | None) -> None:
        self._box = box
        self._limits = limits
        self._output = output
        self._stopped = stopped
        self._asked = self._weighed = time.monotonic()

    def check(self) -> str | None:
        """Say why it must end, or nothing."""
        now = time.monotonic()
        if self._output.size > WHOLE_OUTPUT:
            return f"The command put out more than {mebibytes(WHOLE_OUTPUT)}."
        if now - self._weighed >= MEMORY_SECONDS:
            self._weighed = now
            if self._box.memory(self._limits.memory) > self._limits.memory:
                return f"The command held more memory than {mebibytes(self._limits.memory)}."
        if self._stopped is not None and now - self._asked >= STOP_SECONDS:
            self._asked = now
            if self._stopped():
                return "The command was stopped."
        return None


def execution(attended: Attended, output: BoundedOutput, latency: float, limits: Limits) -> Execution:
    """Return what a command did, from how attending it ended."""
    status = attended.answer.get("status") if attended.answer else None
    status = status if isinstance(status, int) and not isinstance(status, bool) else None
    why = attended.why or _limit(attended, status, limits)
    code = status if status is None or status >= 0 else 128 - status  # as a shell says it
    return Execution(
        output=output.excerpt,
        size=output.size,
        digest=output.digest,
        exit_code=None if why else code,
        latency=latency,
        timed_out=attended.timed_out,
        left_running=bool(attended.answer and attended.answer.get("left")),
        error=why,
    )


def lost(why: str) -> Execution:
    """Return what is said of a command for a sandbox that is no more."""
    return Execution(b"", 0, hashlib.sha256().hexdigest(), None, 0.0, error=why)


def _limit(found: Attended, status: int | None, limits: Limits) -> str | None:
    if found.answer is not None and found.answer.get("limit") == "files":
        return f"The command made more than {limits.files} files."
    if status == -signal.SIGXCPU:
        return f"The command used more than {limits.cpu} seconds of processor time."
    if status == -signal.SIGXFSZ:
        return f"The command wrote a file larger than {mebibytes(limits.file)}."
    if status is None and found.answer is not None:
        return "The sandbox didn't say how the command ended."
    return None
