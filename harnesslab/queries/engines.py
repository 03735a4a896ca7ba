"""Engines as read models."""

from __future__ import annotations

from datetime import datetime

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import NotFound
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Engine, Job
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import as_object, storable, thawed


class EngineRow(ReadModel):
    """One registered engine."""

    id: int
    name: str
    kind: str
    address: str
    model: str
    options: dict[str, object]
    ceiling: int
    certified: bool
    up: bool | None
    sentence: str
    checked_at: datetime | None
    seed_honoured: bool | None
    probe: dict[str, object]
    facts: dict[str, object]
    retired: bool


class EngineFact(ReadModel):
    """A condition that an engine reported."""

    name: str
    value: str
    origin: str
    """Where it came from; empty where it is unknown, and `value` says why."""


def facts_of(row: EngineRow) -> list[EngineFact]:
    """Return what an engine reported of itself, by name."""
    found = []
    for name, fact in sorted(row.facts.items()):
        stated = fact if isinstance(fact, dict) else {}
        if "unknown" in stated:
            found.append(EngineFact(name=name, value=str(stated["unknown"]), origin=""))
        else:
            value = stated.get("value")
            text = value if isinstance(value, str) else canonical_bytes(value).decode(errors="replace")
            found.append(EngineFact(name=name, value=text, origin=str(stated.get("from", ""))))
    return found


def get_engine(engine_id: int) -> Engine:
    """Return an engine's row; raises `NotFound`."""
    engine = Engine.objects.filter(pk=engine_id).first()
    if engine is None:
        raise NotFound(f"there is no engine {engine_id}")
    return engine


def engine_named(name: str) -> Engine:
    """Return an engine in use by name; raises `NotFound`."""
    named = Engine.objects.filter(name=storable(name))
    engine = named.filter(retired=False).first()
    if engine is None and named.exists():
        raise NotFound(f"the engine {name!r} is retired", hint="choose another")
    if engine is None:
        raise NotFound(f"no engine is registered as {name!r}", hint="register it on the page Engines")
    return engine


def is_certified(name: str) -> bool:
    """Say whether an engine in use has a valid certificate; one that is retired has none."""
    return Engine.objects.filter(name=storable(name), retired=False, certified=True).exists()


def engines() -> list[EngineRow]:
    """Return the registered engines by name."""
    return [_row(engine) for engine in Engine.objects.filter(retired=False).order_by("name")]


def engine_row(engine_id: int) -> EngineRow:
    """Return one engine; raises `NotFound`."""
    return _row(get_engine(engine_id))


def _row(engine: Engine) -> EngineRow:
    facts: dict[str, JSON] = as_object(thawed(engine.facts))
    return EngineRow(
        id=engine.pk,
        name=engine.name,
        kind=engine.kind,
        address=engine.address,
        model=engine.model,
        options=engine.options,
        ceiling=engine.ceiling,
        certified=engine.certified,
        up=engine.up,
        sentence=engine.sentence,
        checked_at=engine.checked_at,
        seed_honoured=engine.seed_honoured,
        probe=engine.probe,
        facts=dict(facts),
        retired=engine.retired,
    )


def probing() -> bool:
    """Say whether an engine is about to be asked what it is: a measurement begun before lacks that condition."""
    return Job.objects.filter(kind="probe").exclude(state__in=ENDED).exists()
