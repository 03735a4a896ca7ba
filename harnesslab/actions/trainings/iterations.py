"""The loop: each iteration measures a baseline, certifies it, asks for one change, measures it, judges it, and ends.

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
from harnesslab.core.training.training import OPEN, SKIPS, IterationState, TrainingState
from harnesslab.queries.experiments.measurements import certified_cases, get_measured, measured
from harnesslab.queries.jobs.groups import proposals_group
from harnesslab.queries.trainings.training import get_iteration, get_training, repository_of, training_plan
from harnesslab.store.locks import held
from harnesslab.store.models import Experiment, Iteration, Job, JobState, Training
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import as_object, frozen, storable, thawed

PROPOSE = "propose"
PROPOSE_QUEUE = "cpu"
_ENDS: Mapping[Verdict, IterationState] = {
    Verdict.PROMOTED: IterationState.PROMOTED,
    Verdict.REJECTED: IterationState.REJECTED,
    Verdict.INVALID_INFRA: IterationState.INVALID,
}
log = logging.getLogger(__name__)


def alone(project_id: int) -> AbstractContextManager[None]:
    """Keep everybody else from a project's trainings: whoever begins, moves, stops or resumes one goes alone."""
    return held(f"trainings of project {project_id}")


def advance(training_id: int) -> None:
    """Do all that can be done of a training now, and close its experiments that have ended; takes the lock of `alone`.

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
    """Open the next iteration of a training that stopped between two, though iterations were skipped before it."""
    last = _last(training)
    if last is None or last.state in OPEN or last.number + 1 >= training_plan(training).epochs:
        return
    _open(training, last)


def _step(training: Training) -> bool:
    """Take one step; False where nothing can be done but wait."""
    if training.state != TrainingState.RUNNING:
        return False
    iteration = _last(training)
    if iteration is None or iteration.state not in OPEN:
        return _next_iteration(training, iteration)
    return _STEPS[IterationState(iteration.state)](get_iteration(iteration.pk))


def _last(training: Training) -> Iteration | None:
    return Iteration.objects.filter(training=training).order_by("-number").first()


def _next_iteration(training: Training, last: Iteration | None) -> bool:
    plan = training_plan(training)
    if (0 if last is None else last.number + 1) >= plan.epochs:
        return _end(training.pk, TrainingState.DONE, f"all {plan.epochs} iterations are over")
    recent = Iteration.objects.filter(training=training).order_by("-number")[:SKIPS]
    if len(recent) == SKIPS and all(_without_measurement(iteration) for iteration in recent):
        why = "; ".join(iteration.reason for iteration in recent)
        return _end(training.pk, TrainingState.STOPPED, f"{SKIPS} iterations in a row measured no candidate: {why}")
    return _open(training, last)


def _open(training: Training, last: Iteration | None) -> bool:
    """Begin an iteration at the head of the branch, with the baseline that is known of it."""
    plan, number = training_plan(training), 0 if last is None else last.number + 1
    head = repository_of(training.project).head()
    baseline = None if last is None else _baseline_after(last, remeasure=plan.remeasure)
    same = baseline is not None and baseline.revision == head
    Iteration.objects.create(training=training, number=number, base_commit=head, baseline=baseline if same else None)
    return True


def _baseline_after(last: Iteration, *, remeasure: bool) -> Experiment | None:
    """Return what the next candidate is measured against; None where that is to be measured anew."""
    if last.state == IterationState.PROMOTED:
        return None if remeasure else last.candidate
    incomparable = last.state == IterationState.INVALID and last.candidate is not None and not last.candidate.verdict
    return None if incomparable else last.baseline


def _without_measurement(iteration: Iteration) -> bool:
    return iteration.state == IterationState.SKIPPED or (
        iteration.state == IterationState.INVALID and iteration.reason == NOT_MEASURED
    )


def _measure_baseline(iteration: Iteration) -> bool:
    training, plan = iteration.training, training_plan(iteration.training)
    if iteration.baseline is None:
        purpose = Purpose(ExperimentKind.BASELINE, training=training)
        tried = Experiment.objects.filter(
            training=training, revision=iteration.base_commit, kind=ExperimentKind.BASELINE
        ).count()
        # numbered, since the key of a baseline that was cancelled or could not be measured would give that one again
        key = f"training {training.pk} baseline {iteration.number} {tried}"
        with transaction.atomic():  # a kill leaves all of it or nothing, so that nothing is measured twice
            made = measure(training.project, iteration.base_commit, training.panel, plan.measure, purpose, key=key)
            # git knows no rollback: what a kill leaves is a ref of an experiment that isn't there, which hurts nobody
            repository_of(training.project).keep_experiment(made.name, made.revision)
            Iteration.objects.filter(pk=iteration.pk).update(baseline=made)
        return True
    if iteration.baseline.state == State.RUNNING:
        return False
    if iteration.baseline.state == State.CANCELLED:
        Iteration.objects.filter(pk=iteration.pk).update(baseline=None)
        raise Conflict(
            f"its baseline {iteration.baseline.name} was cancelled", where=f"iteration {iteration.number + 1}"
        )
    if missing := measured(iteration.baseline.pk).missing:
        Iteration.objects.filter(pk=iteration.pk).update(baseline=None)
        raise Conflict(f"{len(missing)} cases of the baseline could not be measured, such as {missing[0][0]!r}")
    return _move(iteration, IterationState.CERTIFYING if plan.certify else IterationState.PROPOSING)


def _certify(iteration: Iteration) -> bool:
    baseline = iteration.baseline
    if baseline is None:
        return _move(iteration, IterationState.BASELINE)
    if not certify(get_measured(baseline.pk)):
        return False
    training, plan = iteration.training, training_plan(iteration.training)
    if plan.unchanged and iteration.number == 0:
        purpose = Purpose(ExperimentKind.BASELINE, baseline, training, "measured again unchanged", baseline.revision)
        key = f"training {training.pk} unchanged"
        measure(training.project, baseline.revision, training.panel, plan.measure, purpose, key=key)
    return _move(iteration, IterationState.PROPOSING)


def _propose(iteration: Iteration) -> bool:
    job = Job.objects.filter(group=proposals_group(iteration.pk)).order_by("-pk").first()
    if job is None:
        group = proposals_group(iteration.pk)
        jobs.enqueue(PROPOSE, {"epoch": iteration.pk}, idempotency_key=group, queue_name=PROPOSE_QUEUE, group=group)
        return False
    if job.state not in ENDED:
        return False
    if job.state != JobState.DONE:
        raise Conflict(f"the proposer came to no end: {job.message}", where=f"iteration {iteration.number + 1}")
    result = as_object(parse(str(job.result["proposal"])))
    if result.get("over"):
        Iteration.objects.filter(pk=iteration.pk).delete()
        return _end(iteration.training_id, TrainingState.DONE, str(result["declined"]))
    proposer = {**as_object(result.get("facts")), "changed": result.get("changed"), "memo": result.get("memo")}
    known = {"mechanism": storable(str(result.get("mechanism") or ""), 400), "proposer": frozen(proposer)}
    Iteration.objects.filter(pk=iteration.pk).update(commit=str(result.get("commit") or ""), **known)
    if "declined" in result:
        return _close(iteration, IterationState.SKIPPED, str(result["declined"]))
    return _move(iteration, IterationState.MEASURING)


def _measure_candidate(iteration: Iteration) -> bool:
    if iteration.candidate is None:
        _order_candidate(iteration)
        return True
    if iteration.candidate.state == State.RUNNING:
        return False
    if iteration.candidate.state == State.CANCELLED:
        return _close(iteration, IterationState.SKIPPED, f"{iteration.candidate.name} was cancelled")
    return _judge(iteration, iteration.candidate)


def _order_candidate(iteration: Iteration) -> None:
    training, plan, baseline = iteration.training, training_plan(iteration.training), iteration.baseline
    if baseline is None:
        raise Conflict("there is no baseline to measure it against", where=f"iteration {iteration.number + 1}")
    asked = plan.measure
    if plan.certify:
        cases = certified_cases(get_measured(baseline.pk))
        if not cases:
            raise Conflict("certification excluded every case", where=baseline.name)
        asked = plan.measure_only(cases)
    purpose = Purpose(ExperimentKind.CANDIDATE, baseline, training, iteration.mechanism, iteration.base_commit)
    key = f"training {training.pk} candidate {iteration.number}"
    with transaction.atomic():
        made = measure(training.project, iteration.commit, training.panel, asked, purpose, key=key)
        repository_of(training.project).keep_experiment(made.name, made.revision)
        Iteration.objects.filter(pk=iteration.pk).update(candidate=made)


def _judge(iteration: Iteration, candidate: Experiment) -> bool:
    """Decide, promote where it is so decided, and end the iteration; each part can be done again after a kill."""
    plan = training_plan(iteration.training)
    changed = as_object(thawed(iteration.proposer)).get("changed")
    row = get_measured(candidate.pk)
    if not row.verdict:
        try:
            decide(row, plan.criterion, [str(each) for each in changed] if isinstance(changed, list) else None)
        except Conflict as error:
            return _close(iteration, IterationState.INVALID, error.sentence)
        row = get_measured(candidate.pk)
    # the verdict is stored before git moves: after a kill in between the branch is moved by the stored verdict
    if row.verdict == Verdict.PROMOTED:
        repository_of(iteration.training.project).promote(iteration.base_commit, iteration.commit)
    return _close(iteration, _ENDS[Verdict(row.verdict)], row.reason)


def _move(iteration: Iteration, state: IterationState) -> bool:
    return bool(Iteration.objects.filter(pk=iteration.pk, state=iteration.state).update(state=state))


def _close(iteration: Iteration, state: IterationState, reason: str) -> bool:
    """End an iteration and write the memo that follows it, both or neither: the notes are kept nowhere else."""
    with transaction.atomic():
        ended = {"state": state, "reason": storable(reason), "ended_at": timezone.now()}
        Iteration.objects.filter(pk=iteration.pk).update(**ended)
        fresh = get_iteration(iteration.pk)
        notes = as_object(thawed(fresh.proposer)).get("memo")
        write_memo(fresh, notes if isinstance(notes, str) else None)
    return True


def _end(training_id: int, state: TrainingState, sentence: str) -> bool:
    ended = {"state": state, "sentence": storable(sentence), "ended_at": timezone.now()}
    Training.objects.filter(pk=training_id, state=TrainingState.RUNNING).update(**ended)
    return False


_STEPS: Mapping[IterationState, Callable[[Iteration], bool]] = {
    IterationState.BASELINE: _measure_baseline,
    IterationState.CERTIFYING: _certify,
    IterationState.PROPOSING: _propose,
    IterationState.MEASURING: _measure_candidate,
}
