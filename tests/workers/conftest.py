"""Fixtures of the workers' tests: real worker processes over both brokers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.rig import Program

BROKERS = ["redis"] if os.environ.get("REDIS_URL") else ["folder"]
"""The folder carries the stage on SQLite, Redis the one with services, and a test sees to that."""
Start = Callable[[], "Program"]


def database_url() -> str:
    """Return the address of the test database, for another process."""
    from django.db import connection

    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{facts['NAME']}"
    return f"postgresql://{facts['USER']}:{facts['PASSWORD']}@{facts['HOST']}:{facts['PORT']}/{facts['NAME']}"


@pytest.fixture
def worker_home(tmp_path: Path) -> Path:
    """The home folder of the workers that a test starts."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture(params=BROKERS)
def start(
    request: pytest.FixtureRequest, tmp_path: Path, worker_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Start workers over a broker that this process wakes too."""
    from django.conf import settings

    from harnesslab import queue
    from harnesslab.config import Config
    from tests.rig import worker

    changes = {"DATABASE_URL": database_url()}
    if request.param == "redis":
        changes["REDIS_URL"] = settings.CONFIG.redis_url
    config = Config.read({"HARNESSLAB_HOME": str(worker_home), **changes})
    monkeypatch.setattr(queue, "app", queue.application(config))
    with ExitStack() as stack:

        def another() -> Program:
            program = worker(worker_home, tmp_path / f"worker-{secrets.token_hex(4)}.log", **changes)
            stack.callback(program.kill)  # stopping politely takes seconds, and has tests of its own
            return program

        yield another
