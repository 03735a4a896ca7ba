"""Loading the demonstration project."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from harnesslab.actions.bindings import bind
from harnesslab.actions.engines import EMBEDDED_NAME
from harnesslab.actions.experiments import refresh
from harnesslab.actions.orders import order
from harnesslab.actions.panels import store_panel
from harnesslab.actions.rollouts import store_recording
from harnesslab.actions.trainings import train
from harnesslab.core.cases import CaseDefinition
from harnesslab.core.experiments import Binding, Plan
from harnesslab.core.panels import PanelDefinition
from harnesslab.core.recipe import RUN, HarnessSource, Recipe, SideEffects
from harnesslab.core.training import Proposer, ProposerKind, TrainingPlan
from harnesslab.queries.orders import Belonging
from harnesslab.store.models import Engine, Rollout, Training
from workers.demonstration.project import ROOT_SEED, recordings
from workers.demonstration.repository import BASELINE, PATCHES, ensure_repository, ensure_trainee
from workers.demonstration.shell_cases import ASKED, SHELL_CASES, TRAINING_CASES, UNPINNED

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
        measure=Plan(EMBEDDED_NAME, root_seed=str(ROOT_SEED)),
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
