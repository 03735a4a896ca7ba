"""Attending a request in a sandbox until it ends: reading what it puts out, and ending it where it must not go on."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harnesslab.core.running.ports import SandboxRefused
from harnesslab.runtime.sandboxes.box import Box

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
    with box.attended():
        return _attend(box, name, reading, feed, timeout, check)


def _attend(
    box: Box,
    name: str,
    reading: int | None,
    feed: Callable[[bytes], object],
    timeout: float,
    check: Callable[[], str | None],
) -> Attended:
    found = Attended()
    deadline, patience, looked = time.monotonic() + timeout, float("inf"), time.monotonic()
    poll = select.poll()
    poll.register(box.channel, select.POLLIN)
    if reading is not None:
        poll.register(reading, select.POLLIN)
    more = reading
    while found.answer is None or more is not None:
        ready = {fd for fd, _ in poll.poll(TICK_SECONDS * 1000)}
        now = time.monotonic()
        if more is not None and more in ready and not _read(more, feed):
            poll.unregister(more)
            more = None
        if box.channel.fileno() in ready:
            found.answer = box.answer()
            if found.answer is None or found.answer.get("id") != name:
                return _lose(box, found)
            poll.unregister(box.channel)
            patience = min(patience, now + GRACE_SECONDS)  # nobody is left to keep the output open
        if now > patience:
            return _lose(box, found)
        if found.why is None and found.answer is None and (now > deadline or now - looked > TICK_SECONDS):
            looked = now
            if _must_end(box, found, check, timeout if now > deadline else None):
                patience = now + GRACE_SECONDS
    return found


def _read(reading: int, feed: Callable[[bytes], object]) -> bool:
    """Pass on the bytes that have come, and say whether more may come."""
    data = os.read(reading, _READ_BYTES)
    feed(data)
    return bool(data)


def _must_end(box: Box, found: Attended, check: Callable[[], str | None], passed: float | None) -> bool:
    """End a request whose time is over, or that `check` has something against."""
    found.timed_out = passed is not None
    found.why = check() if passed is None else f"It was ended after {passed:g} seconds."
    if found.why is not None:
        with contextlib.suppress(SandboxRefused):  # lost, as the channel will say
            box.ask({"op": "kill"})
    return found.why is not None


def _lose(box: Box, found: Attended) -> Attended:
    found.answer = None
    if found.why is None:
        found.why = box.epitaph()
    box.close()
    return found
