"""Keeping what traces add up to, for rollouts that were stored before it was counted."""

from __future__ import annotations

from collections.abc import Iterable

from harnesslab.core.measuring.trace_statistics import trace_statistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout
from harnesslab.store.text import frozen

EVENTS = 20_000
"""Events that one call reads, so that a page that asks for it answers soon; the first rollout is read whole."""


def prepare(rollout_ids: Iterable[int]) -> int:
    """Count the ended rollouts among these that are not counted yet; returns how many are still left."""
    waiting = Rollout.objects.filter(pk__in=list(rollout_ids), anatomy=b"", head__isnull=False).order_by("pk")
    rows = list(waiting.defer("facts", "recipe", "search"))
    read = done = 0
    for row in rows:
        if done and read + row.events > EVENTS:
            break
        kept = frozen(trace_statistics(StoredTraceReader(row).trace(), Outcome(row.outcome)).to_json())
        Rollout.objects.filter(pk=row.pk).update(anatomy=kept)
        read, done = read + row.events, done + 1
    return len(rows) - done
