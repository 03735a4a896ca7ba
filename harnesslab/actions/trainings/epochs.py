"""The loop: each epoch measures a baseline, certifies it, asks for one change, measures it, judges it, and ends.

Nothing of it waits in a process. Every state is a row, every piece of work a job with a key of its own; `advance`
looks what has ended and does what follows, as often as anyone asks, and a killed process costs what it was doing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from django.db import DatabaseError, transaction
from django.utils import timezone

from harnesslab.actions.experiments.certifications import certify
from harnesslab.actions.experiments.decisions import NOT_MEASURED, decide
from harnesslab.actions.experiments.measurements import Purpose, conclude, measure
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.projects.memos import write_memo
from harnesslab.core.canonical import parse
from harnesslab.core.errors import Conflict, HarnessLabError
from harnesslab.core.measuring.experiments import ExperimentKind, State, Verdict
from harnesslab.core.training.training import OPEN, SKIPS, EpochState, TrainingState
from harnesslab.queries.experiments.measurements import certified_cases, get_measured, measured
from harnesslab.queries.jobs.groups import proposals_group
from harnesslab.queries.trainings.training import get_epoch, get_training, repository_of, training_plan
from harnesslab.store.locks import held
from harnesslab.store.models import Epoch, Experiment, Job, JobState, Training
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import as_object, frozen, storable, thawed

PROPOSE = "propose"
PROPOSE_QUEUE = "cpu"
_ENDS: Mapping[Verdict, EpochState] = {
    Verdict.PROMOTED: EpochState.PROMOTED,
    Verdict.REJECTED: EpochState.REJECTED,
    Verdict.INVALID_INFRA: EpochState.INVALID,
}
log = logging.getLogger(__name__)


def alone(project_id: int) -> AbstractContextManager[None]:
    """Keep everybody else from a project's trainings: whoever begins, moves, stops or resumes one goes alone."""
    return held(f"trainings of project {project_id}")


def advance(training_id: int) -> None:
    """Do all that can be done of a training now, and close its experiments that have ended.

    An expected failure stops it with its sentence, to be taken up; any other one is said too, and fails it.
    """
    with alone(get_training(training_id).project_id):
        try:
            for experiment in Experiment.objects.filter(training=training_id, state=State.RUNNING):
                conclude(experiment.pk)
            while _step(get_training(training_id)):
                continue
        except HarnessLabError as error:
            log.info("training %s stops: %s", training_id, error.sentence)
            _end(training_id, TrainingState.STOPPED, error.sentence)
        except DatabaseError:  # it is away for a moment, and whoever asks next goes on
            raise
        except Exception as error:
            log.exception("training %s failed unexpectedly", training_id)
            _end(training_id, TrainingState.FAILED, f"{type(error).__name__}: {error}")


def begin_again(training: Training) -> None:
    """Open the next epoch of a training that stopped between two, though epochs were skipped before it."""
    last = _last(training)
    if last is None or last.state in OPEN or last.number + 1 >= training_plan(training).epochs:
        return
    _open(training, last)


def _step(training: Training) -> bool:
    """Take one step; False where nothing can be done but wait."""
    if training.state != TrainingState.RUNNING:
        return False
    epoch = _last(training)
    if epoch is None or epoch.state not in OPEN:
        return _next_epoch(training, epoch)
    return _STEPS[EpochState(epoch.state)](get_epoch(epoch.pk))


def _last(training: Training) -> Epoch | None:
    return Epoch.objects.filter(training=training).order_by("-number").first()


def _next_epoch(training: Training, last: Epoch | None) -> bool:
    plan = training_plan(training)
    if (0 if last is None else last.number + 1) >= plan.epochs:
        return _end(training.pk, TrainingState.DONE, f"all {plan.epochs} epochs are over")
    recent = Epoch.objects.filter(training=training).order_by("-number")[:SKIPS]
    if len(recent) == SKIPS and all(_without_measurement(epoch) for epoch in recent):
        why = "; ".join(epoch.reason for epoch in recent)
        return _end(training.pk, TrainingState.STOPPED, f"{SKIPS} epochs in a row measured no candidate: {why}")
    return _open(training, last)


