"""Trainings: what is asked, where they are, and what the loop needs to go on."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.experiments import State
from harnesslab.core.training.memo import Concluded
from harnesslab.core.training.training import IterationState, TrainingPlan, TrainingState
from harnesslab.queries.projects.bindings import binding_of
from harnesslab.runtime.training.repository import Repository
from harnesslab.store.models import Experiment, Iteration, Memo, Project, Training
from harnesslab.store.text import as_object, thawed


def get_training(training_id: int) -> Training:
    """Return a training; raises `NotFound`."""
    rows = Training.objects.select_related("project", "panel__panel").defer("panel__body")
    row = rows.filter(pk=training_id).first()
    if row is None:
        raise NotFound(f"there is no training {training_id}")
    return row


def training_plan(training: Training) -> TrainingPlan:
    """Return what is asked of a training."""
    return TrainingPlan.from_json(thawed(training.plan))


def repository_of(project: Project) -> Repository:
    """Return the repository that a project's trainings change; raises `InvalidValue` or `Conflict`."""
    binding = binding_of(project)
    return Repository.at(binding.harness.repository, binding.branch, binding.surface)


def iterations_of(training: Training) -> list[Iteration]:
    """Return a training's iterations in order."""
    return list(training.iterations.select_related("baseline", "candidate").order_by("number"))


def get_iteration(iteration_id: int) -> Iteration:
    """Return an iteration with what it belongs to; raises `NotFound`."""
    row = Iteration.objects.select_related("training__project", "training__panel__panel", "baseline", "candidate")
    found = row.defer("training__panel__body", "baseline__facts", "candidate__facts").filter(pk=iteration_id).first()
    if found is None:
        raise NotFound(f"there is no iteration {iteration_id}")
    return found


def trainings_to_follow() -> Sequence[int]:
    """Return the trainings that go on, and those with an experiment that does."""
    running = Q(state=TrainingState.RUNNING) | Q(experiments__state=State.RUNNING)
    return list(Training.objects.filter(running).order_by("pk").distinct().values_list("pk", flat=True))


def used_patches(training: Training) -> set[str]:
    """Return the patches of its queue that a training has taken."""
    taken = (as_object(thawed(iteration.proposer)).get("patch") for iteration in training.iterations.all())
    return {name for name in taken if isinstance(name, str)}


def latest_memo(project: Project) -> str:
    """Return the newest memo of a project, or nothing."""
    row = Memo.objects.filter(project=project).order_by("-pk").first()
    return memo_text(row) if row is not None else ""


def memo_text(memo: Memo) -> str:
    """Return a memo's Markdown."""
    text = as_object(thawed(memo.body)).get("text")
    return text if isinstance(text, str) else ""


def concluded(project: Project) -> list[Concluded]:
    """Return what became of every candidate of a project's trainings, in order."""
    rows = Iteration.objects.filter(training__project=project).select_related("candidate", "baseline")
    over = [state for state in IterationState if state.value in ("promoted", "rejected", "invalid", "skipped")]
    return [_concluded(row) for row in rows.filter(state__in=over).order_by("training_id", "number")]


def _concluded(iteration: Iteration) -> Concluded:
    candidate: Experiment | None = iteration.candidate
    decision = as_object(thawed(candidate.decision)) if candidate is not None else {}
    return Concluded(
        number=iteration.number,
        commit=iteration.commit,
        mechanism=iteration.mechanism,
        state=iteration.state,
        reason=iteration.reason,
        solved=candidate.solved if candidate is not None else None,
        total=candidate.total if candidate is not None else None,
        before=len(case_names(decision.get("baseline_solved"))),
        new=case_names(decision.get("new_solves")),
        lost=case_names(decision.get("regressions")),
    )


def case_names(value: object) -> list[str]:
    """Return the cases that a decision's document lists; nothing for anything else."""
    return [str(each) for each in value] if isinstance(value, list | tuple) else []
