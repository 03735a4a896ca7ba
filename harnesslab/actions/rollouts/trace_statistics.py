"""The one door by which what a trace adds up to reaches its row: when it is stored, while it runs, and counted anew."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from harnesslab.core.errors import HarnessLabError
from harnesslab.core.measuring.trace_statistics import Tally, TraceStatistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout
from harnesslab.store.text import frozen

log = logging.getLogger(__name__)
EVENTS = 20_000
"""Events that one call reads, so that a page that asks for it answers soon; the first rollout is read whole."""


class Uncountable(HarnessLabError):
    """A stored trace can't be read to be counted."""


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
    """Return the columns of an ended rollout by the current counter, reading its trace a chunk at a time.

    Raises `Uncountable` for a trace that can't be read: it must keep nobody from the others.
    """
    try:
        statistics = Tally.of(StoredTraceReader(row).events()).whole(Outcome(row.outcome))
    except DatabaseError:
        raise
    except HarnessLabError as error:
        raise Uncountable(error.sentence) from error
    except Exception as error:  # a chunk that is damaged fails in many ways
        raise Uncountable(f"{type(error).__name__}: {error}") from error
    return count_columns(statistics, row.started_at, row.ended_at)


def write(row: Rollout, columns: dict[str, Any]) -> bool:
    """Write an ended rollout's counts; False where it is gone, or a newer counter has counted it meanwhile.

    An ended trace never changes, so that whoever counts it writes the same: two at once do no harm.
    """
    rows = Rollout.objects.filter(pk=row.pk, head__isnull=False, counted_by__lte=columns["counted_by"])
    return rows.update(**columns) > 0


def count_all(rollout_ids: Iterable[int]) -> None:
    """Count all of these rollouts that can be counted and an older counter counted."""
    left = list(rollout_ids)
    while len(rest := prepare(left)) < len(left):
        left = rest


def prepare(rollout_ids: Iterable[int]) -> list[int]:
    """Count those of these rollouts that an older counter counted, a bounded number.

    Returns the ids that are left, those that can't be counted at the end: what is shown of them stays as it was.
    """
    waiting = Rollout.objects.behind().filter(pk__in=list(rollout_ids)).order_by("pk")
    sizes = list(waiting.values_list("pk", "events"))
    read = done = 0
    uncountable: list[int] = []
    for pk, events in sizes:
        if done and read + events > EVENTS:
            break
        row = waiting.defer("facts", "recipe", "search").filter(pk=pk).first()
        if row is not None:
            try:
                write(row, counted_anew(row))
            except Uncountable as error:
                log.warning("rollout %s can't be counted: %s", pk, error.sentence)
                uncountable.append(pk)
        read, done = read + events, done + 1
    return [*(pk for pk, _ in sizes[done:]), *uncountable]
