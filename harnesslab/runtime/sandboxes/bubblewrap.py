"""Sandboxes of bubblewrap: Linux namespaces, no daemon, as root or as an ordinary user."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harnesslab.core.conditions.manifest import Condition, Known, Provenance, Unknown
from harnesslab.core.running.ports import Execution, Place, SandboxRefused
from harnesslab.runtime.sandboxes import layout
from harnesslab.runtime.sandboxes.alike import OneAtATime
from harnesslab.runtime.sandboxes.attending import Attended, attend
from harnesslab.runtime.sandboxes.box import Box
from harnesslab.runtime.sandboxes.child import BubblewrapChild
from harnesslab.runtime.sandboxes.commands import RunningCommand, environment, execution, lost, program
from harnesslab.runtime.sandboxes.inside import guard
from harnesslab.runtime.sandboxes.output import BoundedOutput
from harnesslab.runtime.sandboxes.pins import HeldPins, hold
from harnesslab.runtime.sandboxes.streams import pipe
from harnesslab.runtime.sandboxes.workspace import TarReader, stream

FILES_SECONDS = 120.0
"""How long reading or writing the work folder may take."""


class Bubblewrap:
    """Makes sandboxes on this machine."""

    def unavailable(self) -> str:
        """Say why no sandbox can be made here, or nothing; it tries one."""
        if missing := self._missing():
            return missing
        try:
            self.open(Place()).close()
        except SandboxRefused as error:
            return error.sentence
        return ""

    def open(self, place: Place) -> BubblewrapSandbox:
        """Open a sandbox for commands; raises `SandboxRefused`."""
        held = self._held(place)
        return BubblewrapSandbox(Box(place, held), place, held)

    def spawn(self, place: Place, program: Sequence[str]) -> BubblewrapChild:
        """Start one program in a sandbox of its own; raises `SandboxRefused`."""
        held = self._held(place)
        box = Box(place, held)
        try:
            return BubblewrapChild(box, place.limits, program, environment(place, held))
        except BaseException:
            box.close()
            raise

    def _held(self, place: Place) -> HeldPins:
        if missing := self._missing():
            raise SandboxRefused(missing)
        return hold(place, own_user=os.geteuid() == 0)

    def _missing(self) -> str:
        if sys.platform != "linux":
            return "bubblewrap sandboxes need Linux."
        if platform.machine() not in guard.MACHINES:
            return f"bubblewrap sandboxes need x86-64 or ARM64, not {platform.machine()}."
        if not layout.bubblewrap():
            return "bubblewrap is not installed (on Debian: apt-get install bubblewrap)."
        return ""


class BubblewrapSandbox(OneAtATime):
    """One sandbox; commands run one after the other."""

    def __init__(self, box: Box, place: Place, held: HeldPins) -> None:
        super().__init__(place, held.pins)
        self._box = box
        self._environ = environment(place, held)

    def conditions(self) -> Mapping[str, Condition]:
        """Return manifest conditions, `environment.*` and `hardware.cpu`."""
        ports = sorted(self._place.sockets)
        network = f"none but loopback ports {', '.join(map(str, ports))} of the worker" if ports else "none"
        machine = os.uname()
        return {
            "environment.image": Unknown("bubblewrap shows this machine's own programs, which have no digest"),
            "environment.pins": self._pinned,
            "environment.network": Known(network, Provenance.CONFIGURED),
            "environment.platform": Known(
                f"{machine.sysname} {machine.release} {machine.machine}, bubblewrap, {layout.WORK}", Provenance.PROBED
            ),
            "hardware.cpu": _processor(),
        }

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        environ: Mapping[str, str] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Execution:
        """Run a shell command, or a program with arguments, in the work folder."""
        with self._turn:
            if self._end is not None:
                return lost(self._end)
            began = time.monotonic()
            output = BoundedOutput(self._place.limits.output)
            watched = RunningCommand(self._box, self._place.limits, output, stopped)
            request = {"op": "run", "argv": program(command), "environ": {**self._environ, **(environ or {})}}
            try:
                found = self._attend(request, output.feed, timeout=timeout, check=watched.check)
            except SandboxRefused as error:
                found = Attended(why=error.sentence)
            self._note(found)
            return execution(found, output, time.monotonic() - began, self._place.limits)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the work folder by relative path, with fixed times."""
        # as an open file: messages are bounded, and JSON has no bytes
        source = os.memfd_create("files")
        try:
            with open(source, "wb", closefd=False) as target:
                target.write(stream(files, self._place.limits))
            os.lseek(source, 0, os.SEEK_SET)
            with self._turn:
                self._work({"op": "write"}, None, given=source)
        finally:
            os.close(source)

    def close(self) -> None:
        """End everything inside and remove it; may be called twice."""
        self._end = self._end or "The sandbox is closed."
        self._box.close()

    def _read(self, reader: TarReader) -> TarReader:
        with self._turn:
            self._work({"op": "read"}, reader)
        if not reader.ended:
            raise SandboxRefused("The sandbox didn't send its whole work folder.")
        return reader

    def _work(self, request: Mapping[str, object], reader: TarReader | None, *, given: int | None = None) -> None:
        if self._end is not None:
            raise SandboxRefused(self._end)
        excess: list[SandboxRefused] = []

        def feed(data: bytes) -> None:
            try:
                if reader is not None and not excess:
                    reader.feed(data)
            except SandboxRefused as error:
                excess.append(error)  # the rest is read and dropped, so that the sandbox stays usable

        found = self._attend(request, feed, timeout=FILES_SECONDS, check=lambda: None, given=given)
        self._note(found)
        if found.answer is None or found.why is not None:
            raise SandboxRefused(found.why or self._box.epitaph())
        if excess:
            raise excess[0]
        if refused := found.answer.get("refused"):
            raise SandboxRefused(str(refused)[:1000])

    def _attend(
        self,
        request: Mapping[str, object],
        feed: Callable[[bytes], None],
        *,
        timeout: float,
        check: Callable[[], str | None],
        given: int | None = None,
    ) -> Attended:
        """Send a request with the streams it needs and attend it to its end."""
        if given is not None:
            name = self._box.ask(request, [given])
            return attend(self._box, name, None, feed, timeout=timeout, check=check)
        reading, writing = pipe(self._box.user)
        try:
            try:
                if request["op"] == "run":
                    with Path(os.devnull).open("rb") as nothing:
                        name = self._box.ask(request, [nothing.fileno(), writing, writing])
                else:
                    name = self._box.ask(request, [writing])
            finally:
                os.close(writing)  # while this side holds it too, the reading end never sees the end
            return attend(self._box, name, reading, feed, timeout=timeout, check=check)
        finally:
            os.close(reading)

    def _note(self, found: Attended) -> None:
        """Remember that the sandbox is lost."""
        if found.answer is None:
            self._end = self._end or found.why or self._box.epitaph()
            self._box.close()


def _processor() -> Condition:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return Known(line.split(":", 1)[1].strip(), Provenance.PROBED)
    return Unknown("the kernel doesn't name the processor")
