"""`harnesslab experiment run`, `cancel` and `certify`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from harnesslab.actions.asking import ask_experiment
from harnesslab.actions.experiments.certifications import ask_audits, certify
from harnesslab.actions.experiments.measurements import cancel
from harnesslab.actions.tables import ready_tables
from harnesslab.cli.following import follow
from harnesslab.cli.options import options_of, read
from harnesslab.cli.terminal import printable
from harnesslab.core.deciding.decision_words import decision_sentence
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.measuring.experiments import State
from harnesslab.queries.experiments.certificates import CertificateRow, audits, certificates
from harnesslab.queries.experiments.listing import experiment_rows, get_experiment
from harnesslab.queries.experiments.measurements import experiment_named, get_measured
from harnesslab.queries.experiments.progress import Progress, ProgressRow, progress_of
from harnesslab.queries.stories.experiment import experiment_card
from harnesslab.requests.experiments import ExperimentRequest


class NothingMeasured(HarnessLabError):
    """An experiment ended without one rollout that says something."""


class PartlyMeasured(HarnessLabError):
    """An experiment ended with rollouts that infrastructure failed for good."""


@click.group("experiment")
def experiment() -> None:
    """Measure a revision of a harness over a panel."""


@experiment.command("run")
@options_of(ExperimentRequest, cases="--case")
@click.option("--key", default="", help="Idempotency key: the same key gives the experiment that is already there.")
@click.option("--wait", is_flag=True, help="Print each change until it is measured.")
@click.option("--json", "as_json", is_flag=True, help="Print the experiment as JSON.")
def run(key: str, *, wait: bool, as_json: bool, **stated: Any) -> None:
    """Order the rollouts of an experiment; workers run them."""
    ready_tables()
    made = ask_experiment(read(ExperimentRequest, stated), key=key[:80])
    if wait:
        follow(lambda: _look(made.pk), quiet=as_json)
    found = progress_of(made.pk)
    if as_json:
        click.echo(experiment_rows([get_experiment(made.pk)])[0].model_dump_json(indent=2))
    else:
        click.echo(printable(f"{made.name}: {found.sentence}"))
        _print_decision(made.pk)
    if wait and found.state == State.CANCELLED:
        raise NothingMeasured("it was cancelled", where=made.name)
    if wait and not any(row.outcome for row in found.rows):
        raise NothingMeasured(f"no rollout came to an end: {found.rows[0].message}", where=made.name)
    if wait and found.lost:
        why = found.down or found.rows[0].message
        raise PartlyMeasured(f"infrastructure lost {found.lost} of {found.total} rollouts: {why}", where=made.name)


def _print_decision(experiment_id: int) -> None:
    """Say what a candidate that is measured came to, with every reason."""
    row = experiment_rows([get_experiment(experiment_id)])[0]
    if not row.baseline or row.state != State.DONE:
        return
    said = decision_sentence(row.kind, row.decision, row.reason, row.solved, row.total)
    for sentence in (said, *experiment_card(experiment_id).sentences):
        click.echo(printable(sentence))


@experiment.command("cancel")
@click.argument("external_id")
@click.option("--project", default="", help="Where several projects have it.")
def cancel_experiment(external_id: str, project: str) -> None:
    """Stop measuring; what was measured stays."""
    ready_tables()
    asked = cancel(experiment_named(external_id, project).pk)
    click.echo(f"{asked} rollout{'s were' if asked != 1 else ' was'} asked to stop")


@experiment.command("certify")
@click.argument("external_id")
@click.option("--project", default="", help="Where several projects have it.")
@click.option("--wait", is_flag=True, help="Wait for the audits, then print what they found.")
def certify_experiment(external_id: str, project: str, *, wait: bool) -> None:
    """Run an experiment's recorded commands and verification again: which environments repeat."""
    ready_tables()
    row = experiment_named(external_id, project)
    done = ask_audits(row.pk)
    if wait and not done:
        follow(lambda: (audits(row.pk), certify(get_measured(row.pk))), quiet=False)
    elif not done:
        click.echo(f"{len(audits(row.pk))} audits are queued")
        return
    for found in certificates(get_measured(row.pk)):
        click.echo(printable(_verdict(found)))


def _verdict(found: CertificateRow) -> str:
    inherited = f" (inherited from {found.inherited})" if found.inherited else ""
    fork = found.fork
    why = found.why or (f"its {fork.what} differs at {fork.command[:120]!r}" if fork is not None else "")
    return f"{found.case}: {found.verdict}{inherited}{f'; {why}' if why else ''}"


def _look(experiment_id: int) -> tuple[Mapping[str, str], bool]:
    """Return where each case is; an experiment of its own is concluded by the worker that ends its last rollout."""
    found = progress_of(experiment_id)
    return {_name(row, found): row.outcome or _state(row) for row in found.rows}, found.over


def _name(row: ProgressRow, found: Progress) -> str:
    return row.case if found.trials == 1 else f"{row.case} #{row.trial + 1}"


def _state(row: ProgressRow) -> str:
    return f"{row.state}: {row.message}" if row.state in ("failed", "cancelled") and row.message else row.state
