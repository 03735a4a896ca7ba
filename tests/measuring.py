"""A project that measures a small harness, and rollouts of its experiments that have ended, without running any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harnesslab.actions.experiments.measurements import conclude
from harnesslab.actions.projects.bindings import bind
from harnesslab.actions.projects.panels import store_panel
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.experiments import Binding
from harnesslab.core.running.cases import CaseDefinition, Verifier
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.core.running.recipe import HarnessSource
from harnesslab.core.running.rollout import Origin, Outcome, Replayability
from harnesslab.store.models import Experiment, Job, JobState, PanelRevision, Project, Rollout
from harnesslab.store.text import frozen
from tests import live
from tests.recordings import recording
from tests.runtime.training.repositories import make_repository

PROJECT, PANEL = "measured", "two cases"
CASES = tuple(
    CaseDefinition(name, f"Do {name}.", {"a.txt": "one\n"}, verifier=Verifier({"done": "true"})) for name in ("a", "b")
)


def project(folder: Path) -> Project:
    """Bind a project to a repository of its own, with a registered engine that nobody answers at."""
    live.engine()
    made = make_repository(folder / "harness")
    return bind(PROJECT, Binding(HarnessSource("small", str(made.place))))


def panel(*cases: CaseDefinition) -> PanelRevision:
    """Keep a panel of the project."""
    return store_panel(PROJECT, PANEL, PanelDefinition(cases or CASES))


def asked(**changes: object) -> dict[str, object]:
    """Return what an experiment is asked for with."""
    return {"project": PROJECT, "revision": "main", "panel": PANEL, "engine": live.ENGINE, **changes}


def ended(experiment: Experiment, case: str, outcome: Outcome = Outcome.SOLVED) -> Rollout:
    """Store a rollout as what an experiment's job of a case made, and end the job."""
    job = Job.objects.get(group=f"experiment {experiment.pk}", payload__recipe__case__name=case)
    belongs: dict[str, Any] = {"project": PROJECT, "panel": PANEL, "experiment": experiment.name}
    belongs |= {"engine": live.ENGINE, "origin": Origin.LIVE, "replayability": Replayability.LIVE}
    rollout = store_recording(recording(case=case, outcome=outcome, latency=0.5, **belongs), None)
    Rollout.objects.filter(pk=rollout.pk).update(job=job, recipe=frozen(job.payload["recipe"]))
    Job.objects.filter(pk=job.pk).update(
        state=JobState.DONE, started_at=job.created_at, ended_at=job.created_at, result={"rollout": rollout.pk}
    )
    conclude(experiment.pk)
    return rollout
