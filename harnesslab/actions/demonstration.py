"""Loading the demonstration project."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from harnesslab.actions.engines.registration import EMBEDDED_NAME
from harnesslab.actions.experiments.sources import refresh
from harnesslab.actions.projects.bindings import bind
from harnesslab.actions.projects.panels import store_panel
from harnesslab.actions.reruns.job_specs import order
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.actions.trainings.lifecycle import train
from harnesslab.core.measuring.experiments import Binding, MeasuringPlan
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.core.running.recipe import RUN, HarnessSource, Recipe, SideEffects
from harnesslab.core.training.training import Proposer, ProposerKind, TrainingPlan
from harnesslab.queries.reruns.job_specs import Belonging
from harnesslab.runtime.demonstration.project import ROOT_SEED, recordings
from harnesslab.runtime.demonstration.repository import BASELINE, PATCHES, ensure_repository, ensure_trainee
from harnesslab.runtime.demonstration.shell_cases import ASKED, SHELL_CASES, TRAINING_CASES, UNPINNED
from harnesslab.store.models import Engine, Rollout, Training

PROJECT = "demonstration"
TRAINING_PROJECT = "small shell training"
LIVE_CASES: tuple[CaseDefinition, ...] = (*SHELL_CASES[:6], UNPINNED, ASKED)


def load_demonstration() -> int:
    """Run and store the demonstration if there is no rollout yet; returns how many were stored."""
    if Rollout.objects.exists():
        return 0
    stored = [store_recording(recording, None) for recording in recordings()]
    refresh({rollout.experiment_id for rollout in stored if rollout.experiment_id is not None})
    return len(stored)


def order_live(cases: tuple[CaseDefinition, ...] = LIVE_CASES) -> int:
    """Order rollouts of the reference harness on the embedded engine, once; returns how many there are to run."""
    if not Engine.objects.filter(name=EMBEDDED_NAME).exists():
        return 0
    for case in cases:
        belonging = Belonging(PROJECT, "small shell", tags=("reference harness",))
        order(recipe(case), belonging, key=f"demonstration {case.digest}")
    return len(cases)


def train_demonstration(cases: Sequence[CaseDefinition] = TRAINING_CASES, patches: Path = PATCHES) -> Training:
    """Begin the small training, or return the one that was begun before: a real one, on the embedded engine."""
    home: Path = settings.CONFIG.home
    harness = HarnessSource("trainee", str(ensure_trainee(home)))
    binding = Binding(harness, surface=("harness.py", "examples/*.json"), tools={RUN: SideEffects.SANDBOXED})
    project = bind(TRAINING_PROJECT, binding)
    panel = store_panel(TRAINING_PROJECT, "small shell", PanelDefinition(tuple(cases)))
    plan = TrainingPlan(
        measure=MeasuringPlan(EMBEDDED_NAME, root_seed=str(ROOT_SEED)),
        proposer=Proposer(ProposerKind.PATCHES, folder=str(patches)),
        epochs=len(list(patches.glob("*.patch"))) or 1,
        unchanged=True,
    )
    return train(project, panel, plan, key=f"demonstration {panel.digest}")


def recipe(case: CaseDefinition) -> Recipe:
    """Return how the demonstration runs a case; one of them runs unpinned, so that its clock is the real one."""
    home: Path = settings.CONFIG.home
    return Recipe(
        harness=HarnessSource("reference", str(ensure_repository(home)), BASELINE),
        case=case,
        engine=EMBEDDED_NAME,
        settings={"temperature": 0.8},
        root_seed=str(ROOT_SEED),
        tools={"run": SideEffects.SANDBOXED},
        pins=() if case is UNPINNED else None,
    )
