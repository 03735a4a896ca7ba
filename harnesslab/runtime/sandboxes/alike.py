"""What sandboxes of both kinds do alike: one command at a time, and a work folder that is read whole."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from harnesslab.core.conditions.manifest import Known, Provenance
from harnesslab.core.running.ports import Pin, Place
from harnesslab.runtime.sandboxes.workspace import TarReader


class OneAtATime(ABC):
    """A sandbox in which commands and readings of the work folder take turns."""

    def __init__(self, place: Place, pins: Sequence[Pin]) -> None:
        self.pins = pins
        self._place = place
        self._turn = threading.Lock()
        self._end: str | None = None
        """Why nothing runs in it any more."""

    def files(self) -> Mapping[str, bytes]:
        """Read the work folder's regular files by relative path; raises `SandboxRefused` beyond the limits."""
        contents: dict[str, bytes] = {}
        self._read(TarReader(self._place.limits, contents.__setitem__))
        return contents

    def state(self) -> str:
        """Return a digest of the work folder: names, kinds, modes and contents, never times or inodes."""
        return self._read(TarReader(self._place.limits)).digest

    @property
    def _pinned(self) -> Known:
        """The condition `environment.pins`: what is held, and what is missing."""
        held = {pin.name: {"missing": pin.missing} if pin.missing else pin.value for pin in self.pins}
        return Known(held, Provenance.CONFIGURED)

    @abstractmethod
    def _read(self, reader: TarReader) -> TarReader:
        """Feed the whole work folder to a reader and return it; raises `SandboxRefused`."""
