"""Registering engines, and keeping what they said of themselves."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Mapping

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from harnesslab.accounts.models import User
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition, Known
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.running.ports import Health
from harnesslab.queries.engines import get_engine
from harnesslab.runtime.engines.catalogue import engine as make_engine
from harnesslab.runtime.engines.configuration import BUNDLED
from harnesslab.store.models import AuditEntry, Engine, Job, JobState
from harnesslab.store.text import frozen, storable

KINDS = ("embedded", "sglang", "openai")
MOST_REQUESTS = 4096
LONGEST_ADDRESS, LONGEST_MODEL, LONGEST_OPTIONS = 500, 200, 65_536
PROBE = "probe"
EMBEDDED_NAME = "SmolLM2"
EMBEDDED: tuple[tuple[str, dict[str, JSON]], ...] = (
    (EMBEDDED_NAME, {"flash_attention": True}),
    (f"{EMBEDDED_NAME}, flash attention off", {"flash_attention": False}),
)
"""The engines that come with HarnessLab: one model under two attention kernels, which answer differently."""
_NAME = re.compile(r"\w[\w .,()+:-]{0,98}")


@transaction.atomic
def register(
    name: str,
    kind: str,
    *,
    address: str = "",
    model: str = "",
    options: Mapping[str, JSON] | None = None,
    ceiling: int = 1,
    user: User | None = None,
) -> Engine:
    """Register an engine; raises `InvalidValue` for what can't be one, `Conflict` where the name is taken."""
    if not _NAME.fullmatch(name):
        raise InvalidValue(f"not a name: {name!r}", where="name", hint="letters, digits, spaces and . , ( ) + : - _")
    if kind not in KINDS:
        raise InvalidValue(f"no kind of engine: {kind!r}", where="kind", hint=f"one of {', '.join(KINDS)}")
    if kind != "embedded" and not re.match(r"https?://[^\s/]+", address):
        raise InvalidValue(f"no address: {address!r}", where="address", hint="http://host:port")
    if not 1 <= ceiling <= MOST_REQUESTS:
        raise InvalidValue(f"{ceiling} requests at a time", where="ceiling", hint=f"from 1 to {MOST_REQUESTS}")
    _check_options(kind, address, model, dict(options or {}))
    try:
        with transaction.atomic():
            engine = Engine.objects.create(
                name=name,
                kind=kind,
                address=address,
                model=model,
                options=dict(options or {}),
                ceiling=ceiling,
            )
    except IntegrityError:
        raise Conflict(f"an engine is registered as {name!r}", hint="choose another name") from None
    if user is not None:
        AuditEntry.objects.create(user=user, action="register engine", subject=name, detail={"kind": kind})
    return engine


def _check_options(kind: str, address: str, model: str, options: dict[str, JSON]) -> None:
    """Refuse options that no client takes, a key among them; only the workers hold the key's variable."""
    _check_storable(address, model, options)
    named = options.pop("api_key_env", None)
    if named is not None and not (isinstance(named, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", named)):
        raise InvalidValue("not the name of an environment variable", where="api_key_env", hint="such as MY_KEY")
    make_engine(kind, address, model, options, settings.CONFIG.home).close()


def _check_storable(address: str, model: str, options: dict[str, JSON]) -> None:
    """Refuse what the database would have to cut or change: the engine would be another one than was named."""
    for where, text, most in (("address", address, LONGEST_ADDRESS), ("model", model, LONGEST_MODEL)):
        if storable(text, most) != text:
            raise InvalidValue(f"at most {most} characters, without NUL", where=where)
    try:
        written = json.dumps(options, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidValue("numbers that are none, or nested too deeply", where="options") from None
    if len(written) > LONGEST_OPTIONS or "\\u0000" in written or storable(written) != written:
        raise InvalidValue(f"at most {LONGEST_OPTIONS:,} characters, without NUL", where="options")


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
    if not 1 <= ceiling <= MOST_REQUESTS:
        raise InvalidValue(f"{ceiling} requests at a time", where="ceiling", hint=f"from 1 to {MOST_REQUESTS}")
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
            engine = register(name, "embedded", model="SmolLM2-135M-Instruct", options=options)
        except Conflict:
            continue  # another process that starts was quicker
        # on the queue of rollouts, so that it comes before the first of them
        ask_probe(engine.pk, queue_name="gpu")
    return bool(new)
