"""Ordering rollouts from the workers, and concluding them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import IntegrityError
from django.db.models import QuerySet

from harnesslab.accounts.models import User
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.actions.rollouts.recorder import interrupt
from harnesslab.core.canonical import digest
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.recipe import Recipe
from harnesslab.core.running.rollout import UNSCORABLE
from harnesslab.queries.reruns.job_specs import Belonging, payload_of
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.store.models import Job, Rollout
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import as_object, frozen, storable, thawed

log = logging.getLogger(__name__)


def order(recipe: Recipe, belonging: Belonging, *, user: User | None = None, key: str = "") -> Job:
    """Queue a fresh rollout of a case; the same key gives the job that is already there."""
    return jobs.enqueue(
        reruns.KIND,
        _payload(recipe, belonging),
        idempotency_key=key,
        user=user,
        total=recipe.case.budgets.steps,
        queue_name=reruns.QUEUE,
        engine=storable(recipe.engine, 200),
    )


def order_all(recipes: Iterable[tuple[Recipe, Belonging]], *, group: str, user: User | None = None) -> None:
    """Queue fresh rollouts of a group that has none yet, at most one a case and trial."""
    waiting = (
        Job(
            kind=reruns.KIND,
            queue=reruns.QUEUE,
            group=group,
            engine=storable(recipe.engine, 200),
            payload=_payload(recipe, belonging),
            idempotency_key=f"{group} {digest(recipe.case.name)[:16]} {belonging.trial}",
            total=recipe.case.budgets.steps,
            created_by=user,
        )
        for recipe, belonging in recipes
    )
    jobs.enqueue_all(waiting, wake_ups=reruns.WOKEN)


def _payload(recipe: Recipe, belonging: Belonging) -> dict[str, object]:
    return {
        "recipe": payload_of(recipe),
        "project": belonging.project,
        "panel": belonging.panel,
        "experiment": belonging.experiment,
        "trial": belonging.trial,
        "tags": list(belonging.tags),
    }


def ended_already(job_id: int) -> Rollout | None:
    """Return the rollout that an earlier attempt at a job brought to its end, so that it isn't made twice."""
    rows = Rollout.objects.filter(job_id=job_id).exclude(head=None).order_by("-pk")
    for row in rows:
        facts = as_object(thawed(row.facts))
        if row.outcome not in UNSCORABLE or facts.get("diverged"):
            if "same" not in facts:
                conclude(row.pk, diverged=bool(facts.get("diverged")))
            return row
    return None


def interrupt_left_open(job_id: int) -> int:
    """Close the rollouts that an earlier attempt at a job left open; returns how many."""
    return _interrupted(Rollout.objects.filter(job_id=job_id, head=None))


def interrupt_abandoned() -> int:
    """Close the rollouts whose jobs have ended without closing them; returns how many."""
    return _interrupted(Rollout.objects.filter(head=None, job__state__in=ENDED))


def _interrupted(left: QuerySet[Rollout]) -> int:
    """Close rollouts; one that a slow recorder still writes or closes itself is left to it, and to the next time."""
    count = 0
    for rollout_id in list(left.values_list("pk", flat=True)):
        try:
            interrupt(rollout_id)
        except (HarnessLabError, IntegrityError) as error:
            log.warning("rollout %s is not closed: %s", rollout_id, error)
        else:
            count += 1
    return count


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
