"""The job that asks a registered engine what it is and what it does."""

from __future__ import annotations

from typing import Any

import msgspec
from django.conf import settings

from harnesslab.actions.engines import registration as engines
from harnesslab.actions.engines import slots
from harnesslab.actions.engines.guarded import GuardedEngine
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError, TryLater
from harnesslab.core.running.ports import EngineDown, Health
from harnesslab.queries.engines import get_engine
from harnesslab.runtime.engines.catalogue import engine as make_engine
from harnesslab.runtime.engines.probes import Probe, probe
from workers.tasks.job_runs import JobRun


def run_probe(attempt: JobRun) -> dict[str, Any]:
    """Check an engine's health, keep its facts, and probe seeds, repeats, token ids and streaming."""
    engine_id = int(attempt.payload["engine"])
    try:
        return _asked(attempt, engine_id)
    except TryLater:
        raise  # it was busy, or the worker was stopped: nothing was learnt of it
    except HarnessLabError as error:
        engines.note_health(engine_id, Health(up=False, sentence=error.sentence))
        raise


def _asked(attempt: JobRun, engine_id: int) -> dict[str, Any]:
    row = get_engine(engine_id)
    client = make_engine(row.kind, row.address, row.model, row.options, settings.CONFIG.home)
    guarded = GuardedEngine(client, slots.slots(), row.pk, row.ceiling, row.model, attempt.stopped)
    try:
        health = guarded.health()
        if not health.up:
            engines.note_health(row.pk, health)
            return {"up": False, "sentence": health.sentence}
        attempt.progress(1, "it answers; asking what it is")
        engines.note_health(row.pk, health, guarded.conditions())
        attempt.progress(2, "probing seeds, repeats and tokens")
        found = probe(guarded)
    except EngineDown:
        if attempt.stopped():
            return {"cancelled": True}
        raise
    finally:
        client.close()
    if attempt.stopped():  # what was refused by then says nothing of the engine
        return {"cancelled": True}
    engines.note_probe(row.pk, _kept(found), found.seed_honoured)
    engines.note_health(row.pk, Health(up=True, sentence=health.sentence))
    seed = {True: "honoured", False: "not honoured", None: "not known to be honoured"}[found.seed_honoured]
    attempt.progress(3, f"it answers; the seed is {seed}")
    return {"up": True, "seed_honoured": found.seed_honoured}


def _kept(found: Probe) -> dict[str, JSON]:
    facts: dict[str, JSON] = {
        name: getattr(found, name) for name in found.__dataclass_fields__ if name not in ("exchanges", "sentences")
    }
    sentences: list[JSON] = [*found.sentences]
    kept: dict[str, JSON] = msgspec.to_builtins({**facts, "sentences": sentences})
    return kept
