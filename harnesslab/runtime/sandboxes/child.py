"""A program in a sandbox of its own, with its standard streams in the worker's hands."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from harnesslab.core.running.ports import Limits
from harnesslab.runtime.sandboxes.attending import attend
from harnesslab.runtime.sandboxes.box import Box
from harnesslab.runtime.sandboxes.sizes import mebibytes
from harnesslab.runtime.sandboxes.streams import pipe

COMPLAINT_BYTES = 8192
_FOREVER = 10 * 365 * 86400.0


class BubblewrapChild:
    """A program that runs until it ends or is killed; its memory is watched by a thread."""

    def __init__(self, box: Box, limits: Limits, program: Sequence[str], environ: Mapping[str, str]) -> None:
        self._box = box
        self._limits = limits
        self._complaints = b""
        self._why: str | None = None
        self._code: int | None = None
        self._killed = False
        self._ended = threading.Event()
        theirs, mine = pipe(box.user)
        out, theirs_out = pipe(box.user)
        self._errors, theirs_errors = pipe(box.user)
        self.stdin: BinaryIO = os.fdopen(mine, "wb", buffering=0)
        self.stdout: BinaryIO = os.fdopen(out, "rb")
        given = (theirs, theirs_out, theirs_errors)
        try:
            name = box.ask({"op": "run", "argv": list(program), "environ": dict(environ)}, given)
        finally:
            for fd in given:
                os.close(fd)
        threading.Thread(target=self._attend, args=(name,), name="sandboxed program", daemon=True).start()

    def kill(self) -> None:
        """End it and all it started; may be called twice."""
        self._killed = True  # first, else the thread that attends takes the end for a loss and says so
        self._box.close()
        self._ended.wait(10)
        for stream in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                stream.close()

    def wait(self, timeout: float) -> int | None:
        """Return its exit code, or None where it still runs after `timeout` seconds."""
        return self._code if self._ended.wait(timeout) else None

    def complaints(self) -> str:
        """Return the last 8 KiB of its standard error, and why it was ended where a limit or a loss did it."""
        text = self._complaints.decode(errors="replace")
        return f"{text}\n{self._why}".strip() if self._why and not self._killed else text

    def _attend(self, name: str) -> None:
        try:
            found = attend(self._box, name, self._errors, self._hear, timeout=_FOREVER, check=self._excess)
            self._why = found.why
            status = found.answer.get("status") if found.answer else None
            self._code = status if isinstance(status, int) and found.why is None else -9
        except Exception as error:  # noqa: BLE001  # kill() closes what this thread reads
            self._code, self._why = -9, str(error)
        finally:
            self._box.close()
            os.close(self._errors)
            self._ended.set()

    def _hear(self, data: bytes) -> None:
        self._complaints = (self._complaints + data)[-COMPLAINT_BYTES:]

    def _excess(self) -> str | None:
        if self._killed:
            return "It was ended."
        if self._box.memory(self._limits.memory) > self._limits.memory:
            return f"It held more memory than {mebibytes(self._limits.memory)}."
        return None
