"""The values that a filter can take under the other filters, with counts."""

from __future__ import annotations

from django.db.models import Count

from harnesslab.core.errors import InvalidValue
from harnesslab.queries.rollouts.filters import RolloutFilter
from harnesslab.store.models import Rollout
from harnesslab.store.text import storable

FACETS = ("project", "panel", "case", "experiment", "model", "engine", "harness", "revision", "tag")
LIMIT = 60


def facet(chosen: RolloutFilter, name: str, containing: str = "") -> list[tuple[str, int]]:
    """Return (value, rollouts) of a filter, most frequent first, of the values that contain a text.

    Raises `InvalidValue` for an unknown filter.
    """
    containing = storable(containing)
    rows = chosen.without(name).apply(Rollout.objects.all())
    if name == "tag":
        counts: dict[str, int] = {}
        for tags in rows.exclude(tags=[]).values_list("tags", flat=True)[:5000]:
            for tag in tags:
                counts[tag] = counts.get(tag, 0) + 1
        held = [item for item in counts.items() if containing.lower() in item[0].lower()]
        return sorted(held, key=lambda item: (-item[1], item[0]))[:LIMIT]
    if name not in FACETS and name not in RolloutFilter.choices():
        raise InvalidValue(f"no such filter: {name}")
    column = RolloutFilter.columns()[name]
    if containing:
        rows = rows.filter(**{f"{column}__icontains": containing})
    found = rows.exclude(**{column: ""}).values_list(column).annotate(n=Count("pk")).order_by("-n", column)[:LIMIT]
    return [(value, count) for value, count in found if value]
