"""The folders of fixtures: one a version, each with bundles, a home and a PostgreSQL dump, as `make.py` wrote them."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

from backports import zstd

from tests.rig import environ

HERE = Path(__file__).parent
VERSIONS = sorted(place for place in HERE.iterdir() if (place / "bundles").is_dir())
BUNDLES = [bundle for place in VERSIONS for bundle in sorted((place / "bundles").glob("*.zip"))]
OPEN = "import django, sys; django.setup(); from tests.upgrade.opened import main; main(sys.argv[1])"
PLACES = {"sqlite": "/tmp/harnesslab-home", "postgresql": "/tmp/harnesslab-filled-pg"}
"""Where the homes were when they were filled, by the database beside them."""


def name_of(place: Path) -> str:
    """Name a fixture in a test's id."""
    return "-".join(place.relative_to(HERE).parts).replace("-bundles", "")


def unpack(archive: Path, folder: Path) -> Path:
    """Write a home out, and return it."""
    with tarfile.open(fileobj=BytesIO(zstd.decompress(archive.read_bytes()))) as members:
        members.extractall(folder)
    return folder


def opened(home: Path, place: str, **changes: str) -> Any:
    """Let a process of its own open a home that was filled at `place`, and return what it came to."""
    command = [sys.executable, "-c", OPEN, place]
    done = subprocess.run(command, env=environ(home, **changes), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout)
