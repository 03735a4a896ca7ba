"""The one door by which what a trace adds up to reaches its row: when it is stored, while it runs, and counted anew."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from harnesslab.core.measuring.trace_statistics import Tally, TraceStatistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout
from harnesslab.store.text import frozen

EVENTS = 20_000
"""Events that one call reads, so that a page that asks for it answers soon; the first rollout is read whole."""


def running_columns(tally: Tally) -> dict[str, Any]:
    """Return the columns of a rollout that still runs, in constant time."""
    return {"events": tally.events, **_numbers(tally.numbers())}


def count_columns(statistics: TraceStatistics, began: datetime | None, ended: datetime | None) -> dict[str, Any]:
    """Return the columns of an ended rollout; its seconds are by the clock, else by its events."""
    seconds = statistics.elapsed
    if began is not None and ended is not None:
        seconds = max(0.0, (ended - began).total_seconds())
    return {**_numbers(statistics), "seconds": seconds, "anatomy": frozen(statistics.to_json())}


def _numbers(statistics: TraceStatistics) -> dict[str, Any]:
    return {
        "counted_by": statistics.version,
        "steps": statistics.steps,
        "input_tokens": statistics.input,
        "output_tokens": statistics.output,
        "cached_tokens": statistics.cached,
    }


def counted_anew(row: Rollout) -> dict[str, Any]:
    """Return the columns of an ended rollout by the current counter, reading its trace a chunk at a time."""
    statistics = Tally.of(StoredTraceReader(row).events()).whole(Outcome(row.outcome))
    return count_columns(statistics, row.started_at, row.ended_at)


def write(row: Rollout, columns: dict[str, Any]) -> bool:
    """Write an ended rollout's counts; False where it is gone, or a newer counter has counted it meanwhile.

    An ended trace never changes, so that whoever counts it writes the same: two at once do no harm.
    """
    rows = Rollout.objects.filter(pk=row.pk, head__isnull=False, counted_by__lte=columns["counted_by"])
    return rows.update(**columns) > 0


def prepare(rollout_ids: Iterable[int]) -> list[int]:
    """Count those of these rollouts that an older counter counted, a bounded number; returns the ids that are left."""
    waiting = Rollout.objects.behind().filter(pk__in=list(rollout_ids)).order_by("pk")
    sizes = list(waiting.values_list("pk", "events"))
    read = done = 0
    for pk, events in sizes:
        if done and read + events > EVENTS:
            break
        row = waiting.defer("facts", "recipe", "search").filter(pk=pk).first()
        if row is not None:
            write(row, counted_anew(row))
        read, done = read + events, done + 1
    return [pk for pk, _ in sizes[done:]]
