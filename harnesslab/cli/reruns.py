"""`harnesslab rerun`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from harnesslab.actions.reruns import lifecycle as actions
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.options import options_of, read
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.running.rerun import RerunPlan
from harnesslab.queries.reruns.listing import RerunView, rerun_view
from harnesslab.queries.reruns.previews import preview
from harnesslab.requests.reruns import RerunRequest

POLL_S = 0.5
OF_EVERY_MODE = "Steps count from 0 here, as in JSON; pages count them from 1."


class NothingRan(HarnessLabError):
    """A rerun ended without one attempt that counts."""


@click.command("rerun", epilog=OF_EVERY_MODE)
@click.argument("rollout", type=click.IntRange(1))
@options_of(RerunRequest, switches=None)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="BOUNDARY=recorded|live|fail",
    help="In mode hybrid: where a boundary's answers come from; may be repeated.",
)
@click.option("--preview", "only_preview", is_flag=True, help="Say what it would cost, and ask for nothing.")
@click.option("--key", default="", help="Idempotency key: the same key gives the rerun that is already there.")
@click.option("--wait", is_flag=True, help="Print progress until it has ended, then what it found.")
@click.option("--json", "as_json", is_flag=True, help="Print the rerun as JSON.")
def rerun(rollout: int, key: str, *, only_preview: bool, wait: bool, as_json: bool, **stated: Any) -> None:
    """Execute a stored rollout again. With --wait the exit code is 1 only where it could not run: an attempt that goes
    another way than the rollout is a finding, no failure."""
    ready_tables()
    plan = _plan(**stated)
    if only_preview:
        found = preview(rollout, plan)
        click.echo(found.model_dump_json(indent=2) if as_json else printable(found.refused or found.sentence))
        return
    asked = actions.request(rollout, plan, user=None, key=key[:80])
    view = _waited(asked.pk, quiet=as_json) if wait else rerun_view(asked.pk)
    if as_json:
        click.echo(view.model_dump_json(indent=2))
    elif wait:
        click.echo(printable(view.sentence))
        if view.proof:
            click.echo(view.proof)
    else:
        click.echo(f"rerun {view.id}: {len(view.attempts)} attempt{'s' * (len(view.attempts) != 1)} queued")
    if wait and not any(row.rollout is not None and row.same is not None for row in view.attempts):
        raise NothingRan(f"rerun {view.id} could not run: {view.attempts[0].status}")


def _plan(switches: Sequence[str], **stated: Any) -> RerunPlan:
    """Return the plan that the options state; raises `InvalidRequest` naming those that are wrong."""
    torn = next((text for text in switches if "=" not in text), None)
    if torn is not None:
        raise InvalidValue(f"no switch: {torn!r}", where="--switch", hint="BOUNDARY=live, recorded or fail")
    given = {text.rpartition("=")[0]: text.rpartition("=")[2] for text in switches}
    return read(RerunRequest, {**stated, "switches": given or None}).to_plan()


def _waited(rerun_id: int, *, quiet: bool) -> RerunView:
    """Follow a rerun to its end, printing each attempt's progress as it changes."""
    said: dict[int, str] = {}
    while True:
        view = rerun_view(rerun_id)
        for row in view.attempts:
            now = row.status if row.job is None or row.job.ended else f"{row.job.state}: {row.job.message}".strip(": ")
            if said.get(row.attempt) != now and not quiet:
                click.echo(printable(f"attempt {row.attempt}: {now}"))
            said[row.attempt] = now
        if view.ended:
            return view
        time.sleep(POLL_S)
