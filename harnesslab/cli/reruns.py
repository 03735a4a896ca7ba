"""`harnesslab rerun`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from harnesslab.actions.reruns import lifecycle as actions
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.running.recipe import SAME
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.queries.reruns.listing import RerunView, rerun_view
from harnesslab.queries.reruns.previews import preview

POLL_S = 0.5
OF_EVERY_MODE = "Steps count from 0 here, as in JSON; pages count them from 1."


class NothingRan(HarnessLabError):
    """A rerun ended without one attempt that counts."""


@click.command("rerun", epilog=OF_EVERY_MODE)
@click.argument("rollout", type=click.IntRange(1))
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), default=Mode.LIVE.value, show_default=True)
@click.option("--attempts", type=int, default=1, show_default=True, help="How many; each makes a rollout.")
@click.option("--from-step", type=int, help="Fork: the first step that is not served from the record, from 0.")
@click.option("--seed", default=SAME, show_default=True, help="same as recorded, drawn for each attempt, or a number.")
@click.option("--temperature", type=float, help="Another temperature.")
@click.option("--max-tokens", type=int, help="Another limit of tokens a call.")
@click.option("--engine", default="", help="Another registered engine, by name.")
@click.option("--revision", default="", help="Another harness revision: a commit, tag or branch.")
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="BOUNDARY=recorded|live|fail",
    help="In mode hybrid; may be repeated.",
)
@click.option("--on-miss", type=click.Choice([each.value for each in OnMiss]), default=OnMiss.STOP.value)
@click.option("--self-test", is_flag=True, help="In mode recorded: serve an altered record, which must diverge.")
@click.option("--preview", "only_preview", is_flag=True, help="Say what it would cost, and ask for nothing.")
@click.option("--key", default="", help="Idempotency key: the same key gives the rerun that is already there.")
@click.option("--wait", is_flag=True, help="Print progress until it has ended, then what it found.")
@click.option("--json", "as_json", is_flag=True, help="Print the rerun as JSON.")
def rerun(rollout: int, key: str, *, only_preview: bool, wait: bool, as_json: bool, **given: Any) -> None:
    """Execute a stored rollout again. With --wait the exit code is 1 only where it could not run: an attempt that goes
    another way than the rollout is a finding, no failure."""
    ready_tables()
    plan = _plan(**given)
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
    else:
        click.echo(f"rerun {view.id}: {len(view.attempts)} attempt{'s' * (len(view.attempts) != 1)} queued")
    if wait and not any(row.rollout is not None and row.same is not None for row in view.attempts):
        raise NothingRan(f"rerun {view.id} could not run: {view.attempts[0].status}")


def _plan(mode: str, on_miss: str, switches: Sequence[str], **rest: Any) -> RerunPlan:
    """Return the plan that the options state; the rest are the plan's own fields by name."""
    return RerunPlan(mode=Mode(mode), on_miss=OnMiss(on_miss), switches=dict(map(_switch, switches)), **rest)


def _switch(text: str) -> tuple[str, Switch]:
    boundary, _, value = text.rpartition("=")
    if not boundary or value not in tuple(Switch):
        raise InvalidValue(f"no switch: {text!r}", hint=f"BOUNDARY={'|'.join(Switch)}, such as model=live")
    return boundary, Switch(value)


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
