"""One running bubblewrap process and the channel to the server inside."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.running.ports import Place, SandboxRefused
from harnesslab.runtime.sandboxes import layout, spawner, watcher
from harnesslab.runtime.sandboxes.inside import frames
from harnesslab.runtime.sandboxes.pins import HeldPins
from harnesslab.runtime.sandboxes.users import SandboxUser

OPENING_SECONDS = 30.0
CLOSING_SECONDS = 10.0
ANSWER_BYTES = 64 * 1024
_COMPLAINT_BYTES = 8192


class Box:
    """A sandbox without words for what is done in it; `open` raises `SandboxRefused`."""

    def __init__(self, place: Place, held: HeldPins) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._attended = 0
        self._user = SandboxUser() if os.geteuid() == 0 else None
        try:
            setup = self._start(place, held)
        except BaseException:
            if self._user is not None:
                self._user.give_back()
            raise
        try:
            self._greet(setup)
            self._own_memory = watcher.resident(self._process.pid, 0)
        except BaseException:
            self.close()
            raise

    def _start(self, place: Place, held: HeldPins) -> Mapping[str, object]:
        self.channel, theirs = socket.socketpair()
        # Neither end blocks: last words are taken as far as they came, and who complains without end loses words, not
        # the worker's time.
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._complaints, self._heard = reading, b""
        fds: Sequence[int] = ()
        try:
            number = self._user.id if self._user else None
            made = layout.launch(place, held, user=number)
            fds = made.fds
            self._process: subprocess.Popen[bytes] = spawner.start(
                layout.bubblewrap(), made.arguments, made.command, [*fds, theirs.fileno()], writing
            )
            return made.setup
        except BaseException as error:
            self.channel.close()
            os.close(reading)
            if isinstance(error, OSError):
                raise SandboxRefused(f"bubblewrap can't be started: {error.strerror}.") from error
            raise
        finally:
            frames.close([*fds, writing])
            theirs.close()

    def _greet(self, setup: Mapping[str, object]) -> None:
        self.channel.settimeout(OPENING_SECONDS)
        with contextlib.suppress(OSError):  # it ended already, as the answer shows
            frames.send(self.channel, setup)
        if self.answer() != {"ready": True}:
            raise SandboxRefused(f"No sandbox can be made here: {self.last_words() or 'bubblewrap ended'}")

    @property
    def pid(self) -> int:
        """The bubblewrap process, seen from the machine."""
        return self._process.pid

    @property
    def user(self) -> int | None:
        """The user id of commands on the machine, where it isn't the worker's."""
        return self._user.id if self._user else None

    def memory(self, limit: int) -> int:
        """Return the bytes of memory held inside, without the sandbox's own."""
        return watcher.resident(self.pid, limit + self._own_memory) - self._own_memory

    def ask(self, request: Mapping[str, object], fds: Sequence[int] = ()) -> str:
        """Send a request and return the id that its answer bears; raises `SandboxRefused` where it is lost."""
        name = secrets.token_hex(8)
        try:
            frames.send(self.channel, {**request, "id": name}, fds)
        except OSError:
            raise SandboxRefused(self.epitaph()) from None
        return name

    def answer(self) -> dict[str, Any] | None:
        """Return the next message, or None where the sandbox is lost."""
        try:
            got = frames.receive(self.channel, ANSWER_BYTES)
        except (OSError, frames.BrokenFrame):
            return None
        if got is None:
            return None
        frames.close(got[1])  # none was asked for; kept ones would fill the worker's table of open files
        return got[0]

    def epitaph(self) -> str:
        """Say in one sentence that it is lost, with its last words."""
        words = self.last_words()
        return f"The sandbox was lost: {words}" if words else "The sandbox was lost: it was ended from outside."

    def last_words(self) -> str:
        """Return the last line that bubblewrap or the server inside complained with."""
        with self._lock, contextlib.suppress(OSError):  # nothing to read yet
            if self._complaints >= 0:
                self._heard = (self._heard + os.read(self._complaints, 65536))[-_COMPLAINT_BYTES:]
        lines = self._heard.decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[:500] if lines else ""

    def close(self) -> None:
        """End everything inside; may be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.last_words()
        self._process.kill()  # with it goes init, with init all that is in its namespace
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSING_SECONDS)
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)  # whoever attends a request sees the end
        if self._user is not None:
            self._user.give_back()
        self._let_go()

    @contextlib.contextmanager
    def attended(self) -> Iterator[None]:
        """Keep the channel's number while a request is attended, also where another thread closes the sandbox."""
        with self._lock:
            self._attended += 1
        try:
            yield
        finally:
            with self._lock:
                self._attended -= 1
            self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            if self._closed and not self._attended and self._complaints >= 0:
                self.channel.close()
                os.close(self._complaints)
                self._complaints = -1
