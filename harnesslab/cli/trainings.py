"""`harnesslab train`, `train-stop`, `train-resume` and `trainings`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harnesslab.actions.asking import ask_training
from harnesslab.actions.tables import ready_tables
from harnesslab.actions.trainings import lifecycle as actions
from harnesslab.cli.following import follow
from harnesslab.cli.options import options_of, read
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.training.training import TrainingState
from harnesslab.queries.trainings.iterations import IterationRow
from harnesslab.queries.trainings.listing import TrainingRow, training_rows, training_view
from harnesslab.requests.trainings import TrainingRequest


class TrainingStopped(HarnessLabError):
    """A training stopped before its end."""


@click.command("train")
@options_of(
    TrainingRequest,
    epochs="--iterations --epochs",
    command="--proposer-command",
    name="--proposer-name",
    cases="--case",
    certify=None,
)
@click.option("--no-certify", is_flag=True, help="Judge on all cases, also where the environment doesn't repeat.")
@click.option("--key", default="", help="Idempotency key: the same key gives the training that is already there.")
@click.option("--wait", is_flag=True, help="Print each change until it is over.")
def train(patches: str | None, key: str, *, no_certify: bool, wait: bool, **stated: Any) -> None:
    """Train a harness: an iteration measures a baseline, asks for one change, measures it and judges it."""
    ready_tables()
    folder = str(Path(patches).resolve()) if patches else ""
    asked = read(TrainingRequest, {**stated, "patches": folder, "certify": not no_certify})
    made = ask_training(asked, key=key[:80])
    click.echo(f"training {made.pk} runs" if not wait else f"training {made.pk}")
    if wait:
        wait_for(made.pk)


@click.command("train-stop")
@click.argument("training", type=click.IntRange(1))
def train_stop(training: int) -> None:
    """Stop a training where it is; what is measured stays."""
    ready_tables()
    actions.stop(training)
    click.echo(f"training {training} is stopped; train-resume goes on")


@click.command("train-resume")
@click.argument("training", type=click.IntRange(1))
@click.option("--wait", is_flag=True, help="Print each change until it is over.")
def train_resume(training: int, *, wait: bool) -> None:
    """Go on where a training stopped."""
    ready_tables()
    actions.resume(training)
    click.echo(f"training {training} goes on")
    if wait:
        wait_for(training)


@click.command("trainings")
@click.option("--project", default="", help="Those of one project.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON, with their iterations.")
def trainings(project: str, *, as_json: bool) -> None:
    """List the trainings, newest first."""
    ready_tables()
    rows = training_rows(project)
    if as_json:
        click.echo(json.dumps([training_view(row.id).model_dump(mode="json") for row in rows], indent=2))
        return
    for row in rows:
        click.echo(printable(f"{row.id}: {row.project}, {row.panel}: {row.sentence}{_why(row)}"))
    if not rows:
        click.echo("nothing was trained yet; harnesslab train begins one")


def wait_for(training_id: int) -> None:
    """Follow a training to its end; raises `TrainingStopped` where it stops before."""
    follow(lambda: _look(training_id), quiet=False)
    row = training_view(training_id).row
    click.echo(printable(row.sentence))
    if row.state != TrainingState.DONE:
        raise TrainingStopped(row.why or row.state, where=f"training {training_id}")


def _look(training_id: int) -> tuple[Mapping[str, str], bool]:
    view = training_view(training_id)
    return {f"iteration {iteration.number + 1}": _state(iteration) for iteration in view.epochs}, view.row.over


def _state(iteration: IterationRow) -> str:
    if not iteration.ended:
        return iteration.waits.partition(",")[0]  # a line a phase, not one a rollout
    score = (
        "" if iteration.after is None else f", {iteration.before} → {iteration.after} of {iteration.total} cases solved"
    )
    what = f"{iteration.state} {iteration.mechanism}".strip()
    return f"{what}{score}: {iteration.why}"


def _why(row: TrainingRow) -> str:
    return f" ({row.why})" if row.state in (TrainingState.STOPPED, TrainingState.FAILED) and row.why else ""
