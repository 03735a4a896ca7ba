"""The `harnesslab` command."""

from __future__ import annotations

import os
import sys

import click
from django.db import OperationalError

from harnesslab import __version__
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import HarnessLabError


class Commands(click.Group):
    """Prints an expected error as one line and exits with 1."""

    def invoke(self, context: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(context)
        except HarnessLabError as error:
            sentence = error.sentence
        except OperationalError as error:  # away, locked for too long, read-only, or the disk is full
            sentence = f"the database: {str(error).strip().splitlines()[0]}"
        click.echo(printable(f"error: {sentence}"), err=True)
        return context.exit(1)


@click.group(cls=Commands)
@click.version_option(__version__, prog_name="harnesslab")
def cli() -> None:
    """HarnessLab: what ran, what happened, where two runs part and why."""


def main() -> None:
    """Start Django and run the command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harnesslab.settings")
    sys.setrecursionlimit(3000)
    import django

    try:
        django.setup()
    except HarnessLabError as error:
        sys.exit(printable(f"error: {error.sentence}"))
    from harnesslab.cli import register

    register(cli)
    cli(prog_name="harnesslab")


if __name__ == "__main__":
    main()
