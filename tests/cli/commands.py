"""Running the command in this process, as its tests do."""

from __future__ import annotations

from click.testing import CliRunner, Result

from harnesslab.cli import register
from harnesslab.cli.main import cli

register(cli)


def run(*arguments: object) -> Result:
    """Run `harnesslab ARGUMENTS…` and return what it printed and how it ended."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])
