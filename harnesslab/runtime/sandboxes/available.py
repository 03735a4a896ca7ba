"""The sandboxes of this machine by name."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.running.ports import Sandboxes
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from harnesslab.runtime.sandboxes.docker import Docker


def sandboxes(image: str = "") -> Mapping[str, Sandboxes]:
    """Return every way to make sandboxes, those that can't be used here too: `unavailable` says why.

    `image` is what Docker's show, by digest.
    """
    return {"bubblewrap": Bubblewrap(), "docker": Docker(image)}