def _open(training: Training, last: Epoch | None) -> bool:
    """Begin an epoch at the head of the branch, with the baseline that is known of it."""
    plan, number = training_plan(training), 0 if last is None else last.number + 1
    head = repository_of(training.project).head()
    baseline = None if last is None else _baseline_after(last, remeasure=plan.remeasure)
    same = baseline is not None and baseline.revision == head
    Epoch.objects.create(training=training, number=number, base_commit=head, baseline=baseline if same else None)
    return True


def _baseline_after(last: Epoch, *, remeasure: bool) -> Experiment | None:
    """Return what the next candidate is measured against; None where that is to be measured anew."""
    if last.state == EpochState.PROMOTED:
        return None if remeasure else last.candidate
    incomparable = last.state == EpochState.INVALID and last.candidate is not None and not last.candidate.verdict
    return None if incomparable else last.baseline


def _without_measurement(epoch: Epoch) -> bool:
    return epoch.state == EpochState.SKIPPED or (epoch.state == EpochState.INVALID and epoch.reason == NOT_MEASURED)


def _measure_baseline(epoch: Epoch) -> bool:
    training, plan = epoch.training, training_plan(epoch.training)
    if epoch.baseline is None:
        purpose = Purpose(ExperimentKind.BASELINE, training=training)
        tried = Experiment.objects.filter(
            training=training, revision=epoch.base_commit, kind=ExperimentKind.BASELINE
        ).count()
        key = f"training {training.pk} baseline {epoch.number} {tried}"
        with transaction.atomic():  # a kill leaves all of it or nothing, so that nothing is measured twice
            made = measure(training.project, epoch.base_commit, training.panel, plan.measure, purpose, key=key)
            repository_of(training.project).keep_experiment(made.name, made.revision)
            Epoch.objects.filter(pk=epoch.pk).update(baseline=made)
        return True
    if epoch.baseline.state == State.RUNNING:
        return False
    if epoch.baseline.state == State.CANCELLED:
        Epoch.objects.filter(pk=epoch.pk).update(baseline=None)
        raise Conflict(f"its baseline {epoch.baseline.name} was cancelled", where=f"epoch {epoch.number + 1}")
    if missing := measured(epoch.baseline.pk).missing:
        Epoch.objects.filter(pk=epoch.pk).update(baseline=None)
        raise Conflict(f"{len(missing)} cases of the baseline could not be measured, such as {missing[0][0]!r}")
    return _move(epoch, EpochState.CERTIFYING if plan.certify else EpochState.PROPOSING)


def _certify(epoch: Epoch) -> bool:
    baseline = epoch.baseline
    if baseline is None:
        return _move(epoch, EpochState.BASELINE)
    if not certify(get_measured(baseline.pk)):
        return False
    training, plan = epoch.training, training_plan(epoch.training)
    if plan.unchanged and epoch.number == 0:
        purpose = Purpose(ExperimentKind.BASELINE, baseline, training, "measured again unchanged", baseline.revision)
        key = f"training {training.pk} unchanged"
        measure(training.project, baseline.revision, training.panel, plan.measure, purpose, key=key)
    return _move(epoch, EpochState.PROPOSING)


def _propose(epoch: Epoch) -> bool:
    job = Job.objects.filter(group=proposals_group(epoch.pk)).order_by("-pk").first()
    if job is None:
        group = proposals_group(epoch.pk)
        jobs.enqueue(PROPOSE, {"epoch": epoch.pk}, idempotency_key=group, queue_name=PROPOSE_QUEUE, group=group)
        return False
    if job.state not in ENDED:
        return False
    if job.state != JobState.DONE:
        raise Conflict(f"the proposer came to no end: {job.message}", where=f"epoch {epoch.number + 1}")
    result = as_object(parse(str(job.result["proposal"])))
    if result.get("over"):
        Epoch.objects.filter(pk=epoch.pk).delete()
        return _end(epoch.training_id, TrainingState.DONE, str(result["declined"]))
    proposer = {**as_object(result.get("facts")), "changed": result.get("changed"), "memo": result.get("memo")}
    known = {"mechanism": storable(str(result.get("mechanism") or ""), 400), "proposer": frozen(proposer)}
    Epoch.objects.filter(pk=epoch.pk).update(commit=str(result.get("commit") or ""), **known)
    if "declined" in result:
        return _close(epoch, EpochState.SKIPPED, str(result["declined"]))
    return _move(epoch, EpochState.MEASURING)


