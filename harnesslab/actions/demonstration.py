"""Loading the demonstration project."""

from __future__ import annotations

from harnesslab.actions.rollouts import store_recording
from harnesslab.store.models import Rollout
from workers.demonstration.project import recordings


def load_demonstration() -> int:
    """Run and store the demonstration if there is no rollout yet; returns how many were stored."""
    if Rollout.objects.exists():
        return 0
    return sum(1 for recording in recordings() if store_recording(recording, None).pk)
