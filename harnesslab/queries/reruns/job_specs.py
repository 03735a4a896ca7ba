"""What a worker needs to run one rollout: a fresh one of a case, or an attempt of a rerun."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, canonical_bytes, parse
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.recipe import Recipe
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Origin
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.reruns.listing import changed, get_rerun, recipe_of, rerun_plan_of
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader

_UNSTORABLE = re.compile(r"\\u(0000|d[89a-f])")


@dataclass(frozen=True, slots=True)
class Belonging:
    """What a rollout belongs to."""

    project: str
    panel: str = ""
    experiment: str = ""
    trial: int = 0
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One rollout to run."""

    recipe: Recipe
    belonging: Belonging
    plan: RerunPlan | None = None
    record: Trace | None = None
    rerun: int | None = None
    attempt: int = 0

    @property
    def origin(self) -> Origin:
        """Where the rollout's answers come from."""
        if self.plan is None:
            return Origin.LIVE
        if self.plan.mode is Mode.RECORDED:
            return Origin.RECORDED
        live = self.plan.mode is Mode.LIVE and self.plan.from_step is None
        return Origin.LIVE if live else Origin.HYBRID


def payload_of(recipe: Recipe) -> JSON:
    """Return a recipe as a job's payload holds it: as text where no database takes all of it as JSON, such as NUL."""
    document = recipe.to_json()
    text = canonical_bytes(document).decode()
    return {"text": text, "case": {"name": recipe.case.name}} if _UNSTORABLE.search(text) else document


def load(payload: Mapping[str, JSON]) -> JobSpec:
    """Return the order that a job's payload names; raises `InvalidValue`, `NotFound` or `Conflict`."""
    match payload:
        case {"rerun": int(rerun), "attempt": int(attempt), "root_seed": str(root_seed)}:
            return _of_rerun(rerun, attempt, root_seed)
        case {"recipe": recipe, "project": str(project), **rest}:
            tags = rest.get("tags")
            trial = rest.get("trial")
            belonging = Belonging(
                project,
                str(rest.get("panel") or ""),
                str(rest.get("experiment") or ""),
                trial if isinstance(trial, int) else 0,
                tuple(map(str, tags)) if isinstance(tags, Sequence) else (),
            )
            text = recipe.get("text") if isinstance(recipe, Mapping) else None
            return JobSpec(Recipe.from_json(parse(text) if isinstance(text, str) else recipe), belonging)
    raise InvalidValue("no order of a rollout", where="job")


def _of_rerun(rerun_id: int, attempt: int, root_seed: str) -> JobSpec:
    rerun = get_rerun(rerun_id)
    parent, plan = rerun.parent, rerun_plan_of(rerun)
    needs_record = plan.mode is not Mode.LIVE or plan.from_step is not None
    return JobSpec(
        recipe=changed(recipe_of(parent), plan, root_seed),
        belonging=Belonging(parent.project.name, parent.case.panel.name, "", parent.trial, tuple(parent.tags)),
        plan=plan,
        record=StoredTraceReader(parent).trace() if needs_record else None,
        rerun=rerun_id,
        attempt=attempt,
    )
