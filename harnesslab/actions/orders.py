"""Ordering rollouts from the workers, and concluding them."""

from __future__ import annotations

from harnesslab.accounts.models import User
from harnesslab.actions import jobs, reruns
from harnesslab.actions.recorder import interrupt
from harnesslab.core.recipe import Recipe
from harnesslab.queries.orders import Belonging
from harnesslab.queries.rollouts import get_rollout
from harnesslab.store.models import Job, Rollout
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import as_object, frozen, thawed


def order(recipe: Recipe, belonging: Belonging, *, user: User | None = None, key: str = "", group: str = "") -> Job:
    """Queue a fresh rollout of a case; the same key gives the job that is already there."""
    payload: dict[str, object] = {
        "recipe": recipe.to_json(),
        "project": belonging.project,
        "panel": belonging.panel,
        "experiment": belonging.experiment,
        "trial": belonging.trial,
        "tags": list(belonging.tags),
    }
    return jobs.enqueue(
        reruns.KIND,
        payload,
        idempotency_key=key,
        user=user,
        total=recipe.case.budgets.steps,
        queue_name=reruns.QUEUE,
        group=group,
    )


def interrupt_left_open(job_id: int) -> int:
    """Close the rollouts that an earlier attempt at a job left open; returns how many."""
    left = list(Rollout.objects.filter(job_id=job_id, head=None).values_list("pk", flat=True))
    for rollout_id in left:
        interrupt(rollout_id)
    return len(left)


def interrupt_abandoned() -> int:
    """Close the rollouts whose jobs have ended without closing them; returns how many."""
    left = list(Rollout.objects.filter(head=None, job__state__in=ENDED).values_list("pk", flat=True))
    for rollout_id in left:
        interrupt(rollout_id)
    return len(left)


def conclude(rollout_id: int, *, diverged: bool) -> None:
    """Keep with an attempt of a rerun what it showed."""
    rollout = get_rollout(rollout_id)
    if rollout.rerun_id is None:
        return
    found = reruns.conclude(rollout, diverged=diverged)
    facts = {**as_object(thawed(rollout.facts)), "same": found.same, "bad": found.bad}
    if found.unsaid:
        facts["unsaid"] = found.unsaid
    Rollout.objects.filter(pk=rollout_id).update(facts=frozen(facts))
