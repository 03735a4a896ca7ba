"""`harnesslab recount`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from harnesslab.actions.rollouts import recount as actions
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.queries.rollouts.counts import behind


@click.command("recount")
@click.argument("rollouts", nargs=-1, type=click.IntRange(1))
@click.option("--all", "everything", is_flag=True, help="All rollouts that an older version of the counter counted.")
@click.pass_context
def recount(context: click.Context, rollouts: tuple[int, ...], *, everything: bool) -> None:
    """Count stored traces anew, and say which numbers are others now: ROLLOUTS by id, or --all.

    It can be stopped at any time and goes on with what is left; workers may run meanwhile.
    """
    if everything and rollouts:
        raise click.UsageError("name rollouts or give --all, not both")
    ready_tables()
    if not everything and not rollouts:
        left = behind()
        click.echo(f"{left:,} rollout{'' if left == 1 else 's'} counted by an older version than {VERSION}; see --all")
        return
    failed = _said(actions.recount_all() if everything else actions.recount(rollouts))
    context.exit(1 if failed else 0)


def _said(results: Iterable[actions.Recounted]) -> int:
    """Print each result that says something, and what all came to; returns how many could not be counted."""
    counted = changed = failed = 0
    for each in results:
        if each.error:
            failed += 1
            click.echo(printable(f"rollout {each.rollout}: not counted: {each.error}"), err=True)
            continue
        counted += 1
        if each.changes:
            changed += 1
            said = ", ".join(f"{one.name} {_value(one.before)} → {_value(one.after)}" for one in each.changes)
            click.echo(printable(f"rollout {each.rollout}: {said}"))
    rest = f", {failed:,} could not be counted" if failed else ""
    click.echo(f"{counted:,} counted by version {VERSION}, {changed:,} with other numbers{rest}")
    return failed


def _value(value: JSON) -> str:
    """Write a number; unknown is not zero. What has many parts is only said to be another one."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) if isinstance(value, bool) else "…"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
