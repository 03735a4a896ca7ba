"""Sandboxes of this machine, opened and closed by each test.

This folder needs nothing else of the tests, so that it can be copied and run as another user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harnesslab.core.running.ports import Place
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap, BubblewrapSandbox

Opener = Callable[..., BubblewrapSandbox]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Open sandboxes that are closed when the test ends."""
    found: list[BubblewrapSandbox] = []

    def open_one(place: Place | None = None) -> BubblewrapSandbox:
        found.append(Bubblewrap().open(place or Place()))
        return found[-1]

    yield open_one
    for sandbox in found:
        sandbox.close()


@pytest.fixture
def sandbox(opened: Opener) -> BubblewrapSandbox:
    """A sandbox with the usual limits."""
    return opened()
