"""Ordering rollouts of a small harness from an engine that a test serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harnesslab.actions.engines import registration as engines
from harnesslab.actions.reruns import job_specs as orders
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.recipe import HarnessSource, Recipe, SideEffects
from harnesslab.queries.reruns.job_specs import Belonging
from harnesslab.requests.engines import EngineRequest
from harnesslab.store.models import Job
from tests.runtime.driver.rig import LOOP, repository

ENGINE = "scripted"


def register(address: str, ceiling: int = 4) -> int:
    """Register a served model as an engine."""
    return engines.register(EngineRequest(name=ENGINE, kind="openai", address=address, model="m", ceiling=ceiling)).pk


def recipe(folder: Path, case: CaseDefinition, code: str = LOOP, **fields: Any) -> Recipe:
    """Return a recipe of a harness that is put into a repository in a folder."""
    place = folder / "code"
    if not place.exists():
        repository(place, code)
    source = HarnessSource("mine", str(place), "r1")
    return Recipe(source, case, ENGINE, tools={"run": SideEffects.SANDBOXED}, **fields)


def order(made: Recipe, key: str = "") -> Job:
    """Queue a rollout."""
    return orders.order(made, Belonging("trial", "panel"), key=key)
