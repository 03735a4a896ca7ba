"""Loading the demonstration project."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from harnesslab.actions.engines import EMBEDDED_NAME
from harnesslab.actions.experiments import refresh
from harnesslab.actions.orders import order
from harnesslab.actions.rollouts import store_recording
from harnesslab.core.cases import CaseDefinition
from harnesslab.core.recipe import HarnessSource, Recipe, SideEffects
from harnesslab.queries.orders import Belonging
from harnesslab.store.models import Engine, Rollout
from workers.demonstration.project import ROOT_SEED, recordings
from workers.demonstration.repository import BASELINE, ensure_repository
from workers.demonstration.shell_cases import ASKED, SHELL_CASES, UNPINNED

PROJECT = "demonstration"
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
