"""What is to be known of how a rollout's source became its trace: balance, damage, and times as they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import Field

from harnesslab.core.canonical import JSON
from harnesslab.core.trace import damage
from harnesslab.core.trace.stated import lines_of
from harnesslab.formats.accounting import times_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.listing import RolloutRow, get_rollout, row_of
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader


class BalanceRow(ReadModel):
    """One total of the source, against what is stored."""

    what: str
    total: JSON
    """As the source states it."""
    stored: JSON
    short: bool
    """Whether less is stored than the source states."""
    said: str
    """All of it in words."""


class SourceAccount(ReadModel):
    """How a source became a trace; all of it empty where nothing is to be said."""

    balance: Sequence[BalanceRow] = ()
    damaged: Sequence[int] = ()
    """Events with bytes that are no UTF-8, by position."""
    times: Mapping[str, str] = Field(default_factory=dict)
    """Times as the source writes them, where that is not UTC; one without an offset has no stated zone."""

    @property
    def times_said(self) -> list[str]:
        """The times in words."""
        began = {"started_at": "It began", "ended_at": "It ended"}
        return [f"{began[name]} at {time} by its source{_zone(time)}." for name, time in self.times.items()]

    @property
    def short(self) -> bool:
        """Whether anything is short."""
        return any(row.short for row in self.balance)


def _zone(time: str) -> str:
    return "" if datetime.fromisoformat(time).tzinfo else ", no zone stated"


class RolloutWithAccount(RolloutRow):
    """A rollout with the account of its source."""

    account: SourceAccount


def source_account(reader: StoredTraceReader) -> SourceAccount:
    """Return the account of a rollout; of one that still runs there is none."""
    if reader.rollout.head is None or not reader.rollout.events:
        return SourceAccount()
    opening, closing = reader.event(0), reader.event(reader.rollout.events - 1)
    damaged = closing.extra.get(damage.EVENTS)
    return SourceAccount(
        balance=[
            BalanceRow(what=line.what, total=line.total, stored=line.stored, short=line.short, said=str(line))
            for line in lines_of(closing.extra)
        ],
        damaged=[place for place in damaged if isinstance(place, int)] if isinstance(damaged, list) else [],
        times={name: time.isoformat() for name, time in times_of(opening).items()},
    )


def rollout_with_account(rollout_id: int) -> RolloutWithAccount:
    """Return a rollout with its account; raises `NotFound`."""
    row = get_rollout(rollout_id)
    return RolloutWithAccount(**row_of(row).model_dump(), account=source_account(StoredTraceReader(row)))
