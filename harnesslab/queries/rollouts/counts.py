"""What a stored row says of its trace, and by which version of the counter."""

from __future__ import annotations

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.trace_statistics import VERSION, TraceStatistics
from harnesslab.store.models import Rollout
from harnesslab.store.text import thawed

COUNTS = ("steps", "input_tokens", "output_tokens", "cached_tokens", "seconds")
"""Columns that are counted."""
_IN_COLUMNS = ("version", "steps", "input", "output", "cached", "elapsed")


def behind() -> int:
    """Return how many ended rollouts an older version counted."""
    return Rollout.objects.behind().count()


def numbers_of(document: JSON) -> dict[str, JSON]:
    """Return the counts of a statistics document that no column shows, by name."""
    built: dict[str, JSON] = {**msgspec.structs.asdict(TraceStatistics.from_json(document))}
    return {name: value for name, value in built.items() if name not in _IN_COLUMNS}


def counting(rollout: Rollout) -> list[str]:
    """Say what a rollout's token counts leave out, and whether an older version counted them."""
    clauses = []
    if rollout.anatomy:
        found = TraceStatistics.from_json(thawed(rollout.anatomy))
        if found.served:
            clauses.append(f"{found.served:,} of {found.served + found.calls:,} answers were served, not spent")
        if found.calls == found.unstated and not found.served and (found.input, found.output) != (None, None):
            clauses.append("as the source states them for the whole, not call by call")
        elif found.unstated:
            clauses.append(f"{found.unstated:,} of {found.calls:,} calls state no tokens")
    if rollout.counted_by < VERSION:
        clauses.append(f"counted by version {rollout.counted_by}, not yet by {VERSION}")
    return clauses
