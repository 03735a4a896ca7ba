"""What follows when jobs end: experiments are concluded, trainings go on. Safe to ask at any time, by anyone."""

from __future__ import annotations

import logging

from django.db.models import Q

from harnesslab.actions.certifications import certify
from harnesslab.actions.decisions import decide
from harnesslab.actions.epochs import advance
from harnesslab.actions.measurements import conclude
from harnesslab.actions.mirrors import keep_up
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.experiments import Kind, State
from harnesslab.core.natural import natural
from harnesslab.core.promotion import StrictPareto
from harnesslab.queries.measurements import get_measured
from harnesslab.queries.trainings import get_epoch, running_trainings
from harnesslab.store.models import Experiment

log = logging.getLogger(__name__)


def after(group: str) -> None:
    """Do what follows the end of a job of a group; nothing for a group that nothing waits for."""
    word, _, number = group.partition(" ")
    pk = natural(number)
    if pk is None or word not in ("experiment", "certify", "propose"):
        return
    try:
        if word == "propose":
            advance(get_epoch(pk).training_id)
        elif word == "certify" and get_measured(pk).training_id is None:
            certify(get_measured(pk))
        else:
            _after_experiment(pk)
    except HarnessLabError as error:  # such as a row that was deleted meanwhile
        log.warning("after %s: %s", group, error.sentence)


def follow_up() -> None:
    """Look after everything that runs: what a killed process left undone is done now."""
    unjudged = Q(state=State.DONE, kind=Kind.CANDIDATE, training=None, baseline__isnull=False, decision=b"")
    waiting = Experiment.objects.filter(Q(state=State.RUNNING) | unjudged).exclude(plan=b"")
    for experiment in waiting.values_list("pk", flat=True):
        after(f"experiment {experiment}")
    for training in running_trainings():
        advance(training)
    keep_up()


def _after_experiment(experiment_id: int) -> None:
    conclude(experiment_id)
    row = get_measured(experiment_id)
    if row.training_id is not None:
        advance(row.training_id)
    elif row.state == State.DONE and row.kind == Kind.CANDIDATE and row.baseline is not None and not row.decision:
        decide(row, StrictPareto.name)
