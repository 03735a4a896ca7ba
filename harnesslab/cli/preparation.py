"""What has to be there before the server starts: tables, static files, an admin."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from harnesslab.config import Config


def migrate() -> bool:
    """Bring the tables up to date; returns whether anything had to be done."""
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return False
    call_command("migrate", interactive=False, verbosity=0)
    return True


def collect_static() -> bool:
    """Collect, hash and compress the static files, unless none of them changed; returns whether it did."""
    root = Path(settings.STATIC_ROOT)
    stamp, digest = root / ".collected", _static_digest()
    if stamp.exists() and stamp.read_text() == digest:
        return False
    shutil.rmtree(root, ignore_errors=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(digest)
    return True


def empty_broker(config: Config) -> None:
    """Forget old messages of the embedded broker: the rows say what waits, and the sweeper rings for it."""
    if not config.redis_url:
        shutil.rmtree(config.home / "broker" / "queue", ignore_errors=True)
        (config.home / "broker" / "queue").mkdir(parents=True)


def _static_digest() -> str:
    found = hashlib.sha256()
    for line in _static_facts():
        found.update(line.encode() + b"\n")
    return found.hexdigest()


def _static_facts() -> Iterator[str]:
    yield sys.version
    for package in ("django", "whitenoise", "plotly", "django-htmx"):
        yield f"{package} {importlib.metadata.version(package)}"
    for folder in settings.STATICFILES_DIRS:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                yield f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}"
