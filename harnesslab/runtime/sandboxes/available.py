"""The sandboxes of this machine by name."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.ports import Sandboxes
from workers.sandboxes.bubblewrap import Bubblewrap
from workers.sandboxes.docker import Docker


def sandboxes(image: str = "") -> Mapping[str, Sandboxes]:
    """Return every way to make sandboxes, those that can't be used here too: `unavailable` says why.

    `image` is what Docker's show, by digest.
    """
    return {"bubblewrap": Bubblewrap(), "docker": Docker(image)}
