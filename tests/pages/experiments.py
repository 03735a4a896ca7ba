"""Experiments that page tests store: a lineage of a baseline, its candidates and what was decided of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Experiment
from tests.recordings import recording

SOLVED, FAILED = Outcome.SOLVED, Outcome.FAILED_VERIFICATION
START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = '<script>alert("1")</script>\udc80\x00'


def measured(name: str, outcomes: dict[str, Outcome], *, conditions: Any = None, **record: Any) -> Experiment:
    """Store an experiment with a rollout a case; it begins an hour after the one before."""
    project = record.setdefault("project", "tests")
    record.setdefault("started_at", START + timedelta(hours=Experiment.objects.count()))
    row = store_record(ExperimentRecord(name, **record))
    for case, outcome in outcomes.items():
        made = recording(case=case, outcome=outcome, experiment=name, project=project, conditions=conditions)
        store_recording(made, None)
    refresh([row.pk])
    row.refresh_from_db()
    return row


def lineage(project: str = "tests") -> list[Experiment]:
    """A baseline, a rejected and a promoted candidate, the baseline measured again, and it again unchanged."""
    same: dict[str, Any] = {"project": project}
    promoted: dict[str, Any] = {
        "kind": ExperimentKind.BASELINE,
        "revision": "c" * 40,
        "parent_revision": "a" * 40,
        "baseline": "base",
        **same,
    }
    return [
        measured(
            "base",
            {"one": SOLVED, "two": FAILED, "odd": FAILED},
            kind=ExperimentKind.BASELINE,
            revision="a" * 40,
            certification={"one": {"verdict": "deterministic"}, "odd": {"verdict": "forked"}},
            **same,
        ),
        measured(
            "worse",
            {"one": FAILED, "two": FAILED},
            kind=ExperimentKind.CANDIDATE,
            revision="b" * 40,
            parent_revision="a" * 40,
            baseline="base",
            verdict=Verdict.REJECTED,
            reason="regressed_baseline_tasks",
            decision={"regressions": ["one", HOSTILE]},
            mechanism=HOSTILE,
            **same,
        ),
        measured("better", {"one": SOLVED, "two": SOLVED}, verdict=Verdict.PROMOTED, **promoted),
        measured(
            "again",
            {"one": SOLVED, "two": SOLVED, "odd": FAILED},
            kind=ExperimentKind.BASELINE,
            revision="c" * 40,
            **same,
        ),
        measured(
            "same",
            {"one": SOLVED, "two": FAILED},
            kind=ExperimentKind.BASELINE,
            revision="c" * 40,
            baseline="again",
            **same,
        ),
    ]
