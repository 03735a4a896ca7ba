"""Trainings as read models: rows of the list, and one with its iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import Count

from harnesslab.core.training.training import OPEN, IterationState, Proposer, ProposerKind, TrainingPlan, TrainingState
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.trainings.iterations import ExperimentLink, IterationRow, iteration_row, link_of, waits_for
from harnesslab.queries.trainings.training import get_training, iterations_of, latest_memo, training_plan
from harnesslab.store.models import Experiment, Iteration, Training
from harnesslab.store.text import storable

MOST = 100
"""Trainings that the list shows."""


class TrainingRow(ReadModel):
    """A training as lists show it."""

    id: int
    project: str
    project_id: int
    panel: str
    panel_revision: int
    panel_digest: str
    cases: int
    engine: str
    criterion: str
    proposer: str
    """Who proposes, in a few words."""
    state: str
    why: str
    epochs: int
    """Most iterations."""
    counts: dict[str, int]
    """Iterations by state."""
    first: ExperimentLink | None
    """Its first baseline."""
    last: ExperimentLink | None
    """The newest baseline or promoted candidate: where it has come to."""
    created_at: datetime
    ended_at: datetime | None
    created_by: str

    @property
    def over(self) -> bool:
        """Whether nothing of it goes on by itself."""
        return self.state != TrainingState.RUNNING

    @property
    def sentence(self) -> str:
        """Say where it is and what it came to."""
        done = sum(count for state, count in self.counts.items() if state not in OPEN)
        told = {
            TrainingState.RUNNING: f"Iteration {min(done + 1, self.epochs)} of {self.epochs} runs",
            TrainingState.STOPPED: f"Stopped after {_iterations(done)}",
            TrainingState.DONE: f"Over after {_iterations(done)}",
            TrainingState.FAILED: f"Failed after {_iterations(done)}",
        }[TrainingState(self.state)]
        kinds = [f"{self.counts[state]} {state}" for state in ENDS if self.counts.get(state)]
        said = f"{told}: {', '.join(kinds)}" if kinds else told
        first, last = self.first, self.last
        if first is None or first.solved is None or first.total is None:
            return f"{said}."
        if last is None or last.solved is None or last.id == first.id or last.total is None:
            return f"{said}; {first.solved} of {first.total} cases solved, as at the start."
        return f"{said}; from {first.solved} of {first.total} to {last.solved} of {last.total} cases solved."


ENDS = (IterationState.PROMOTED, IterationState.REJECTED, IterationState.INVALID, IterationState.SKIPPED)


class TrainingView(ReadModel):
    """A training with its iterations."""

    row: TrainingRow
    epochs: list[IterationRow]
    options: list[str]
    """What was asked for beside the usual, in words."""
    unchanged: ExperimentLink | None
    """The A/A run: its first baseline measured again."""
    memo: str


def training_rows(project: str = "") -> list[TrainingRow]:
    """Return trainings, newest first."""
    rows = Training.objects.select_related("project", "panel__panel", "created_by").defer("panel__body")
    return _rows(list((rows.filter(project__name=storable(project)) if project else rows).order_by("-pk")[:MOST]))


def training_view(training_id: int) -> TrainingView:
    """Return a training with its iterations; raises `NotFound`."""
    training = get_training(training_id)
    plan = training_plan(training)
    iterations = iterations_of(training)
    again = Experiment.objects.filter(key=f"training {training.pk} unchanged").first()
    waits = waits_for(next((iteration for iteration in iterations if iteration.state in OPEN), None))
    return TrainingView(
        row=_rows([training])[0],
        epochs=[iteration_row(iteration, waits) for iteration in iterations],
        options=_options(plan),
        unchanged=link_of(again),
        memo=latest_memo(training.project),
    )


def _rows(trainings: Sequence[Training]) -> list[TrainingRow]:
    ids = [training.pk for training in trainings]
    counts: dict[int, Counter[str]] = {pk: Counter() for pk in ids}
    counted = Iteration.objects.filter(training__in=ids).order_by().values_list("training_id", "state")
    for training, state, count in counted.annotate(n=Count("pk")):
        counts[training][state] = count
    first: dict[int, Experiment] = {}
    last: dict[int, Experiment] = {}
    iterations = Iteration.objects.filter(training__in=ids).select_related("baseline", "candidate")
    for iteration in iterations.defer("proposer", *_heavy("baseline"), *_heavy("candidate")).order_by("number"):
        if iteration.baseline is not None:
            first.setdefault(iteration.training_id, iteration.baseline)
            last[iteration.training_id] = iteration.baseline
        if iteration.state == IterationState.PROMOTED and iteration.candidate is not None:
            last[iteration.training_id] = iteration.candidate
    return [_row(each, counts[each.pk], first.get(each.pk), last.get(each.pk)) for each in trainings]


def _heavy(name: str) -> list[str]:
    return [f"{name}__{column}" for column in ("facts", "decision", "certification", "plan")]


def _row(
    training: Training, counts: Mapping[str, int], first: Experiment | None, last: Experiment | None
) -> TrainingRow:
    plan = training_plan(training)
    return TrainingRow(
        id=training.pk,
        project=training.project.name,
        project_id=training.project_id,
        panel=training.panel.panel.name,
        panel_revision=training.panel_id,
        panel_digest=training.panel.digest,
        cases=training.panel.cases,
        engine=plan.measure.engine,
        criterion=plan.criterion,
        proposer=proposer_words(plan.proposer),
        state=training.state,
        why=training.sentence,
        epochs=plan.epochs,
        counts=dict(counts),
        first=link_of(first),
        last=link_of(last),
        created_at=training.created_at,
        ended_at=training.ended_at,
        created_by=training.created_by.get_username() if training.created_by is not None else "",
    )


def proposer_words(proposer: Proposer) -> str:
    """Say who proposes."""
    if proposer.kind is ProposerKind.PATCHES:
        return f"patches of {proposer.folder}"
    named = f"{proposer.name} " if proposer.name else ""
    return f"{named}command {' '.join(proposer.command)}"


def _options(plan: TrainingPlan) -> list[str]:
    said = [f"criterion {plan.criterion.replace('_', ' ')}", f"root seed {plan.measure.root_seed}"]
    if plan.measure.trials > 1:
        said.append(f"{plan.measure.trials} trials a case")
    said.append("certified before a candidate is judged" if plan.certify else "not certified")
    if plan.remeasure:
        said.append("a promoted candidate is measured anew before it is a baseline")
    if plan.unchanged:
        said.append("the first baseline is measured a second time, unchanged")
    return said


def _iterations(count: int) -> str:
    return f"{count} iteration{'' if count == 1 else 's'}"
