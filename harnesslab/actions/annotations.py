"""What people add to rollouts, and the one way to delete one."""

from __future__ import annotations

from django.db import transaction

from harnesslab.accounts.models import User
from harnesslab.actions.reruns.lifecycle import cancel
from harnesslab.core.errors import Conflict, InvalidValue, NotFound
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.store.models import AuditEntry, Chunk, Event, Job, LooseEvent, Note, Purge, SavedView
from harnesslab.store.models.events import MAX_EVENTS, key
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import storable


def add_note(author: User, rollout_id: int, text: str, step: int | None = None) -> Note:
    """Add a note; raises `InvalidValue` for an empty one, `NotFound` for one of a step that isn't."""
    if not text.strip():
        raise InvalidValue("the note is empty")
    rollout = get_rollout(rollout_id)
    first = key(rollout_id, 0)
    if step is not None and not Event.objects.filter(key__gte=first, key__lt=first + MAX_EVENTS, step=step).exists():
        raise NotFound(f"there is no step {step + 1}", where=f"rollout {rollout_id}")
    return Note.objects.create(rollout=rollout, step=step, text=storable(text.strip(), 20_000), author=author)


def save_view(user: User, name: str, query: str) -> None:
    """Keep a list query under a name; an empty query forgets the name."""
    name = storable(name.strip(), 80)
    if not name:
        raise InvalidValue("a saved view needs a name")
    if query:
        SavedView.objects.update_or_create(user=user, name=name, defaults={"query": query})
    else:
        SavedView.objects.filter(user=user, name=name).delete()


@transaction.atomic
def delete_rollout(user: User, rollout_id: int, reason: str) -> None:
    """Delete a rollout with its trace, leaving an audit entry with its seal; its reruns are cancelled.

    Raises `InvalidValue` without a reason, `Conflict` while it runs.
    """
    if not reason.strip():
        raise InvalidValue("deleting a rollout needs a reason")
    rollout = get_rollout(rollout_id)
    if rollout.head is None and Job.objects.filter(rollouts=rollout).exclude(state__in=ENDED).exists():
        raise Conflict("it still runs", where=f"rollout {rollout_id}", hint="cancel it first")
    for rerun_id in rollout.reruns.values_list("pk", flat=True):
        cancel(rerun_id)
    entry = AuditEntry.objects.create(
        user=user,
        action="delete rollout",
        subject=f"rollout {rollout_id}",
        detail={
            "case": rollout.case.name,
            "trial": rollout.trial,
            "manifest": rollout.manifest_id,
            "seal": bytes(rollout.head or b"").hex(),
            "events": rollout.events,
            "reason": storable(reason.strip(), 2000),
        },
    )
    Purge.objects.create(rollout_id=rollout_id, entry=entry)
    first = key(rollout_id, 0)
    for table in (Event, Chunk, LooseEvent):
        table._default_manager.filter(key__gte=first, key__lt=first + MAX_EVENTS).delete()
    source = rollout.source
    rollout.delete()
    if source is not None and not source.rollouts.exists():
        source.delete()