def _measure_candidate(epoch: Epoch) -> bool:
    if epoch.candidate is None:
        _order_candidate(epoch)
        return True
    if epoch.candidate.state == State.RUNNING:
        return False
    if epoch.candidate.state == State.CANCELLED:
        return _close(epoch, EpochState.SKIPPED, f"{epoch.candidate.name} was cancelled")
    return _judge(epoch, epoch.candidate)


def _order_candidate(epoch: Epoch) -> None:
    training, plan, baseline = epoch.training, training_plan(epoch.training), epoch.baseline
    if baseline is None:
        raise Conflict("there is no baseline to measure it against", where=f"epoch {epoch.number + 1}")
    asked = plan.measure
    if plan.certify:
        cases = certified_cases(get_measured(baseline.pk))
        if not cases:
            raise Conflict("certification excluded every case", where=baseline.name)
        asked = plan.measure_only(cases)
    purpose = Purpose(ExperimentKind.CANDIDATE, baseline, training, epoch.mechanism, epoch.base_commit)
    key = f"training {training.pk} candidate {epoch.number}"
    with transaction.atomic():
        made = measure(training.project, epoch.commit, training.panel, asked, purpose, key=key)
        repository_of(training.project).keep_experiment(made.name, made.revision)
        Epoch.objects.filter(pk=epoch.pk).update(candidate=made)


def _judge(epoch: Epoch, candidate: Experiment) -> bool:
    """Decide, promote where it is so decided, and end the epoch; each part can be done again after a kill."""
    plan = training_plan(epoch.training)
    changed = as_object(thawed(epoch.proposer)).get("changed")
    row = get_measured(candidate.pk)
    if not row.verdict:
        try:
            decide(row, plan.criterion, [str(each) for each in changed] if isinstance(changed, list) else None)
        except Conflict as error:
            return _close(epoch, EpochState.INVALID, error.sentence)
        row = get_measured(candidate.pk)
    if row.verdict == Verdict.PROMOTED:
        repository_of(epoch.training.project).promote(epoch.base_commit, epoch.commit)
    return _close(epoch, _ENDS[Verdict(row.verdict)], row.reason)


def _move(epoch: Epoch, state: EpochState) -> bool:
    return bool(Epoch.objects.filter(pk=epoch.pk, state=epoch.state).update(state=state))


def _close(epoch: Epoch, state: EpochState, reason: str) -> bool:
    """End an epoch and write the memo that follows it, both or neither: the notes are kept nowhere else."""
    with transaction.atomic():
        ended = {"state": state, "reason": storable(reason), "ended_at": timezone.now()}
        Epoch.objects.filter(pk=epoch.pk).update(**ended)
        fresh = get_epoch(epoch.pk)
        notes = as_object(thawed(fresh.proposer)).get("memo")
        write_memo(fresh, notes if isinstance(notes, str) else None)
    return True


def _end(training_id: int, state: TrainingState, sentence: str) -> bool:
    ended = {"state": state, "sentence": storable(sentence), "ended_at": timezone.now()}
    Training.objects.filter(pk=training_id, state=TrainingState.RUNNING).update(**ended)
    return False


_STEPS: Mapping[EpochState, Callable[[Epoch], bool]] = {
    EpochState.BASELINE: _measure_baseline,
    EpochState.CERTIFYING: _certify,
    EpochState.PROPOSING: _propose,
    EpochState.MEASURING: _measure_candidate,
}
