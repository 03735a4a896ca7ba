"""`harnesslab demo`."""

from __future__ import annotations

import time

import click
from django.conf import settings

from harnesslab.actions.demonstration import load_demonstration, train_demonstration
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.server.serve import answers
from harnesslab.cli.trainings import wait_for
from harnesslab.config import served_at
from harnesslab.queries.engines import probing
from harnesslab.queries.trainings.training import training_plan

PROBES_S = 120.0


@click.command("demo")
@click.option("--no-wait", is_flag=True, help="Begin the training and return.")
@click.option("--no-training", is_flag=True, help="Store the rollouts and nothing else.")
def demo(*, no_wait: bool, no_training: bool) -> None:
    """Store the demonstration's rollouts where there is none, then train a small harness on the embedded model."""
    ready_tables()
    count = load_demonstration()
    if count:
        click.echo(f"{count} demonstration rollouts were run and stored")
    else:
        click.echo("there are rollouts already, so that the demonstration's own are not added")
    if no_training:
        return
    address = served_at(settings.CONFIG.home)
    if not address or not answers(f"{address}/"):
        click.echo("nothing is trained, since no server runs: start script/server, and say this again")
        return
    deadline = time.monotonic() + PROBES_S
    while probing() and time.monotonic() < deadline:
        time.sleep(0.5)
    training = train_demonstration()
    click.echo(f"training {training.pk}: {address}/trainings/{training.pk}/")
    cases, epochs = training.panel.cases, training_plan(training).epochs
    click.echo(f"{cases} cases, {epochs} changes: it takes some minutes, and goes on without this command")
    if not no_wait:
        wait_for(training.pk)
        click.echo(f"its story: {address}/projects/{training.project_id}/")
