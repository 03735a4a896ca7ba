"""Bringing stored counts to the current version of the counter: all rows, some, or a few at each tick of the sweeper.

Each row is a write of its own, so that a kill loses at most the row that was being read, and who starts again goes on
with the rows that are left. Nothing is held of a trace but one chunk and its sums.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harnesslab.actions.rollouts.trace_statistics import Uncountable, counted_anew, write
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import NotFound
from harnesslab.queries.rollouts.counts import COUNTS, numbers_of
from harnesslab.store.models import Rollout
from harnesslab.store.text import thawed

PAGE = 100
EVENTS_A_TICK = 5_000
"""Events that one tick of the sweeper reads; its first rollout is read whole."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CountChange:
    """A count that is another one now; None is unknown."""

    name: str
    before: JSON
    after: JSON


@dataclass(frozen=True, slots=True)
class Recounted:
    """What counting a stored rollout anew came to."""

    rollout: int
    changes: tuple[CountChange, ...] = ()
    error: str = ""
    """Why it could not be counted; its row is as it was."""


def recount_all() -> Iterator[Recounted]:
    """Count all rollouts that an older version counted, in the order of their ids, as they are asked for."""
    last = 0
    behind = Rollout.objects.behind().order_by("pk")
    while ids := list(behind.filter(pk__gt=last).values_list("pk", flat=True)[:PAGE]):
        for last in ids:
            yield from _recounted(last)


def recount(rollout_ids: Sequence[int]) -> Iterator[Recounted]:
    """Count these rollouts whatever version counted them; raises `NotFound` before any is counted."""
    known = set(Rollout.objects.filter(pk__in=rollout_ids).values_list("pk", flat=True))
    missing = next((pk for pk in rollout_ids if pk not in known), None)
    if missing is not None:
        raise NotFound(f"there is no rollout {missing}", hint="it may have been deleted")
    for pk in rollout_ids:
        yield from _recounted(pk)


class Recounting:
    """Recounts a bounded number at a time; what can't be counted is passed over until the process starts again."""

    def __init__(self) -> None:
        self._passed: set[int] = set()

    def some(self) -> int:
        """Count the next few rollouts; returns how many rows were looked at."""
        read = done = 0
        behind = Rollout.objects.behind().exclude(pk__in=self._passed).order_by("pk")
        for pk, events in list(behind.values_list("pk", "events")[:PAGE]):
            if done and read + events > EVENTS_A_TICK:
                break
            for each in _recounted(pk):
                if each.error:
                    log.warning("rollout %s can't be counted: %s", pk, each.error)
                    self._passed.add(pk)
            read, done = read + events, done + 1
        return done


def _recounted(pk: int) -> Iterator[Recounted]:
    """Count one rollout; nothing for one that was deleted meanwhile."""
    row = Rollout.objects.defer("facts", "recipe", "search").filter(pk=pk).first()
    if row is None:
        return
    if row.head is None:
        yield Recounted(pk, error="it still runs, and is counted as it goes")
        return
    try:
        columns = counted_anew(row)
    except Uncountable as error:
        yield Recounted(pk, error=error.sentence)
        return
    if write(row, columns):
        yield Recounted(pk, _changes(row, columns))


def _changes(row: Rollout, columns: dict[str, object]) -> tuple[CountChange, ...]:
    """Return which counts are others: the columns, and where the trace was counted before, what has no column."""
    after = Rollout(**columns)
    pairs = [(name, getattr(row, name), getattr(after, name)) for name in COUNTS]
    if row.anatomy:
        old, new = numbers_of(thawed(row.anatomy)), numbers_of(thawed(after.anatomy))
        pairs += [(name, old[name], new[name]) for name in old]
    return tuple(CountChange(name, old, new) for name, old, new in pairs if old != new)
