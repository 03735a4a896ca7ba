"""What follows when jobs end: experiments are concluded, trainings go on. Safe to ask at any time, by anyone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from django.db import DatabaseError
from django.db.models import Q

from harnesslab.actions.experiments.certifications import certify
from harnesslab.actions.experiments.decisions import decide
from harnesslab.actions.experiments.measurements import conclude
from harnesslab.actions.projects.mirrors import keep_up
from harnesslab.actions.trainings.iterations import advance
from harnesslab.core.deciding.promotion import DEFAULT
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.measuring.experiments import ExperimentKind, State
from harnesslab.core.natural import natural
from harnesslab.queries.experiments.measurements import get_measured
from harnesslab.queries.jobs.groups import AUDITS, EXPERIMENT, PROPOSALS, rollouts_group
from harnesslab.queries.trainings.training import get_iteration, trainings_to_follow
from harnesslab.store.models import Experiment

log = logging.getLogger(__name__)


def after(group: str) -> None:
    """Do what follows the end of a job of a group; nothing for a group that nothing waits for."""
    word, _, number = group.partition(" ")
    pk = natural(number)
    if pk is not None and word in _FOLLOWS:
        _safely(group, lambda: _FOLLOWS[word](pk))


def follow_up() -> None:
    """Look after everything that runs: what a killed process left undone is done now."""
    unjudged = Q(state=State.DONE, kind=ExperimentKind.CANDIDATE, decision=b"") & ~Q(baseline__state=State.RUNNING)
    alone = Experiment.objects.filter(Q(state=State.RUNNING) | unjudged & Q(baseline__isnull=False), training=None)
    for experiment in alone.exclude(plan=b"").values_list("pk", flat=True):
        after(rollouts_group(experiment))
    for training in trainings_to_follow():
        _safely(f"training {training}", lambda training=training: advance(training))  # type: ignore[misc]
    _safely("mirrors", keep_up)


def _safely(what: str, do: Callable[[], object]) -> None:
    """Do one thing of many: that it fails keeps nobody from the others, nor ends the sweeper."""
    try:
        do()
    except HarnessLabError as error:  # such as a row that was deleted meanwhile
        log.warning("after %s: %s", what, error.sentence)
    except DatabaseError:  # away for a moment: all of it is asked again
        raise
    except Exception:
        log.exception("after %s", what)


def _after_experiment(experiment_id: int) -> None:
    row = get_measured(experiment_id)
    if row.training_id is not None:
        advance(row.training_id)
        return
    conclude(experiment_id)
    row = get_measured(experiment_id)
    judged = row.kind != ExperimentKind.CANDIDATE or row.baseline is None or row.decision
    if row.state == State.DONE and not judged and row.baseline is not None and row.baseline.state != State.RUNNING:
        decide(row, DEFAULT)


def _after_audit(experiment_id: int) -> None:
    _after_experiment(experiment_id)
    certify(get_measured(experiment_id))


_FOLLOWS: Mapping[str, Callable[[int], None]] = {
    EXPERIMENT: _after_experiment,
    AUDITS: _after_audit,
    PROPOSALS: lambda iteration: advance(get_iteration(iteration).training_id),
}
"""By the first word of a group."""
