"""Attending a request in a sandbox until it ends: reading what it puts out, and ending it where it must not go on."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workers.sandboxes.box import Box

TICK_SECONDS = 0.05
GRACE_SECONDS = 8.0
"""How long the server inside may take to end a command; then the sandbox is ended."""
_READ_BYTES = 1 << 18


@dataclass(slots=True)
class Attended:
    """How a request ended."""

    answer: dict[str, Any] | None = None
    """What the server inside said; None where the sandbox was lost."""
    why: str | None = None
    """Why it was ended from outside, in one sentence."""
    timed_out: bool = False


def attend(
    box: Box,
    name: str,
    reading: int | None,
    feed: Callable[[bytes], object],
    *,
    timeout: float,
    check: Callable[[], str | None],
) -> Attended:
    """Wait for the answer `name` and the end of the open file `reading`.

    `check` is asked about twenty times a second and says why the request must end. A sandbox that is lost, or that
    doesn't end what it was told to end, is closed.
    """
    found = Attended()
    now = time.monotonic()
    deadline, patience = now + timeout, float("inf")
    poll = select.poll()
    poll.register(box.channel, select.POLLIN)
    if reading is not None:
        poll.register(reading, select.POLLIN)
    looked, more = now, reading is not None
    while found.answer is None or more:
        ready = {fd for fd, _ in poll.poll(TICK_SECONDS * 1000)}
        now = time.monotonic()
        if reading in ready and reading is not None and more:
            data = os.read(reading, _READ_BYTES)
            feed(data)
            if not data:
                poll.unregister(reading)
                more = False
        if box.channel.fileno() in ready:
            found.answer = box.answer()
            if not _answers(found.answer, name):
                return _lose(box, found)
            poll.unregister(box.channel)
            patience = min(patience, now + GRACE_SECONDS)  # nobody is left to keep the output open
        if now > patience:
            return _lose(box, found)
        if found.why is None and found.answer is None and (now > deadline or now - looked > TICK_SECONDS):
            looked = now
            found.timed_out = now > deadline
            found.why = f"It was ended after {timeout:g} seconds." if found.timed_out else check()
            if found.why is not None:
                box.ask({"op": "kill"})
                patience = now + GRACE_SECONDS
    return found


def _answers(answer: dict[str, Any] | None, name: str) -> bool:
    return answer is not None and answer.get("id") == name


def _lose(box: Box, found: Attended) -> Attended:
    found.answer = None
    if found.why is None:
        found.why = box.epitaph()
    box.close()
    return found
