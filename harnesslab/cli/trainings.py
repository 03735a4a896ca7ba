"""`harnesslab train`, `train-stop`, `train-resume` and `trainings`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from harnesslab.actions.asking import AskedTraining, ask_training
from harnesslab.actions.tables import ready_tables
from harnesslab.actions.trainings import lifecycle as actions
from harnesslab.cli.following import follow
from harnesslab.cli.projects import words
from harnesslab.cli.terminal import printable
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.training.training import TrainingState
from harnesslab.queries.trainings.iterations import IterationRow
from harnesslab.queries.trainings.listing import TrainingRow, training_rows, training_view


class TrainingStopped(HarnessLabError):
    """A training stopped before its end."""


@click.command("train")
@click.option("--project", required=True, help="A project that is bound to a repository on this machine.")
@click.option("--panel", required=True, metavar="NAME[@DIGEST]")
@click.option("--engine", required=True, help="A registered engine, by name.")
@click.option("--iterations", "--epochs", "epochs", type=int, required=True, help="Most iterations.")
@click.option("--patches", type=click.Path(path_type=Path), help="A folder of patch files, taken in order.")
@click.option("--proposer-command", "command", default="", help="A program that changes a worktree; in one string.")
@click.option("--proposer-name", "name", default="", help="How it is shown, such as its model.")
@click.option("--effort", default="", help="How hard it thinks; shown beside its name.")
@click.option("--timeout", type=float, default=1800.0, show_default=True, help="Seconds that a proposal may take.")
@click.option("--criterion", default="strict_pareto", show_default=True)
@click.option("--trials", type=int, default=1, show_default=True)
@click.option("--seed", default="12345", show_default=True)
@click.option("--temperature", type=float, default=0.0, show_default=True)
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this case; may be repeated.")
@click.option("--no-certify", is_flag=True, help="Judge on all cases, also where the environment doesn't repeat.")
@click.option("--remeasure", is_flag=True, help="Measure a promoted candidate anew before it is a baseline.")
@click.option("--unchanged", is_flag=True, help="Measure the first baseline twice, to see what flips by nothing.")
@click.option("--key", default="", help="Idempotency key: the same key gives the training that is already there.")
@click.option("--wait", is_flag=True, help="Print each change until it is over.")
def train(
    patches: Path | None, command: str, cases: Sequence[str], key: str, *, no_certify: bool, wait: bool, **given: Any
) -> None:
    """Train a harness: an iteration measures a baseline, asks for one change, measures it and judges it."""
    ready_tables()
    asked = AskedTraining(
        patches=str(patches.resolve()) if patches is not None else "",
        command=tuple(words(command)),
        cases=tuple(cases) or None,
        certify=not no_certify,
        **given,
    )
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
    score = "" if iteration.after is None else f", {iteration.before} → {iteration.after} of {iteration.total} solved"
    what = f"{iteration.state} {iteration.mechanism}".strip()
    return f"{what}{score}: {iteration.why}"


def _why(row: TrainingRow) -> str:
    return f" ({row.why})" if row.state in (TrainingState.STOPPED, TrainingState.FAILED) and row.why else ""
