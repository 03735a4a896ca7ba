"""What follows when jobs end: experiments are concluded, trainings go on. Safe to ask at any time, by anyone."""

from __future__ import annotations

import logging

from django.db import DatabaseError
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
from harnesslab.queries.measurements import get_measured, group_of
from harnesslab.queries.trainings import get_epoch, trainings_to_follow
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
        else:
            _after_experiment(pk)
            if word == "certify":
                certify(get_measured(pk))
    except HarnessLabError as error:  # such as a row that was deleted meanwhile
        log.warning("after %s: %s", group, error.sentence)
    except DatabaseError:
        raise
    except Exception:  # one that fails keeps nobody from the others
        log.exception("after %s", group)


def follow_up() -> None:
    """Look after everything that runs: what a killed process left undone is done now."""
    unjudged = Q(state=State.DONE, kind=Kind.CANDIDATE, decision=b"") & ~Q(baseline__state=State.RUNNING)
    alone = Experiment.objects.filter(Q(state=State.RUNNING) | unjudged & Q(baseline__isnull=False), training=None)
    for experiment in alone.exclude(plan=b"").values_list("pk", flat=True):
        after(group_of(experiment))
    for training in trainings_to_follow():
        advance(training)
    keep_up()


def _after_experiment(experiment_id: int) -> None:
    row = get_measured(experiment_id)
    if row.training_id is not None:
        advance(row.training_id)
        return
    conclude(experiment_id)
    row = get_measured(experiment_id)
    judged = row.kind != Kind.CANDIDATE or row.baseline is None or row.decision
    if row.state == State.DONE and not judged and row.baseline is not None and row.baseline.state != State.RUNNING:
        decide(row, StrictPareto.name)
