"""The job that asks a training's proposer for one change."""

from __future__ import annotations

from typing import Any

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.queries.trainings.evidence import evidence
from harnesslab.queries.trainings.training import get_iteration, latest_memo, repository_of, training_plan, used_patches
from harnesslab.runtime.training.proposers import Declined, Occasion, proposer
from workers.tasks.job_runs import JobRun


def run_proposal(attempt: JobRun) -> dict[str, Any]:
    """Ask once, and keep the candidate under a ref; what became of it is the job's result."""
    iteration = get_iteration(int(attempt.payload["epoch"]))
    training = iteration.training
    repository = repository_of(training.project)
    occasion = Occasion(
        base=iteration.base_commit,
        memo=latest_memo(training.project),
        evidence=evidence(iteration.baseline) if iteration.baseline is not None else {},
        used=used_patches(training),
    )
    attempt.progress(0, "asking the proposer for one change")
    found = proposer(training_plan(training).proposer).propose(repository, occasion, attempt.stopped)
    if attempt.stopped():
        return {"cancelled": True}
    facts: dict[str, JSON] = dict(found.facts)
    if isinstance(found, Declined):
        return _whole({"declined": found.why, "over": found.over, "mechanism": found.mechanism, "facts": facts})
    candidate = found.candidate
    ref = repository.keep(candidate.commit)
    attempt.progress(1, f"{candidate.commit[:8]}: {found.mechanism}")
    return _whole(
        {
            "commit": candidate.commit,
            "ref": ref,
            "mechanism": found.mechanism,
            "files": list(candidate.files),
            "changed": None if found.changed is None else list(found.changed),
            "facts": facts,
            "memo": found.memo,
        }
    )


def _whole(document: dict[str, JSON]) -> dict[str, Any]:
    """Return what a proposer said as one text, since no database takes all of it as JSON, such as a NUL."""
    return {"proposal": canonical_bytes(document).decode()}
