"""The live suite is collected only where script/test-sglang says which servers it may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.runtime.engines.hosting import Host, hosted

collect_ignore = [] if "HARNESSLAB_TEST_SGLANG" in os.environ else ["test_sglang_live.py"]


@pytest.fixture(scope="session")
def engine_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder for an engine host."""
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="session")
def host(engine_home: Path) -> Iterator[Host]:
    """An engine host of this test run's own."""
    with hosted(engine_home) as running:
        yield running
