"""Traces: append-only event rows, the chunks that hold their content, and paths computed from them.

Triggers refuse UPDATE, DELETE and REPLACE on events and chunks (migration `append_only`), but for rollouts that
a `Purge` row names.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from harnesslab.store.models.rollouts import Rollout

KEY_SHIFT = 20
"""An event's key is its rollout's id shifted by this, plus its position: one index serves both, and since SQLite
keeps an integer primary key as the row's own address, it costs nothing there."""
MAX_EVENTS = 1 << KEY_SHIFT
KINDS: tuple[str, ...] = (
    "rollout_started",
    "model_call",
    "tool_call",
    "user_turn",
    "subagent_call",
    "retrieval",
    "memory_access",
    "clock_read",
    "network_exchange",
    "harness_action",
    "verification",
    "rollout_ended",
)
"""Event tags by the number they are stored as; only ever appended to."""


def key(rollout_id: int, position: int) -> int:
    """Return the key of an event or chunk of a rollout."""
    return (rollout_id << KEY_SHIFT) + position


class Event(models.Model):
    """One event without its content: kind, step, seal, and for model calls what was asked and answered."""

    key = models.BigAutoField(primary_key=True)
    kind = models.SmallIntegerField()
    step = models.IntegerField()
    seal = models.BinaryField(max_length=32)
    request = models.BinaryField(max_length=16, null=True)
    """Digest of the canonical request of a model call."""
    answer = models.BinaryField(max_length=8, null=True)
    """Digest of what the model answered."""

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["request"], name="event_request", condition=models.Q(request__isnull=False))
        ]

    def __str__(self) -> str:
        return f"event {self.key & (MAX_EVENTS - 1)} of rollout {self.key >> KEY_SHIFT}"


class LooseEvent(models.Model):
    """The content of an event of a rollout that still runs; packed into chunks when it ends.

    `body` holds the lines of a chunk for this event alone: the payloads it is the first to name, and itself.
    """

    key = models.BigAutoField(primary_key=True)
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"loose event {self.key & (MAX_EVENTS - 1)}"


class Chunk(models.Model):
    """A run of events with the payloads they are the first to name; see `core.trace.packing`."""

    key = models.BigAutoField(primary_key=True)
    first_event = models.IntegerField()
    first_payload = models.IntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"chunk {self.key & (MAX_EVENTS - 1)} of rollout {self.key >> KEY_SHIFT}"


class Blob(models.Model):
    """A large payload that many rollouts share, such as a system prompt; compressed canonical JSON."""

    digest = models.CharField(max_length=64, primary_key=True)
    data = models.BinaryField()

    def __str__(self) -> str:
        return self.digest


class StoredPath(models.Model):
    """A rollout's path under one contract, computed when first asked for; see `core.contracts.comparators.Path`."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="paths", db_index=False)
    contract = models.CharField(max_length=300)
    indices = models.BinaryField()
    """Event positions as compressed 32-bit integers."""
    own = models.BinaryField()
    path = models.BinaryField()
    removed = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["rollout", "contract"], name="path_contract_unique")]

    def __str__(self) -> str:
        return f"{self.rollout_id} {self.contract}"
