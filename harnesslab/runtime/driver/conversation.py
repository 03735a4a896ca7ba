"""The conversation with a loop harness: one line of JSON a message, bounded, and never trusted."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping

from harnesslab.core.canonical import JSON, MAX_DEPTH, nested_within, parse
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.ports import Child

LONGEST_LINE = 32 * 1024 * 1024
MOST_BYTES = 512 * 1024 * 1024
"""Bytes of all messages of one harness, which sends its whole transcript at each step."""
DEEPEST = MAX_DEPTH - 40
MOST_UNREAD = 64
"""Answers that wait for a harness to read them."""
ENDING_S = 10.0
POLL_S = 0.5


class HarnessFailed(HarnessLabError):
    """The harness broke the protocol, crashed, or ended without a word."""


class HarnessSilent(HarnessLabError):
    """The harness said nothing until the time was up, or until the rollout was stopped."""


class Conversation:
    """Reads messages from a harness and answers them."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=64)
        self._reader = threading.Thread(target=self._read, name="harness output", daemon=True)
        self._reader.start()
        self._bytes = 0
        # a harness that reads nothing holds up a thread that writes to its pipe, never the one that has the deadlines
        self._answers: queue.Queue[bytes | None] = queue.Queue(maxsize=MOST_UNREAD)
        self._writer = threading.Thread(target=self._write, name="harness input", daemon=True)
        self._writer.start()

    def send(self, message: Mapping[str, JSON], deadline: float, stopped: Callable[[], bool]) -> None:
        """Send a message; raises `HarnessSilent` where none is read. A harness that is gone shows at the next
        `receive`."""
        line = _line(message)
        while True:
            left = deadline - time.monotonic()
            try:
                return self._answers.put(line, timeout=max(0.0, min(POLL_S, left)))
            except queue.Full:
                if stopped() or left <= 0:
                    raise HarnessSilent("the harness read no answer until its time was up") from None

    def receive(self, deadline: float, stopped: Callable[[], bool]) -> Mapping[str, JSON]:
        """Return the next message; raises `HarnessFailed` or `HarnessSilent`. `deadline` is monotonic."""
        line = self._next(deadline, stopped)
        if line is None:
            raise HarnessFailed(self._ending())
        if len(line) >= LONGEST_LINE:
            raise HarnessFailed(f"a message longer than {LONGEST_LINE // 2**20} MiB")
        self._bytes += len(line)
        if self._bytes > MOST_BYTES:
            raise HarnessFailed(f"messages of more than {MOST_BYTES // 2**20} MiB")
        try:
            message = parse(line)
        except ValueError:
            raise HarnessFailed("a line that is no JSON", where=_start(line), hint="print to standard error") from None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise HarnessFailed("a message without a type", where=_start(line))
        if not nested_within(message, DEEPEST):
            raise HarnessFailed(f"a message nested deeper than {DEEPEST} levels", where=_start(line))
        return message

    def close(self) -> None:
        """End the harness and all it started."""
        self._child.kill()
        # it may wait to put a line into a full queue, and sees the end of the stream only once that is taken
        while self._reader.is_alive():
            try:
                self._lines.get(timeout=0.1)
            except queue.Empty:
                continue
        deadline = time.monotonic() + ENDING_S
        while self._writer.is_alive() and time.monotonic() < deadline:
            with contextlib.suppress(queue.Full):
                self._answers.put_nowait(None)
            self._writer.join(0.1)

    def _next(self, deadline: float, stopped: Callable[[], bool]) -> bytes | None:
        while True:
            left = deadline - time.monotonic()
            try:
                return self._lines.get(timeout=max(0.0, min(POLL_S, left)))
            except queue.Empty:
                if stopped() or left <= 0:
                    raise HarnessSilent("the harness was waited for until its time was up") from None

    def _ending(self) -> str:
        code = self._child.wait(5.0)
        said = self._child.complaints().strip()
        how = "ended its output and still runs" if code is None else f"ended with exit code {code}"
        last = said.splitlines()[-1] if said else "nothing on standard error"
        return f"the harness {how} before the episode's end: {last}"

    def _read(self) -> None:
        try:
            while line := self._child.stdout.readline(LONGEST_LINE):
                self._lines.put(line)
        except (OSError, ValueError):
            pass  # the stream was closed as the harness was ended
        finally:
            self._lines.put(None)

    def _write(self) -> None:
        while (line := self._answers.get()) is not None:
            with contextlib.suppress(OSError, ValueError):  # it is gone; what is left is dropped
                self._child.stdin.write(line)
                self._child.stdin.flush()


def _line(message: Mapping[str, JSON]) -> bytes:
    return json.dumps(message, ensure_ascii=True).encode() + b"\n"


def _start(line: bytes) -> str:
    return line[:80].decode(errors="replace")
