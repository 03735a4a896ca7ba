"""Comparisons of two stored rollouts as read models: the whole result, windows of its rows, one row in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from harnesslab.core.comparing.alignment import SAME, Row
from harnesslab.core.comparing.comparison import Comparison, align_traces, compare_traces, parting
from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.contracts.contract import LADDER, TITLES, Contract
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.answers import served_from
from harnesslab.core.trace.events import ToolCall
from harnesslab.core.trace.labels import label, result_line
from harnesslab.queries.comparisons.result import ComparisonResult, result
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.listing import RolloutRow, get_rollout, row_of
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import CauseOverride

Pair = tuple[StoredTraceReader, StoredTraceReader]
"""The trace readers of A and B."""
WINDOW = 160
"""Rows in one window of the comparison."""


class Override(ReadModel):
    """A reviewer's own finding of the cause."""

    cause: str
    reason: str
    author: str
    at: str
    contract: str
    """Key of the contract that it is of."""


class AlignedSide(ReadModel):
    """One side of an aligned row."""

    index: int
    step: int
    what: str
    detail: str
    failed: bool
    served: str = ""
    """Where what it holds was served from; empty where it was given live."""


class AlignedRow(ReadModel):
    """One row of the comparison: its number, how its sides compare, and the sides."""

    number: int
    relation: str
    a: AlignedSide | None
    b: AlignedSide | None


class RowWindow(ReadModel):
    """A run of aligned rows, with where the neighbouring runs begin."""

    rows: list[AlignedRow]
    before: int | None
    after: int | None
    total: int


@dataclass(frozen=True, slots=True)
class Aligned:
    """Two rollouts with their trace readers and aligned rows."""

    row_a: RolloutRow
    row_b: RolloutRow
    a: StoredTraceReader
    b: StoredTraceReader
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ComparedRollouts(Aligned):
    """Two rollouts with all that comparing them found."""

    comparison: Comparison

    @property
    def result(self) -> ComparisonResult:
        """The comparison as the JSON read model, its sides named by id."""
        return result(str(self.row_a.id), str(self.row_b.id), self.comparison)


def readers_of(a_id: int, b_id: int) -> Pair:
    """Return the trace readers of two stored rollouts, of one where both are the same; raises `NotFound`."""
    a = StoredTraceReader(get_rollout(a_id))
    return a, a if a_id == b_id else StoredTraceReader(get_rollout(b_id))


def compared(pair: Pair, contract: Contract) -> ComparedRollouts:
    """Compare two stored rollouts; raises `NotComparable`."""
    a, b = pair
    comparison = compare_traces(a, b, contract)
    return ComparedRollouts(row_of(a.rollout), row_of(b.rollout), a, b, comparison.rows, comparison)


def first_divergence(pair: Pair, contract: Contract) -> Divergence | None:
    """Say where two stored rollouts part, and why; raises `NotComparable`."""
    return parting(*pair, contract)


def aligned(pair: Pair, contract: Contract) -> Aligned:
    """Align two stored rollouts without looking for causes; raises `NotComparable`."""
    a, b = pair
    return Aligned(row_of(a.rollout), row_of(b.rollout), a, b, align_traces(a, b, contract)[0])


def level_titles() -> list[tuple[str, str]]:
    """Return (name, title) of the levels, strictest first."""
    return [(level.value, TITLES[level]) for level in LADDER]


def overrides_of(a_id: int, b_id: int, contract: Contract) -> tuple[Override | None, list[Override]]:
    """Return a reviewer's latest finding for a pair, in either order, and those under older versions of the rules.

    Of each older version it is the latest finding, the latest first. A newer version of a rule takes no finding back:
    it was made of what the older one showed, which still is compared.
    """
    latest: dict[str, Override] = {}
    for each in _overrides(a_id, b_id):
        latest.setdefault(each.contract, each)
    current = latest.pop(contract.key, None)
    return current, [each for each in latest.values() if _names(each.contract) == _names(contract.key)]


def _names(key: str) -> str:
    """Return a contract's key with its rules' versions left out."""
    return re.sub(r"@[0-9]+", "", key)


def _overrides(a_id: int, b_id: int) -> list[Override]:
    pair = Q(a_id=a_id, b_id=b_id) | Q(a_id=b_id, b_id=a_id)
    return [
        Override(
            cause=row.cause,
            reason=row.reason,
            author=row.author.get_username(),
            at=row.created_at.isoformat(),
            contract=row.contract,
        )
        for row in CauseOverride.objects.filter(pair).select_related("author").order_by("-id")
    ]


def first_difference_row(rows: Sequence[Row]) -> int | None:
    """Return the number of the first row that the contract doesn't count as equal."""
    return next((number for number, row in enumerate(rows) if row.relation not in SAME), None)


def row_window(
    compared: Aligned, start: int, *, only_differences: bool = False, until: int | None = None, size: int = WINDOW
) -> RowWindow:
    """Return aligned rows from number `start` on, with `until` only those before an already shown one.

    With `only_differences`, equal ones are left out.
    """
    rows = compared.rows
    numbers = [n for n, row in enumerate(rows) if not only_differences or row.relation not in SAME]
    first = next((place for place, number in enumerate(numbers) if number >= start), len(numbers))
    chosen = [number for number in numbers[first : first + size] if until is None or number < until]
    after = numbers[first + size] if until is None and first + size < len(numbers) else None
    before = numbers[max(0, first - size)] if first else None
    return RowWindow(
        rows=[aligned_row(compared.a, compared.b, rows[number], number) for number in chosen],
        before=before,
        after=after,
        total=len(rows),
    )


def aligned_row(a: TraceReader, b: TraceReader, row: Row, number: int) -> AlignedRow:
    """Make the read model of one row."""
    return AlignedRow(number=number, relation=row.relation.value, a=_side(a, row.a), b=_side(b, row.b))


def _side(reader: TraceReader, index: int | None) -> AlignedSide | None:
    if index is None:
        return None
    event = reader.event(index)
    named = label(event)
    detail = named.detail
    if isinstance(event, ToolCall):
        detail = f"{detail} → {result_line(event)}" if detail else result_line(event)
    failed = bool(getattr(event, "error", None))
    return AlignedSide(
        index=index,
        step=event.step,
        what=named.what,
        detail=detail,
        failed=failed,
        served=served_from(event),
    )
