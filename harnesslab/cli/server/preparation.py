"""`harnesslab prepare`: what has to be there before a server starts: tables, static files, an admin."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from django.conf import settings
from django.core.management import call_command

from harnesslab.actions.accounts.first_admin import FirstAdmin, ensure_first_admin
from harnesslab.actions.demonstration import load_demonstration, order_live
from harnesslab.actions.engines.registration import ensure_embedded
from harnesslab.actions.tables import migrate
from harnesslab.core.errors import HarnessLabError


@click.command("prepare")
@click.option("--demo", is_flag=True, help="Load the demonstration data where there is no rollout yet.")
def prepare(*, demo: bool) -> None:
    """Bring tables and static files up to date and make the first admin; `serve` does it by itself."""
    admin = prepared(click.echo, demo=demo)
    click.echo(login_line(admin))


def prepared(say: Callable[[str], None], *, demo: bool) -> FirstAdmin:
    """Do all of it, saying what was done."""
    if migrate():
        say("the tables are up to date")
    if collect_static():
        say("static files collected")
    if ensure_embedded():
        say("the embedded engines are registered")
    if demo and (count := load_demonstration()):
        say(f"{count} rollouts of the demonstration were run and stored")
        _order_live(say)
    return ensure_first_admin(Path(settings.CONFIG.home))


def _order_live(say: Callable[[str], None]) -> None:
    """Queue the demonstration's live rollouts; a machine that can't run them still serves."""
    try:
        waiting = order_live()
    except HarnessLabError as error:
        say(f"no live rollouts are queued: {error.sentence}")
        return
    if waiting:
        say(f"{waiting} more are queued: a small language model at work; see the page Queue")


def login_line(admin: FirstAdmin) -> str:
    """Say how to log in."""
    if admin.password:
        return f"log in as {admin.name} with the password {admin.password}"
    return f"log in as {admin.name} with the password that you chose" if admin.name else "log in with your own name"


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
