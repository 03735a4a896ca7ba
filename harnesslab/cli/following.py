"""Waiting for what workers do, with a line for each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import sleep

import click
from django.conf import settings

from harnesslab.cli.server.serve import answers
from harnesslab.cli.terminal import printable
from harnesslab.config import ADDRESS

POLL_S = 0.5


def follow(look: Callable[[], tuple[Mapping[str, str], bool]], *, quiet: bool) -> None:
    """Print what changed each time `look` says (what is so, by name; whether it is over), until it is over."""
    _ask_for_server()
    said: dict[str, str] = {}
    while True:
        now, over = look()
        for name, state in _changed(said, now):
            said[name] = state
            if not quiet and state:
                click.echo(printable(f"{name}: {state}"))
        if over:
            return
        sleep(POLL_S)


def _changed(said: Mapping[str, str], now: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return [(name, state) for name, state in now.items() if said.get(name) != state]


def _ask_for_server() -> None:
    """Say it where no server answers on this home: without one, nothing is run."""
    home: Path = settings.CONFIG.home
    place = home / ADDRESS
    if not place.is_file() or not answers(place.read_text().strip()):
        click.echo(f"no server answers for {home}: workers must run, such as those of `harnesslab serve`", err=True)
