"""Registering engines, and keeping what they said of themselves."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from harnesslab.accounts.models import User
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition, Known
from harnesslab.core.errors import Conflict
from harnesslab.core.running.ports import Health
from harnesslab.queries.engines import get_engine
from harnesslab.requests.engines import EngineRequest
from harnesslab.runtime.engines.catalogue import engine as make_engine
from harnesslab.runtime.engines.configuration import BUNDLED
from harnesslab.store.models import AuditEntry, Engine, Job, JobState
from harnesslab.store.text import frozen, storable

PROBE = "probe"
EMBEDDED_NAME = "SmolLM2"
EMBEDDED: tuple[tuple[str, dict[str, JSON]], ...] = (
    (EMBEDDED_NAME, {"flash_attention": True}),
    (f"{EMBEDDED_NAME}, flash attention off", {"flash_attention": False}),
)
"""The engines that come with HarnessLab: one model under two attention kernels, which answer differently."""


@transaction.atomic
def register(request: EngineRequest, user: User | None = None) -> Engine:
    """Register an engine; raises `InvalidValue` for options that no client takes, `Conflict` for a taken name."""
    name, options = request.name, request.all_options
    known = {key: value for key, value in options.items() if key != "api_key_env"}  # only workers hold its variable
    make_engine(request.kind, request.address, request.model, known, settings.CONFIG.home).close()
    try:
        with transaction.atomic():
            engine = Engine.objects.create(
                name=name,
                kind=request.kind,
                address=request.address,
                model=request.model,
                options=options,
                ceiling=request.ceiling,
            )
    except IntegrityError:
        raise Conflict(f"an engine is registered as {name!r}", where="name", hint="choose another name") from None
    if user is not None:
        AuditEntry.objects.create(user=user, action="register engine", subject=name, detail={"kind": request.kind})
    return engine


@transaction.atomic
def retire(engine_id: int, user: User) -> None:
    """Take an engine out of use; what it ran stays, and its name stays taken."""
    engine = get_engine(engine_id)
    Engine.objects.filter(pk=engine_id).update(retired=True)
    AuditEntry.objects.create(user=user, action="retire engine", subject=engine.name, detail={})


def note_health(engine_id: int, health: Health, conditions: Mapping[str, Condition] | None = None) -> None:
    """Keep what a health check found, and the facts the server reported."""
    changes: dict[str, object] = {"up": health.up, "sentence": storable(health.sentence), "checked_at": timezone.now()}
    if conditions is not None:
        changes["facts"] = frozen(conditions_json(conditions))
    Engine.objects.filter(pk=engine_id).update(**changes)


def note_probe(engine_id: int, probe: Mapping[str, JSON], seed_honoured: bool | None) -> None:
    """Keep what a probe found; the next rollouts' manifests state it."""
    Engine.objects.filter(pk=engine_id).update(probe=dict(probe), seed_honoured=seed_honoured)


def set_ceiling(engine_id: int, ceiling: int, user: User) -> None:
    """Change how many requests an engine gets at a time; a stated limit is no certified one."""
    engine = get_engine(engine_id)
    Engine.objects.filter(pk=engine_id).update(ceiling=ceiling, certified=False)
    AuditEntry.objects.create(user=user, action="set ceiling", subject=engine.name, detail={"ceiling": ceiling})


def conditions_json(conditions: Mapping[str, Condition]) -> dict[str, JSON]:
    """Return conditions as manifests write them."""
    return {
        name: {"value": item.value, "from": item.provenance.value}
        if isinstance(item, Known)
        else {"unknown": item.reason}
        for name, item in conditions.items()
    }


def ask_probe(engine_id: int, *, user: User | None = None, queue_name: str = "control") -> Job:
    """Queue a probe of an engine; one that waits already is enough."""
    group = f"engine {get_engine(engine_id).pk}"
    waiting = Job.objects.filter(group=group, kind=PROBE, state=JobState.QUEUED).first()
    if waiting is not None:
        return waiting
    return jobs.enqueue(PROBE, {"engine": engine_id, "attempt": 0}, user=user, queue_name=queue_name, group=group)


def ensure_embedded() -> bool:
    """Register the engines that come with HarnessLab, where they are installed; says whether any was new."""
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec(BUNDLED) is None:
        return False
    new = [item for item in EMBEDDED if not Engine.objects.filter(name=item[0]).exists()]
    for name, options in new:
        try:
            engine = register(EngineRequest(name=name, kind="embedded", model="SmolLM2-135M-Instruct", options=options))
        except Conflict:
            continue  # another process that starts was quicker
        # on the queue of rollouts, so that it comes before the first of them
        ask_probe(engine.pk, queue_name="gpu")
    return bool(new)
