"""Notes and saved views as read models."""

from __future__ import annotations

from datetime import datetime

from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Note, SavedView


class NoteRow(ReadModel):
    """A person's remark; `step` counts from 0."""

    id: int
    step: int | None
    text: str
    author: str
    at: datetime


def notes_of(rollout_id: int) -> list[NoteRow]:
    """Return a rollout's notes, oldest first."""
    rows = Note.objects.filter(rollout_id=rollout_id).select_related("author").order_by("id")
    return [
        NoteRow(id=row.pk, step=row.step, text=row.text, author=row.author.get_username(), at=row.created_at)
        for row in rows
    ]


def views_of(user_id: int) -> list[tuple[str, str]]:
    """Return (name, query) of a user's saved views."""
    return list(SavedView.objects.filter(user_id=user_id).order_by("name").values_list("name", "query"))
