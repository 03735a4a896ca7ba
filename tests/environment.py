"""Loaded before any other plugin: a home folder of this run's own, and Django only where a test could need it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

PURE = (
    "tests/core",
    "tests/formats",
    "tests/figures",
    "tests/architecture",
    "tests/runtime/engines",
    "tests/runtime/sandboxes",
    "tests/runtime/driver",
)
"""Folders whose tests run without Django."""


def _only_pure(arguments: list[str]) -> bool:
    paths = [argument.removeprefix("./") for argument in arguments if Path(argument.split("::")[0]).exists()]
    return bool(paths) and all(path.startswith(PURE) for path in paths)


def _own_home() -> str:
    parent = os.environ.get("HARNESSLAB_TEST_HOME")
    if parent is None:
        parent = tempfile.mkdtemp(prefix="harnesslab-test-")
        os.environ["HARNESSLAB_TEST_HOME"] = parent  # the processes of xdist share it
        atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return str(Path(parent) / os.environ.get("PYTEST_XDIST_WORKER", "main"))


home = _own_home()
(Path(home) / "static").mkdir(parents=True, exist_ok=True)  # whitenoise warns of its absence
os.environ["HARNESSLAB_HOME"] = home
os.environ.pop("HARNESSLAB_PUBLIC_READ", None)
if not _only_pure(sys.argv[1:]):
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harnesslab.settings")
