"""Mirroring projects to MLflow: off unless someone says so; what is there is never made twice."""

from __future__ import annotations

import re
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from harnesslab.accounts.models import User
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.queries.mirrors import enabled_mirrors, get_mirror, lacks
from harnesslab.store.models import AuditEntry, Job, JobState, Mirror, Mirrored, Project
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import storable

KIND, IMPORT = "mirror", "import-mlflow"
QUEUE = "cpu"
RESTS = timedelta(minutes=1)
"""After a pass that failed, the next one is asked for no sooner."""


@transaction.atomic
def mirror_to(project: Project, address: str, *, experiment: str = "", user: User | None = None) -> Mirror:
    """Keep a project's copy on an MLflow server from now on; raises `InvalidValue` or `Conflict`."""
    _check(address)
    row = Mirror.objects.filter(project=project).first()
    if row is not None and row.address != address and row.items.exists():
        raise Conflict(f"the project is mirrored at {row.address}", hint="forget that mirror first: --forget")
    name = storable(experiment.strip(), 200)
    row, _ = Mirror.objects.update_or_create(
        project=project, defaults={"address": storable(address, 500), "enabled": True, "experiment": name}
    )
    if user is not None:
        AuditEntry.objects.create(user=user, action="mirror", subject=project.name, detail={"to": address})
    order(row)
    return row


def turn_off(project: Project) -> None:
    """Stop copying to the server; what was copied stays there."""
    Mirror.objects.filter(pk=get_mirror(project).pk).update(enabled=False)


def forget(project: Project) -> None:
    """Forget what is on the server, so that the project can be mirrored elsewhere; nothing is removed there."""
    get_mirror(project).delete()


def order(mirror: Mirror) -> Job | None:
    """Queue a pass unless one waits or runs."""
    group = f"{KIND} {mirror.pk}"
    if Job.objects.filter(group=group).exclude(state__in=ENDED).exists():
        return None
    return jobs.enqueue(KIND, {"mirror": mirror.pk}, queue_name=QUEUE, group=group)


def order_import(address: str, *, experiment: str = "", project: str = "", user: User | None = None) -> Job:
    """Queue the import of an MLflow server's runs and traces; raises `InvalidValue`."""
    _check(address)
    payload: dict[str, object] = {"address": address, "experiment": experiment, "project": project}
    return jobs.enqueue(IMPORT, payload, user=user, queue_name=QUEUE)


def _check(address: str) -> None:
    if not re.fullmatch(r"https?://[^\s@]+", address):
        raise InvalidValue(f"no address of an MLflow server: {address!r}", where="address", hint="http://host:5000")


def keep_up() -> None:
    """Queue a pass for each mirror that something is missing from."""
    for mirror in enabled_mirrors():
        last = Job.objects.filter(group=f"{KIND} {mirror.pk}").order_by("-pk").first()
        if last is not None and last.state == JobState.FAILED and _resting(last):
            continue
        if lacks(mirror):
            order(mirror)


def _resting(job: Job) -> bool:
    return job.ended_at is not None and job.ended_at > timezone.now() - RESTS


def note_made(mirror: int, remote: str, *, experiment: int | None = None, rollout: int | None = None) -> None:
    """Remember that a thing is on the server whole."""
    said = {"remote": remote, "complete": True}
    if experiment is not None:
        Mirrored.objects.update_or_create(mirror_id=mirror, experiment_id=experiment, defaults=said)
    if rollout is not None:
        Mirrored.objects.update_or_create(mirror_id=mirror, rollout_id=rollout, defaults=said)


def say_again(experiment: int) -> None:
    """Let an experiment be copied again, since more is known of it; its run stays the same one."""
    Mirrored.objects.filter(experiment_id=experiment).update(complete=False)


def note_pass(mirror: int, sentence: str) -> None:
    """Keep what a pass did, or why it failed."""
    Mirror.objects.filter(pk=mirror).update(sentence=storable(sentence), mirrored_at=timezone.now())
