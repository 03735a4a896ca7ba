"""Iterations as read models: what was proposed, what became of it, and what an open one waits for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from harnesslab.core.canonical import JSON
from harnesslab.core.deciding.decision_words import reason_words
from harnesslab.core.training.training import OPEN, IterationState
from harnesslab.formats.reading.values import number
from harnesslab.queries.jobs.groups import audits_group, proposals_group, rollouts_group
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.trainings.training import case_names
from harnesslab.store.models import Experiment, Iteration, Job
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import as_object, thawed

_DOES = {
    IterationState.BASELINE: "measures its baseline",
    IterationState.CERTIFYING: "certifies its cases",
    IterationState.PROPOSING: "asks for a change",
    IterationState.MEASURING: "measures the candidate",
}


class ExperimentLink(ReadModel):
    """An experiment of a training."""

    id: int
    name: str
    state: str
    solved: int | None
    total: int | None


class ProposerFacts(ReadModel):
    """What a proposer states of itself; None where it doesn't."""

    model: str
    effort: str
    cost: float | None
    input_tokens: int | None
    output_tokens: int | None
    seconds: float | None


class IterationRow(ReadModel):
    """One turn of the loop; iterations count from 0."""

    number: int
    state: str
    ended: bool
    base_commit: str
    commit: str
    mechanism: str
    why: str
    """The decision's reason in words, or why there was none; of an open iteration, what it waits for."""
    verdict: str | None
    before: int | None
    """Cases of the candidate's panel that its baseline solved."""
    after: int | None
    total: int | None
    new: list[str]
    lost: list[str]
    provisional: bool
    baseline: ExperimentLink | None
    candidate: ExperimentLink | None
    proposer: ProposerFacts
    waits: str = ""
    started_at: datetime
    ended_at: datetime | None


def iteration_row(iteration: Iteration, waits: str = "") -> IterationRow:
    """Make the read model of an iteration that was fetched with its experiments."""
    decision = as_object(thawed(iteration.candidate.decision)) if iteration.candidate is not None else {}
    ended = iteration.state not in OPEN
    candidate = link_of(iteration.candidate)
    return IterationRow(
        number=iteration.number,
        state=iteration.state,
        ended=ended,
        base_commit=iteration.base_commit,
        commit=iteration.commit,
        mechanism=iteration.mechanism,
        why=reason_words(iteration.reason)
        if decision and iteration.reason == decision.get("reason")
        else iteration.reason,
        verdict=iteration.candidate.verdict or None if iteration.candidate is not None else None,
        before=len(case_names(decision.get("baseline_solved"))) if decision else None,
        after=candidate.solved if candidate is not None and decision else None,
        total=candidate.total if candidate is not None else None,
        new=case_names(decision.get("new_solves")),
        lost=case_names(decision.get("regressions")),
        provisional=decision.get("provisional") is True,
        baseline=link_of(iteration.baseline),
        candidate=candidate,
        proposer=_facts(as_object(thawed(iteration.proposer))),
        waits="" if ended else waits,
        started_at=iteration.started_at,
        ended_at=iteration.ended_at,
    )


def waits_for(iteration: Iteration | None) -> str:
    """Say what an open iteration waits for, with how far that is."""
    if iteration is None:
        return ""
    state = IterationState(iteration.state)
    owner = iteration.candidate_id if state is IterationState.MEASURING else iteration.baseline_id
    groups = {
        IterationState.CERTIFYING: audits_group(owner or 0),
        IterationState.PROPOSING: proposals_group(iteration.pk),
    }
    group = groups.get(state) or rollouts_group(owner or 0)
    states = list(Job.objects.filter(group=group).values_list("state", flat=True))
    ended = sum(state in ENDED for state in states)
    return f"{_DOES[state]}, {ended} of {len(states)}" if len(states) > 1 else _DOES[state]


def _facts(stated: Mapping[str, JSON]) -> ProposerFacts:
    used, made = number(stated.get("input_tokens")), number(stated.get("output_tokens"))
    return ProposerFacts(
        model=str(stated.get("model") or ""),
        effort=str(stated.get("effort") or ""),
        cost=number(stated.get("cost")),
        input_tokens=None if used is None else round(used),
        output_tokens=None if made is None else round(made),
        seconds=number(stated.get("seconds")),
    )


def link_of(experiment: Experiment | None) -> ExperimentLink | None:
    if experiment is None:
        return None
    return ExperimentLink(
        id=experiment.pk,
        name=experiment.name,
        state=experiment.state,
        solved=experiment.solved,
        total=experiment.total,
    )
