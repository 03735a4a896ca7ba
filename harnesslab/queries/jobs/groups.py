"""The names of job groups: jobs of an experiment, of its audits and of an iteration's proposals are found by them."""

from __future__ import annotations

EXPERIMENT, AUDITS, PROPOSALS = "experiment", "certify", "propose"


def rollouts_group(experiment_id: int) -> str:
    """Return the group of an experiment's rollouts."""
    return f"{EXPERIMENT} {experiment_id}"


def audits_group(experiment_id: int) -> str:
    """Return the group of an experiment's audits."""
    return f"{AUDITS} {experiment_id}"


def proposals_group(iteration_id: int) -> str:
    """Return the group of an iteration's proposals."""
    return f"{PROPOSALS} {iteration_id}"
