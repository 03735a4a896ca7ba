"""The names of job groups: what the jobs of an experiment, of its audits and of an epoch's proposals are found by."""

from __future__ import annotations

EXPERIMENT, AUDITS, PROPOSALS = "experiment", "certify", "propose"


def rollouts_group(experiment_id: int) -> str:
    """Return the group of an experiment's rollouts."""
    return f"{EXPERIMENT} {experiment_id}"


def audits_group(experiment_id: int) -> str:
    """Return the group of an experiment's audits."""
    return f"{AUDITS} {experiment_id}"


def proposals_group(epoch_id: int) -> str:
    """Return the group of an epoch's proposals."""
    return f"{PROPOSALS} {epoch_id}"
